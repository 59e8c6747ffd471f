"""Sending to a collector."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kits.collector import running_collector

from coag import CoagAgent
from coag.errors import ConfigurationError
from coag.telemetry import send_run

MakeButler = Callable[..., CoagAgent]


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "HEADERS"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


@pytest.fixture
async def folder(make_butler: MakeButler, tmp_path: Path) -> Path:
    agent = make_butler(tmp_path)
    await agent.run(task="Bring the cup!")
    await agent.close()
    assert agent.run_folder is not None
    return agent.run_folder.path


def test_spans_arrive_over_http(folder: Path) -> None:
    with running_collector() as collector:
        sent = send_run(folder, collector.url)
    assert sent == len(collector.spans) == 19
    assert collector.paths == ["/v1/traces"]
    assert collector.services == {"coag"}
    assert b"Agatha" not in b"".join(collector.raw)


@pytest.mark.parametrize("ending", ["", "/", "/v1/traces"])
def test_an_endpoint_may_be_given_with_and_without_its_path(folder: Path, ending: str) -> None:
    with running_collector() as collector:
        send_run(folder, f"{collector.url}{ending}")
    assert collector.paths == ["/v1/traces"]


def test_the_environment_says_where_to_with_which_headers_and_as_whom(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=robots")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "household")
        send_run(folder)
    assert collector.services == {"household"}
    assert collector.headers[0]["x-team"] == "robots"
    assert collector.headers[0]["content-encoding"] == "gzip"


def test_the_variable_for_traces_goes_before_the_general_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/elsewhere")
        send_run(folder)
    assert collector.paths == ["/elsewhere"]


def test_a_collector_that_refuses_is_told_with_its_reason(folder: Path) -> None:
    with running_collector() as collector:
        collector.status = 401
        with pytest.raises(ConfigurationError, match=r"did not take the spans: .*401"):
            send_run(folder, collector.url)
    assert len(collector.paths) == 1


def test_nobody_listening_is_told_at_once(folder: Path) -> None:
    with running_collector() as collector:
        url = collector.url
    with pytest.raises(ConfigurationError, match="No collector answers at"):
        send_run(folder, url)


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://here", "http://[broken"])
def test_what_is_no_url_is_refused(folder: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="is no collector's URL"):
        send_run(folder, url)


def test_sdk_that_is_switched_off_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(ConfigurationError, match="OTEL_SDK_DISABLED is true"):
        send_run(folder)


def test_a_missing_extra_is_told_with_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[otel\]'"):
        send_run(folder)
