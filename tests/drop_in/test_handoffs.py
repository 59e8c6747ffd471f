"""Handoffs: to whom, with which words, and what is carried along."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination
from autogen_agentchat.messages import HandoffMessage
from autogen_agentchat.teams import Swarm
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    UserMessage,
)
from kits.drop_in import NATIVE, WAYS, add, check_reusable, run, way_name, within
from kits.planned import PlannedModel

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
native = pytest.mark.parametrize("way", NATIVE, ids=way_name)
STOCK_WORDS = "Transferred to bob, adopting the role of bob immediately."


def handoff(message: Any) -> HandoffMessage:
    assert isinstance(message, HandoffMessage)
    return message


@all_ways
async def test_a_name_is_enough_and_words_of_its_own_are_taken(
    way: dict[str, Any],
) -> None:
    model = PlannedModel("FINAL", ("transfer_to_bob", {}))
    agent = CoagAgent("agent", model, handoffs=["bob"], **way)
    assert HandoffMessage in agent.produced_message_types
    message = handoff((await run(agent)).messages[-1])
    assert (message.target, message.content, message.context) == ("bob", STOCK_WORDS, [])
    await check_reusable(agent, model)
    own = Handoff(target="bob", name="go_bob", message="Over to you.", description="d")
    model = PlannedModel("FINAL", ("go_bob", {}))
    message = handoff((await run(CoagAgent("agent", model, handoffs=[own], **way))).messages[-1])
    assert (message.target, message.content) == ("bob", "Over to you.")


@native
async def test_the_results_of_tools_are_carried_along(way: dict[str, Any]) -> None:
    model = PlannedModel("FINAL", [("add", {"a": 1, "b": 2}), ("transfer_to_bob", {})])
    agent = CoagAgent("agent", model, handoffs=["bob"], tools=[add], **way)
    message = handoff((await run(agent)).messages[-1])
    calls, results = message.context
    assert isinstance(calls, AssistantMessage)
    assert isinstance(results, FunctionExecutionResultMessage)
    assert [r.content for r in results.content] == ["3"]
    for receiver in (CoagAgent, AssistantAgent):
        listener = PlannedModel()
        await within(receiver("bob", listener).run(task=message))
        assert "3" in listener.heard
        assert listener.violations == []


@all_ways
async def test_the_first_of_two_handoffs_wins(way: dict[str, Any]) -> None:
    model = PlannedModel("FINAL", [("transfer_to_bob", {}), ("transfer_to_eve", {})])
    agent = CoagAgent("agent", model, handoffs=["bob", "eve"], **way)
    with pytest.warns(UserWarning, match="Only the first is executed"):
        assert handoff((await run(agent)).messages[-1]).target == "bob"
    await check_reusable(agent, model)


async def test_what_a_handoff_brings_reaches_the_model() -> None:
    model = PlannedModel()
    carried: list[Any] = [
        UserMessage(content="token-1", source="user"),
        AssistantMessage(content="token-2", source="bob"),
    ]
    message = HandoffMessage(content="token-3", source="bob", target="agent", context=carried)
    await run(CoagAgent("agent", model), message)
    assert all(f"token-{n}" in model.heard for n in (1, 2, 3))
    assert model.violations == []


@pytest.mark.parametrize("other", [CoagAgent, AssistantAgent])
async def test_a_swarm_goes_from_hand_to_hand_and_back_to_a_person(other: Any) -> None:
    first = CoagAgent("one", PlannedModel("ONE", ("transfer_to_two", {})), handoffs=["two"])
    second = other("two", PlannedModel("TWO", ("transfer_to_user", {})), handoffs=["user"])
    ends = HandoffTermination("user") | MaxMessageTermination(9)
    team = Swarm([first, second], termination_condition=ends)
    result = await within(team.run(task="Go."))
    assert [handoff(m).target for m in result.messages if isinstance(m, HandoffMessage)] == [
        "two",
        "user",
    ]
    back = HandoffMessage(source="user", target="two", content="Here is what you wanted.")
    result = await within(team.run(task=back))
    assert result.messages[-1].source == "two"
