"""What an agent shows: legal events in order, usage counted once, one response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.messages import (
    HandoffMessage,
    MemoryQueryEvent,
    MultiModalMessage,
    StopMessage,
    StructuredMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallSummaryMessage,
)
from autogen_core import CancellationToken, Image
from kits.drop_in import (
    WAYS,
    Judgement,
    ListedMemory,
    add,
    calls_in,
    explode,
    results_in,
    run,
    streamed,
    usage_in,
    way_name,
    within,
    without_chunks,
)
from kits.planned import Planned, PlannedModel
from PIL import Image as PILImage

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
SUM: Planned = ("add", {"a": 1, "b": 2})
FORM = {"answer": "FINAL", "score": 1.0}

CASES: dict[str, tuple[Callable[[], dict[str, Any]], list[Any]]] = {
    "plain": (dict, []),
    "tool": (lambda: {"tools": [add]}, [SUM]),
    "batch": (lambda: {"tools": [add, explode]}, [[SUM, ("explode", {"text": "x"})]]),
    "once": (lambda: {"tools": [add], "max_tool_iterations": 1}, [SUM]),
    "once_reflecting": (
        lambda: {"tools": [add], "max_tool_iterations": 1, "reflect_on_tool_use": True},
        [SUM],
    ),
    "twice": (lambda: {"tools": [add]}, [SUM, ("add", {"a": 2, "b": 1})]),
    "stream": (lambda: {"model_client_stream": True}, []),
    "stream_tool": (lambda: {"tools": [add], "model_client_stream": True}, [SUM]),
    "structured": (lambda: {"output_content_type": Judgement}, []),
    "handoff": (lambda: {"handoffs": ["bob"]}, [("transfer_to_bob", {})]),
    "tool_and_handoff": (
        lambda: {"handoffs": ["bob"], "tools": [add]},
        [[SUM, ("transfer_to_bob", {})]],
    ),
    "memory": (lambda: {"memory": [ListedMemory("fact")]}, []),
    "unknown_tool": (lambda: {"tools": [add]}, [("ghost", {})]),
}
cases = pytest.mark.parametrize("case", CASES)


def made(case: str, way: dict[str, Any]) -> tuple[CoagAgent, PlannedModel]:
    given, plan = CASES[case]
    forms = {"Judgement": FORM, "respond": FORM} if case == "structured" else {}
    model = PlannedModel("FINAL", *plan, forms=forms, thought="Hm, let me see.")
    return CoagAgent("agent", model, **given(), **way), model


@cases
@all_ways
async def test_usage_adds_up_to_what_the_client_charged(case: str, way: dict[str, Any]) -> None:
    agent, model = made(case, way)
    for turn in range(2):
        before = model.cost
        result = await run(agent, f"Turn {turn}.")
        spent = tuple(now - then for now, then in zip(model.cost, before, strict=True))
        assert usage_in(result.messages) == spent


@cases
@all_ways
async def test_events_are_legal_in_order_and_the_agents_own(case: str, way: dict[str, Any]) -> None:
    agent, model = made(case, way)
    items, response = await streamed(agent, "Go.")
    assert {item.source for item in items} <= {"agent"}
    expected = [*without_chunks(items), response.chat_message]
    assert len({item.id for item in expected}) == len(expected)
    thoughts = [item.content for item in items if isinstance(item, ThoughtEvent)]
    assert any("Hm, let me see." in thought for thought in thoughts) or way["proposal"] == "json"
    assert [i.created_at for i in expected] == sorted(i.created_at for i in expected)
    assert [i.id for i in response.inner_messages or ()] == [i.id for i in without_chunks(items)]
    called, results = calls_in(items), results_in(items)
    assert [one.id for one in called] == [one.call_id for one in results]
    assert [one.name for one in called] == [one.name for one in results]
    assert model.violations == []


async def test_what_memories_bring_is_shown_and_sent_once() -> None:
    model = PlannedModel()
    agent = CoagAgent("agent", model, memory=[ListedMemory("fact-1"), ListedMemory("fact-2")])
    for turn in range(4):
        result = await run(agent, f"Turn {turn}.")
        queries = [m for m in result.messages if isinstance(m, MemoryQueryEvent)]
        assert {str(c.content) for query in queries for c in query.content} == {"fact-1", "fact-2"}
    for asked in model.asked:
        assert asked.text.count("fact-1") == 1


async def test_a_reset_forgets_the_dialogue_and_keeps_memories() -> None:
    memory, model = ListedMemory("fact-1"), PlannedModel()
    agent = CoagAgent("agent", model, memory=[memory])
    await run(agent, "Old news.")
    await agent.on_reset(CancellationToken())
    before = len(model.asked)
    await run(agent, "New news.")
    prompts = "".join(one.text for one in model.asked[before:])
    assert "Old news." not in prompts
    assert "fact-1" in prompts
    assert memory.cleared == 0


# ---- what arrives ----

PICTURE = Image(PILImage.new("RGB", (4, 4)))
MESSAGES = [
    TextMessage(content="token-7", source="user"),
    StopMessage(content="token-7", source="bob"),
    MultiModalMessage(content=["token-7", PICTURE], source="user"),
    HandoffMessage(content="token-7", source="bob", target="agent"),
    StructuredMessage[Judgement](content=Judgement(answer="token-7"), source="bob"),
    ToolCallSummaryMessage(content="token-7", source="bob", tool_calls=[], results=[]),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
async def test_every_kind_of_message_reaches_the_model(message: Any) -> None:
    model = PlannedModel()
    await run(CoagAgent("agent", model), message)
    assert "token-7" in model.heard


async def test_nothing_to_hear_is_fine_at_first_and_later() -> None:
    model = PlannedModel()
    agent = CoagAgent("agent", model)
    for _ in range(2):
        response = await within(agent.on_messages([], CancellationToken()))
        assert response.chat_message.to_text() == "FINAL"
    assert (await within(agent.run())).messages[-1].to_text() == "FINAL"
    assert model.violations == []


async def test_pausing_does_no_harm_and_closing_twice_leaves_the_client_open() -> None:
    model = PlannedModel()
    agent = CoagAgent("agent", model)
    await agent.on_pause(CancellationToken())
    await agent.on_resume(CancellationToken())
    await run(agent)
    await agent.close()
    await agent.close()
    assert model.closed == 0


@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_a_number_of_tool_iterations_is_honoured(rounds: int) -> None:
    model = PlannedModel("FINAL", *([SUM] * 10))
    agent = CoagAgent("agent", model, tools=[add], max_tool_iterations=rounds)
    result = await run(agent)
    assert len(calls_in(result.messages)) == rounds
    assert isinstance(result.messages[-1], ToolCallSummaryMessage)
