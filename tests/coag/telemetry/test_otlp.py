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
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "HEADERS", "TIMEOUT", "TRACES_TIMEOUT"):
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


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_and_never_followed(folder: Path, status: int) -> None:
    with running_collector() as elsewhere, running_collector() as collector:
        collector.status, collector.location = status, f"{elsewhere.url}/v1/traces"
        with pytest.raises(ConfigurationError) as raised:
            send_run(folder, collector.url)
    assert f"'{collector.url}/v1/traces' did not take the spans: it answered {status} " in str(
        raised.value
    )
    assert "redirects are not followed" in str(raised.value)
    assert (collector.paths, elsewhere.paths) == (["/v1/traces"], [])


@pytest.mark.parametrize("status", [304, 399, 404, 500, 600])
def test_only_an_answer_of_2xx_counts_as_taken(folder: Path, status: int) -> None:
    with running_collector() as collector:
        collector.status = status
        with pytest.raises(ConfigurationError, match=f"it answered {status}"):
            send_run(folder, collector.url)


@pytest.mark.parametrize("status", [202, 204])
def test_any_answer_of_2xx_counts_as_taken(folder: Path, status: int) -> None:
    with running_collector() as collector:
        collector.status = status
        assert send_run(folder, collector.url) == 19


@pytest.mark.parametrize(
    "more", [b"Content-Length: 100000\r\n", b"Content-Encoding: gzip\r\n", b""]
)
def test_an_answer_that_never_ends_is_not_waited_for(folder: Path, more: bytes) -> None:
    with running_collector() as collector:
        collector.beginning = b"HTTP/1.1 200 OK\r\n" + more + b"\r\nx"
        assert send_run(folder, collector.url) == 19


def test_a_refusal_that_never_ends_is_told_by_its_status(folder: Path) -> None:
    with running_collector() as collector:
        collector.beginning = b"HTTP/1.1 403 Not\x1b[2J you\r\nContent-Length: 100000\r\n\r\nx"
        with pytest.raises(ConfigurationError, match=r"it answered 403 Not you$"):
            send_run(folder, collector.url)


@pytest.mark.parametrize("beginning", [b"H", b"HTTP/1.1 200 OK\r\nX-Long: x"])
def test_a_collector_that_never_gets_to_its_answer_is_given_up(
    folder: Path, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with running_collector() as collector:
        collector.beginning = beginning
        with pytest.raises(ConfigurationError, match=r"it gave no whole answer within 0\.2 s"):
            send_run(folder, collector.url)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", "1e300"])
def test_a_time_limit_that_is_none_is_refused(
    folder: Path, seconds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", seconds)
    with pytest.raises(ConfigurationError, match=f"OTLP_TRACES_TIMEOUT is '{seconds}'"):
        send_run(folder)


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
