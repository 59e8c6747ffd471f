"""State: JSON, whole, replaced by loading, and read both ways by AssistantAgent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from kits.drop_in import (
    WAYS,
    add,
    check_reusable,
    letters,
    run,
    text_message,
    way_name,
    within,
)
from kits.planned import Planned, PlannedModel
from kits.waiting import until

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


@all_ways
async def test_a_state_is_a_snapshot_that_takes_the_place_of_another(
    way: dict[str, Any],
) -> None:
    first = CoagAgent("agent", PlannedModel("Hello, Ada."), **way)
    await run(first, "I am Ada.")
    state = await first.save_state()
    before = json.dumps(state)
    await run(first, "I like apples.")
    assert json.dumps(state) == before
    model = PlannedModel()
    second = CoagAgent("agent", model, **way)
    await run(second, "I like pears.")
    earlier = len(model.asked)
    await second.load_state(through_json(state))
    await run(second, "Who am I?")
    prompts = "".join(one.text for one in model.asked[earlier:])
    assert "I am Ada." in prompts
    assert "Hello, Ada." in prompts
    assert "pears" not in prompts
    assert "apples" not in prompts
    assert model.violations == []


@all_ways
async def test_a_state_after_tools_failures_and_a_handoff_is_legal(way: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"tools": [add], "handoffs": ["bob"], **way}
    plan: list[Planned] = [("add", {"a": 1, "b": 2}), ("ghost", {}), ("transfer_to_bob", {})]
    first = CoagAgent("agent", PlannedModel("FINAL", *plan), **settings)
    await run(first, "Count.")
    second = CoagAgent("agent", again := PlannedModel(), **settings)
    await second.load_state(through_json(await first.save_state()))
    await check_reusable(second, again)


@all_ways
@pytest.mark.parametrize("where", ["model", "tool"])
async def test_a_state_that_is_saved_while_the_agent_works_can_be_continued(
    way: dict[str, Any], where: str
) -> None:
    at_work = asyncio.Event()

    async def dig() -> str:
        """Digs."""
        at_work.set()
        await asyncio.sleep(30)
        return "dug"

    plan: list[Planned] = [] if where == "model" else [("dig", {})]
    model = PlannedModel("FINAL", *plan)
    model.seconds = 30.0 if where == "model" else 0.0
    first, token = CoagAgent("agent", model, tools=[dig], **way), CancellationToken()
    digging = first.run(task="Dig for 4711.", cancellation_token=token)
    task: asyncio.Task[Any] = asyncio.create_task(digging)
    await until(lambda: bool(model.at_work) if where == "model" else at_work.is_set())
    state = through_json(await first.save_state())
    token.cancel()
    await asyncio.wait({task})
    second = CoagAgent("agent", again := PlannedModel(), tools=[dig], **way)
    await second.load_state(state)
    await check_reusable(second, again)
    assert "Dig for 4711." in again.heard


async def test_the_size_of_a_state_does_not_grow_with_what_was_done() -> None:
    model = PlannedModel()
    agent = CoagAgent("agent", model, tools=[letters], depth="compact")
    sizes: list[int] = []
    for number in range(60):
        model.then(("letters", {"count": 9_000}))
        await run(agent, f"Turn {number:03}.")
        if number in (29, 59):
            sizes.append(len(json.dumps(await agent.save_state())))
    assert sizes[1] < 1.2 * sizes[0]


# ---- AssistantAgent ----


async def test_an_assistant_agents_state_is_continued_tools_included() -> None:
    stock = AssistantAgent(
        "agent", PlannedModel("Hello, Ada.", ("add", {"a": 40, "b": 2})), tools=[add],
        reflect_on_tool_use=True,
    )  # fmt: skip
    await stock.run(task="I am Ada.")
    model = PlannedModel()
    agent = CoagAgent("agent", model, tools=[add])
    await agent.load_state(through_json(await stock.save_state()))
    await run(agent, "Who am I?")
    for known in ("I am Ada.", "Hello, Ada.", "42"):
        assert known in model.heard
    assert model.violations == []


@all_ways
async def test_an_assistant_agent_continues_our_state(way: dict[str, Any]) -> None:
    agent = CoagAgent(
        "agent", PlannedModel("Hello, Ada.", ("add", {"a": 1, "b": 2})), tools=[add], **way
    )
    await run(agent, "I am Ada.")
    model = PlannedModel()
    stock = AssistantAgent("agent", model)
    await stock.load_state(through_json(await agent.save_state()))
    await within(stock.run(task="Who am I?"))
    assert "I am Ada." in model.heard
    assert "Hello, Ada." in model.heard
    assert model.violations == []


def buffered() -> BufferedChatCompletionContext:
    return BufferedChatCompletionContext(9)


@pytest.mark.parametrize("context", [UnboundedChatCompletionContext, buffered])
async def test_the_state_holds_what_a_given_context_holds(context: Any) -> None:
    first = CoagAgent("agent", PlannedModel("Hello, Ada."), model_context=context())
    await run(first, "I am Ada.")
    state = through_json(await first.save_state())
    for agent_type in (CoagAgent, AssistantAgent):
        model, given = PlannedModel(), context()
        second = agent_type("agent", model, model_context=given)
        await second.load_state(state)
        await within(second.run(task="Who am I?"))
        assert "I am Ada." in model.heard
        assert [m.content for m in await given.get_messages()] == [
            "I am Ada.", "Hello, Ada.", "Who am I?", "FINAL",
        ]  # fmt: skip


# ---- teams ----


@pytest.mark.parametrize("mixed", [True, False])
async def test_a_team_continues_in_the_middle_of_its_conversation(mixed: bool) -> None:
    def team(*answers: str) -> tuple[RoundRobinGroupChat, list[PlannedModel]]:
        models = [PlannedModel(answer) for answer in answers]
        other: Any = AssistantAgent if mixed else CoagAgent
        one, two = CoagAgent("one", models[0]), other("two", models[1])
        return RoundRobinGroupChat([one, two], max_turns=1), models

    first, _ = team("ONE-SAYS", "TWO-SAYS")
    await within(first.run(task="Begin 4711."))
    second, models = team("ONE-AGAIN", "TWO-AGAIN")
    await second.load_state(through_json(await first.save_state()))
    result = await within(second.run(task="Go on."))
    assert result.messages[-1].source == "two"
    assert "Begin 4711." in models[1].heard
    assert "ONE-SAYS" in models[1].heard
    assert models[1].violations == []


async def test_an_agents_turns_can_be_taken_in_several_loops() -> None:
    agent = CoagAgent("agent", PlannedModel(), tools=[add])

    def turn(text: str) -> str:
        async def live() -> str:
            response = await agent.on_messages([text_message(text)], CancellationToken())
            return response.chat_message.to_text()

        return asyncio.run(live())

    answers = await asyncio.to_thread(lambda: [turn("One."), turn("Two.")])
    assert answers == ["FINAL", "FINAL"]
