"""Tools and workbenches: called once, together, with their token, whatever they do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallSummaryMessage
from autogen_agentchat.tools import AgentTool
from autogen_core import CancellationToken
from autogen_core.tools import (
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolOverride,
    ToolResult,
    ToolSchema,
)
from kits.drop_in import (
    NATIVE,
    WAYS,
    add,
    cancel_itself,
    check_reusable,
    explode,
    items_and_result,
    letters,
    multiply,
    results_in,
    run,
    way_name,
)
from kits.planned import PlannedModel

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
native = pytest.mark.parametrize("way", NATIVE, ids=way_name)


async def used(way: dict[str, Any], *plan: Any, **given: Any) -> tuple[list[Any], PlannedModel]:
    """What the tools returned."""
    model = PlannedModel("FINAL", *plan)
    agent = CoagAgent("agent", model, **given, **way)
    result = await run(agent)
    assert result.messages[-1].to_text() == "FINAL"
    await check_reusable(agent, model)
    return results_in(result.messages), model


@all_ways
@pytest.mark.parametrize("tool", [add, FunctionTool(add, "Adds.", name="add"), multiply])
async def test_a_tool_is_called_once_with_its_arguments(way: dict[str, Any], tool: Any) -> None:
    name, result = ("multiply", "6") if tool is multiply else ("add", "5")
    results, _ = await used(way, (name, {"a": 2, "b": 3}), tools=[tool])
    assert [(r.name, r.content, r.is_error) for r in results] == [(name, result, False)]


@all_ways
@pytest.mark.parametrize("tool", [explode, cancel_itself])
async def test_a_tool_that_fails_is_a_result(way: dict[str, Any], tool: Any) -> None:
    arguments = {"text": "x"} if tool is explode else {}
    results, model = await used(way, (tool.__name__, arguments), tools=[tool])
    assert [r.is_error for r in results] == [True]
    if tool is explode:
        assert "exploded: x" in model.heard


@native
async def test_calls_of_one_answer_run_together_and_come_back_in_order(
    way: dict[str, Any],
) -> None:
    begun: list[int] = []
    together = asyncio.Event()

    async def meet(n: int) -> int:
        """Waits for the others."""
        begun.append(n)
        if len(begun) == 3:
            together.set()
        await together.wait()
        return n

    results, _ = await used(way, [("meet", {"n": n}) for n in (2, 0, 1)], tools=[meet])
    assert [r.content for r in results] == ["2", "0", "1"]


@native
async def test_what_does_not_exist_is_answered_beside_what_does(way: dict[str, Any]) -> None:
    results, _ = await used(way, [("add", {"a": 1, "b": 2}), ("ghost", {})], tools=[add])
    assert {r.name: r.is_error for r in results} == {"add": False, "ghost": True}


@all_ways
async def test_an_output_of_two_megabytes_does_not_flood_the_next_prompt(
    way: dict[str, Any],
) -> None:
    results, model = await used(way, ("letters", {"count": 2_000_000}), tools=[letters])
    assert len(results[0].content) >= 2_000_000
    assert max(len(asked.text) for asked in model.asked) < 100_000


@all_ways
async def test_braces_and_markup_come_back_as_they_are(way: dict[str, Any]) -> None:
    odd = "{result} {0} {missing} [/x] %s %d {{}} \\n"

    def oddly() -> str:
        """Odd."""
        return odd

    results, _ = await used(way, ("oddly", {}), tools=[oddly])
    assert results[0].content == odd


async def test_a_summary_has_the_form_that_was_given() -> None:
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    form = "<{tool_name}|{arguments}|{result}|{is_error}>"
    agent = CoagAgent("agent", model, tools=[add], tool_call_summary_format=form)
    answer = (await run(agent)).messages[-1]
    assert isinstance(answer, ToolCallSummaryMessage)
    assert answer.content == '<add|{"a": 1, "b": 2}|3|False>'


async def test_the_token_reaches_a_tool() -> None:
    tokens: list[CancellationToken] = []

    async def peek(cancellation_token: CancellationToken) -> str:
        """Looks at its token."""
        tokens.append(cancellation_token)
        return "seen"

    await used(WAYS[1], ("peek", {}), tools=[peek])
    assert len(tokens) == 1


# ---- workbenches ----


class Watched(StaticWorkbench):
    """Notes how it is called, changes its tools, and may raise."""

    def __init__(self, *tools: Any, error: BaseException | None = None) -> None:
        super().__init__([FunctionTool(tool, "A tool.") for tool in tools])
        self.error = error
        self.called: list[tuple[str, Any, Any, str | None]] = []
        self.life: list[str] = []
        self.hidden = 0

    async def start(self) -> None:
        self.life.append("started")

    async def stop(self) -> None:
        self.life.append("stopped")

    async def list_tools(self) -> list[ToolSchema]:
        tools = await super().list_tools()
        return tools[: len(tools) - self.hidden]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        self.called.append((name, arguments, cancellation_token, call_id))
        self.hidden = 0
        if self.error is not None:
            raise self.error
        return await super().call_tool(name, arguments, cancellation_token, call_id)


@all_ways
async def test_a_workbench_gets_every_argument_and_is_left_running(
    way: dict[str, Any],
) -> None:
    bench = Watched(add)
    results, _ = await used(way, ("add", {"a": 1, "b": 2}), workbench=bench)
    ((name, arguments, token, call_id),) = bench.called
    assert (name, arguments) == ("add", {"a": 1, "b": 2})
    # The tool gets a key that never comes again; the model's own id may.
    assert call_id is not None
    assert call_id.endswith("intent-000001")
    assert call_id != results[0].call_id or way["proposal"] == "json"
    assert isinstance(token, CancellationToken)
    assert bench.life == []


@all_ways
@pytest.mark.parametrize("error", [RuntimeError("died"), asyncio.CancelledError()])
async def test_a_workbench_that_raises_is_a_failed_call(
    way: dict[str, Any], error: BaseException
) -> None:
    results, _ = await used(way, ("add", {"a": 1, "b": 2}), workbench=Watched(add, error=error))
    assert [r.is_error for r in results] == [True]


async def test_several_workbenches_serve_together() -> None:
    plan = [("add", {"a": 1, "b": 2}), ("multiply", {"a": 2, "b": 4})]
    results, _ = await used(WAYS[1], *plan, workbench=[Watched(add), Watched(multiply)])
    assert [r.content for r in results] == ["3", "8"]


async def test_tools_that_appear_later_are_offered_then() -> None:
    bench = Watched(add, multiply)
    bench.hidden = 1
    plan = [("add", {"a": 1, "b": 2}), ("multiply", {"a": 2, "b": 4})]
    results, model = await used(WAYS[1], *plan, workbench=bench)
    assert [r.content for r in results] == ["3", "8"]
    assert "multiply" not in model.asked[0].tools


@pytest.mark.parametrize("bench", [StaticWorkbench, StaticStreamWorkbench])
async def test_overridden_names_work(bench: Any) -> None:
    overrides = {"add": ToolOverride(name="plus", description="Plus.")}
    workbench = bench([FunctionTool(add, "Adds.")], tool_overrides=overrides)
    results, _ = await used(WAYS[1], ("plus", {"a": 1, "b": 2}), workbench=workbench)
    assert [(r.name, r.content) for r in results] == [("plus", "3")]


# ---- agents as tools ----


@pytest.mark.parametrize("inner_type", [CoagAgent, AssistantAgent])
async def test_what_an_agent_as_a_tool_does_is_shown_and_its_pieces_are_not_kept(
    inner_type: Any,
) -> None:
    inner = inner_type(
        "inner", PlannedModel("ONE TWO THREE"), description="x", model_client_stream=True
    )
    model = PlannedModel("OUTER", ("inner", {"task": "token-9"}))
    agent = CoagAgent("outer", model, tools=[AgentTool(inner, return_value_as_last_message=True)])
    items, result = await items_and_result(agent.run_stream(task="Go."))
    assert any(getattr(item, "source", "") == "inner" for item in items)
    messages = result.messages
    assert not any(type(m).__name__ == "ModelClientStreamingChunkEvent" for m in messages)
    results = [m for m in messages if isinstance(m, ToolCallExecutionEvent) and m.source == "outer"]
    assert [r.content for m in results for r in m.content] == ["ONE TWO THREE"]
    assert messages[-1].to_text() == "OUTER"
