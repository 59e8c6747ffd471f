"""A mind that is saved, and gone on with in another agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.brains import brain, respond
from kits.turns import Idle, say, traced

from coag import CoagAgent, ScriptedModel
from coag.errors import StateError
from coag.memory import RuleChange
from coag.schema import ModelCall, Note, Outcome, Percept


async def fail() -> str:
    """Fails."""
    raise OSError("jammed")


class Tally(Idle):
    """A module whose state is a count."""

    def __init__(self) -> None:
        self.count = 0

    async def observe(self, event: Percept | Outcome) -> None:
        self.count += 1

    def save_state(self) -> Mapping[str, Any]:
        return {"count": self.count}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.count = state["count"]


def make(*cycles: Any, **options: Any) -> CoagAgent:
    return CoagAgent(
        "scout", brain(*cycles or [respond()]), tools=[fail], **options, proposal="json"
    )


async def test_the_whole_mind_comes_back_in_another_agent() -> None:
    tally, other = Tally(), Tally()
    first = make(("fail", "{}"), respond(), modules=[tally])
    change = RuleChange(operation="add", rule="Try twice.")
    first.procedures.change_rule("reasoning", change, author="test", reason="so")
    await say(first)
    state = json.loads(json.dumps(await first.save_state()))
    second = make(modules=[other])
    await second.load_state(state)
    assert second.context.working_memory == first.context.working_memory
    assert second.context.state == first.context.state
    assert "Try twice." in second.procedures.get("reasoning").text
    assert other.count == tally.count > 0
    assert second.turn == 1
    assert json.loads(json.dumps(await second.save_state())) == state


async def test_ids_continue_where_they_were() -> None:
    first = make()
    await say(first)
    second = make()
    await second.load_state(await first.save_state())
    await say(second)
    before = {one.id for one in (*traced(first, Percept), *traced(first, ModelCall))}
    after = {one.id for one in (*traced(second, Percept), *traced(second, ModelCall))}
    assert before.isdisjoint(after)


async def test_a_failure_that_was_saved_still_counts() -> None:
    first = make(("fail", "{}"), ("fail", "{}"), ("fail", "{}"), respond())
    await say(first)
    second = make([("fail", "{}"), respond()])
    await second.load_state(await first.save_state())
    await say(second)
    (rejected, *_) = second.context.working_memory.rejections
    assert (rejected.action, rejected.constraint) == ("fail", "progress")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
@settings(max_examples=15)
def test_whatever_was_said_comes_back(texts: list[str]) -> None:
    async def live() -> None:
        first, second = make(), make()
        for text in texts:
            await say(first, text)
        state = json.loads(json.dumps(await first.save_state()))
        await second.load_state(state)
        assert second.context.working_memory == first.context.working_memory
        assert json.loads(json.dumps(await second.save_state())) == state

    asyncio.run(live())


async def test_an_assistant_agents_state_becomes_the_dialogue() -> None:
    stock = AssistantAgent("scout", ScriptedModel(lambda request: "Hello, Ada."))
    await stock.on_messages([TextMessage(content="I am Ada.", source="user")], CancellationToken())
    model = brain(respond())
    agent = CoagAgent("scout", model, proposal="json")
    await agent.load_state(await stock.save_state())
    dialogue = agent.context.working_memory.dialogue
    assert [(u.content, u.own) for u in dialogue] == [("I am Ada.", False), ("Hello, Ada.", True)]
    assert await say(agent, "Who am I?") == "Done."
    assert agent.context.working_memory.goal == "Who am I?"
    assert "I am Ada." in model.requests[0].text


async def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(StateError, match="has no 'llm_context'"):
        await make().load_state({"type": "Something"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "but a NoneType"),
        ([], "but a list"),
        ({"llm_context": {"x": 1}, "modules": 5}, r"modules: .* \(got 5\)"),
        ({"llm_context": {"x": 1}, "turn": "x"}, r"turn: .* \(got 'x'\)"),
    ],
)
async def test_a_state_whose_fields_cannot_be_is_refused_with_the_field(
    wrong: Any, message: str
) -> None:
    with pytest.raises(StateError, match=message):
        await make().load_state(wrong)


async def test_a_state_says_where_the_long_term_memory_is_and_holds_none_of_it(
    tmp_path: Path,
) -> None:
    agent = make(memory=tmp_path / "mind")
    await say(agent)
    state = await agent.save_state()
    assert state["long_term_memory"] == str(tmp_path / "mind" / "long_term")
    other = make()
    await other.load_state(state)
    (note,) = traced(other, Note)
    assert "this one's is in 'RAM'" in note.text
    await agent.close()
