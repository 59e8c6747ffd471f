"""Spans of finished runs: made, and sent to a collector."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.collector import running_collector

from coag import CoagAgent
from coag.errors import ConfigurationError, TraceError
from coag.telemetry import export_run, send_run, watch
from coag.telemetry.export import ExportedRun
from coag.tracing import TraceProblem

MakeButler = Callable[..., CoagAgent]
CUP = "the golden cup of aunt Agatha"


async def _run(make_butler: MakeButler, logs: Path) -> Path:
    agent = make_butler(logs)
    await agent.run(task=f"Bring {CUP}!")
    await agent.close()
    assert agent.run_folder is not None
    return agent.run_folder.path


async def test_a_finished_run_gives_the_spans_that_it_gave_live(
    backend: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    agent = make_butler(tmp_path)
    with watch(agent, tracer_provider=backend.tracers, meter_provider=backend.meters):
        await agent.run(task=f"Bring {CUP}!")
    await agent.close()
    live = [(span.name, span.start_time, span.end_time) for span in backend.spans]
    backend.exporter.clear()
    folder = agent.run_folder
    assert folder is not None
    exported = export_run(folder, tracer_provider=backend.tracers)
    assert exported == ExportedRun(folder.path.name, len(agent.trace))
    assert [(span.name, span.start_time, span.end_time) for span in backend.spans] == live


async def test_an_export_is_one_trace_and_belongs_to_nobodys_span(
    backend: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    folder = await _run(make_butler, tmp_path)
    with backend.tracers.get_tracer("caller").start_as_current_span("request"):
        export_run(folder, tracer_provider=backend.tracers)
    traces = {span.context.trace_id for span in backend.spans if span.name != "request"}
    assert len(traces) == 1
    assert backend.named("run butler")[0].parent is None
    assert CUP not in backend.everything()


@pytest.mark.broken_trace("it tears the log's last line")
async def test_a_torn_run_is_exported_up_to_where_it_is_torn(
    backend: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    folder = await _run(make_butler, tmp_path)
    trace = folder / "trace.jsonl"
    trace.write_bytes(trace.read_bytes()[:-9])
    problems: list[TraceProblem] = []
    export_run(folder, tracer_provider=backend.tracers, on_problem=problems.append)
    assert len(problems) == 1
    (turn,) = backend.named("invoke_agent butler")
    assert turn.attributes["coag.unfinished"] is True


def test_a_folder_that_is_no_run_is_refused(backend: Any, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is no run's folder"):
        export_run(tmp_path, tracer_provider=backend.tracers)


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


def test_spans_arrive_over_http_with_any_answer_of_2xx(folder: Path) -> None:
    with running_collector() as collector:
        collector.status = 202
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


def test_endpoint_headers_compression_and_service_name_come_from_the_environment(
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


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_reported_and_never_followed(folder: Path, status: int) -> None:
    with running_collector() as elsewhere, running_collector() as collector:
        collector.status, collector.location = status, f"{elsewhere.url}/v1/traces"
        with pytest.raises(ConfigurationError) as raised:
            send_run(folder, collector.url)
    assert f"'{collector.url}/v1/traces' did not take the spans: it answered {status} " in str(
        raised.value
    )
    assert "redirects are not followed" in str(raised.value)
    assert (collector.paths, elsewhere.paths) == (["/v1/traces"], [])


@pytest.mark.parametrize("status", [304, 401, 500])
def test_only_an_answer_of_2xx_counts_as_taken(folder: Path, status: int) -> None:
    with running_collector() as collector:
        collector.status = status
        with pytest.raises(ConfigurationError, match=f"it answered {status}"):
            send_run(folder, collector.url)


def test_an_address_where_nobody_listens_is_reported_at_once(folder: Path) -> None:
    with running_collector() as collector:
        url = collector.url
    with pytest.raises(ConfigurationError, match="No collector answers at"):
        send_run(folder, url)


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://here", "http://[broken"])
def test_an_endpoint_that_is_no_url_is_refused(folder: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="is no collector's URL"):
        send_run(folder, url)


def test_an_sdk_that_is_switched_off_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(ConfigurationError, match="OTEL_SDK_DISABLED is true"):
        send_run(folder)


def test_a_missing_extra_is_reported_with_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[otel\]'"):
        send_run(folder)
