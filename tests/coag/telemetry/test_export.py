"""Spans of finished runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coag import CoagAgent
from coag.errors import TraceError
from coag.telemetry import Exported, export_run, watch
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
    kept: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    agent = make_butler(tmp_path)
    with watch(agent, tracer_provider=kept.tracers, meter_provider=kept.meters):
        await agent.run(task=f"Bring {CUP}!")
    await agent.close()
    live = [(span.name, span.start_time, span.end_time) for span in kept.spans]
    kept.exporter.clear()
    folder = agent.run_folder
    assert folder is not None
    exported = export_run(folder, tracer_provider=kept.tracers)
    assert exported == Exported(folder.path.name, len(agent.trace))
    assert [(span.name, span.start_time, span.end_time) for span in kept.spans] == live


async def test_an_export_is_one_trace_and_belongs_to_nobodys_span(
    kept: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    folder = await _run(make_butler, tmp_path)
    with kept.tracers.get_tracer("caller").start_as_current_span("request"):
        export_run(folder, tracer_provider=kept.tracers)
    traces = {span.context.trace_id for span in kept.spans if span.name != "request"}
    assert len(traces) == 1
    assert kept.named("run butler")[0].parent is None
    assert CUP not in kept.everything()


async def test_an_export_holds_content_where_it_is_asked_for(
    kept: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    folder = await _run(make_butler, tmp_path)
    export_run(folder, tracer_provider=kept.tracers, record_content=True)
    (turn,) = kept.named("invoke_agent butler")
    assert CUP in turn.attributes["gen_ai.output.messages"]


@pytest.mark.broken_trace("it tears the log's last line")
async def test_a_torn_run_is_exported_up_to_where_it_is_torn(
    kept: Any, make_butler: MakeButler, tmp_path: Path
) -> None:
    folder = await _run(make_butler, tmp_path)
    trace = folder / "trace.jsonl"
    trace.write_bytes(trace.read_bytes()[:-9])
    problems: list[TraceProblem] = []
    export_run(folder, tracer_provider=kept.tracers, on_problem=problems.append)
    assert len(problems) == 1
    (turn,) = kept.named("invoke_agent butler")
    assert turn.attributes["coag.unfinished"] is True


def test_a_folder_that_is_no_run_is_refused(kept: Any, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is no run's folder"):
        export_run(tmp_path, tracer_provider=kept.tracers)
