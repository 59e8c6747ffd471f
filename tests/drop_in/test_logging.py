"""What is reported beside the messages: consoles, spans, event logs; and what is not."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat import EVENT_LOGGER_NAME, TRACE_LOGGER_NAME
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_agentchat.ui import Console
from autogen_core import EVENT_LOGGER_NAME as CORE_EVENTS
from autogen_core import ROOT_LOGGER_NAME
from autogen_core.logging import ToolCallEvent
from autogen_ext.ui import RichConsole
from kits.drop_in import WAYS, add, calls_in, explode, run, usage_in, way_name
from kits.planned import PlannedModel
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
SUM = ("add", {"a": 1, "b": 2})


# ---- consoles ----


@all_ways
async def test_the_consoles_figures_are_the_clients(
    way: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    model = PlannedModel("FINAL", SUM)
    agent = CoagAgent("agent", model, tools=[add], **way)
    result = await Console(agent.run_stream(task="Go."), output_stats=True)
    printed = capsys.readouterr().out
    prompt, completion = model.cost
    assert int(found(r"Total prompt tokens: (\d+)", printed)) == prompt
    assert int(found(r"Total completion tokens: (\d+)", printed)) == completion
    assert usage_in(result.messages) == model.cost
    assert "FINAL" in printed


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None
    return match[1]


@all_ways
async def test_a_rich_console_shows_a_turn(
    way: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    model = PlannedModel("The answer is three.", SUM, ("ghost", {}), ("explode", {"text": "x"}))
    agent = CoagAgent("agent", model, tools=[add, explode], **way)
    await RichConsole(agent.run_stream(task="Go."), output_stats=True)
    assert "The answer is three." in capsys.readouterr().out


@all_ways
async def test_markup_of_others_is_not_repeated_in_our_own_words(way: dict[str, Any]) -> None:
    odd = "[/done] [bold]x[/bold] [/INST]"
    model = PlannedModel("Fine.", ("add", {"a": 1, "b": odd}), ("explode", {"text": odd}))
    model.forms = {"ReasoningAnswer": {"situation": odd, "risks": [odd]}}
    agent = CoagAgent("agent", model, tools=[add, explode], **way)
    result = await run(agent)
    for message in result.messages[1:-1]:
        if type(message).__name__ == "ThoughtEvent":
            assert "[" not in message.to_text()


# ---- spans ----


class Kept(SpanExporter):
    """Keeps spans."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS

    def named(self, beginning: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith(beginning)]


@pytest.fixture
def kept_spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    provider, exporter = TracerProvider(), Kept()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # A provider can be set but once in a process.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


@all_ways
async def test_one_span_for_the_agent_and_one_for_each_tool(
    way: dict[str, Any], kept_spans: Kept
) -> None:
    model = PlannedModel("FINAL", SUM, ("explode", {"text": "x"}))
    agent = CoagAgent("agent", model, tools=[add, explode], **way)
    result = await run(agent)
    assert [span.name for span in kept_spans.named("create_agent")] == ["create_agent agent"]
    assert [span.name for span in kept_spans.named("invoke_agent")] == ["invoke_agent agent"]
    tools = kept_spans.named("execute_tool")
    assert [span.name for span in tools] == ["execute_tool add", "execute_tool explode"]
    ids = [str((span.attributes or {}).get("gen_ai.tool.call.id")) for span in tools]
    assert len({*ids}) == len(calls_in(result.messages)) == 2
    assert [span.status.is_ok for span in tools] == [True, False]
    (invoked,) = kept_spans.named("invoke_agent")
    assert invoked.context is not None
    parents = {span.parent.span_id if span.parent else None for span in tools}
    assert parents == {invoked.context.span_id}


async def test_a_turn_that_fails_is_a_span_that_failed(kept_spans: Kept) -> None:
    agent = CoagAgent("agent", PlannedModel().err(RuntimeError("down")))
    with pytest.raises(RuntimeError):
        await agent.run(task="Go.")
    (span,) = kept_spans.named("invoke_agent")
    assert not span.status.is_ok


# ---- logs ----


async def test_tool_calls_are_in_the_event_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=CORE_EVENTS)
    caplog.set_level(logging.DEBUG, logger=EVENT_LOGGER_NAME)
    await run(CoagAgent("agent", PlannedModel("FINAL", SUM), tools=[add]))
    events = [record.msg for record in caplog.records]
    assert sum(isinstance(event, ToolCallEvent) for event in events) == 1
    assert sum(isinstance(event, ToolCallRequestEvent) for event in events) == 1
    assert sum(isinstance(event, ToolCallExecutionEvent) for event in events) == 1


@all_ways
async def test_a_turn_warns_of_nothing_and_changes_no_logger(
    way: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    names = [None, ROOT_LOGGER_NAME, CORE_EVENTS, EVENT_LOGGER_NAME, TRACE_LOGGER_NAME, "coag"]

    def state() -> list[Any]:
        loggers = [logging.getLogger(name) for name in names]
        return [(one.level, list(one.handlers), list(one.filters)) for one in loggers]

    before = state()
    model = PlannedModel("FINAL", SUM, ("explode", {"text": "x"}))
    await run(CoagAgent("agent", model, tools=[add, explode], **way))
    assert state() == before
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_turn_prints_nothing_and_writes_nothing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await run(CoagAgent("agent", PlannedModel("FINAL", SUM), tools=[add]))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - a test's own folder


async def test_no_secret_of_a_tools_error_is_lost_nor_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    plan = [("explode", {"text": "hush"})]
    result = await run(CoagAgent("agent", PlannedModel("FINAL", *plan), tools=[explode]))
    assert "hush" in str(result.messages)
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("coag")]
    assert not any("hush" in line for line in ours)
