"""A turn that is cancelled while it closes is closed all the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import UserMessage
from hypothesis import example, given
from hypothesis import strategies as st
from kits.banks import AccountContext, Bank
from kits.turns import Idle, traced

from coag import CoagAgent, ScriptedModel
from coag.context import WorkingMemory, rebuild
from coag.models import ScriptedReply, ScriptedRequest, scripted_answers
from coag.proof import examine
from coag.schema import (
    Outcome,
    Percept,
    Snapshot,
    TurnEnd,
    TurnStart,
)


class Slow(Idle):
    """A module that waits at every notification."""

    def __init__(self, waits: int) -> None:
        self.waits = waits

    async def observe(self, event: Percept | Outcome) -> None:
        for _ in range(self.waits):
            await asyncio.sleep(0)


def teller(fails: bool, waits: int) -> CoagAgent:
    def model(request: ScriptedRequest) -> ScriptedReply:
        if fails and "Again." not in request.text:
            raise ConnectionError("the server is gone")
        return "Done."

    return CoagAgent(
        "teller",
        ScriptedModel(model),
        tools=Bank().tools(),
        model_context=AccountContext(),
        modules=[Slow(waits)],
        depth="compact",
    )


@given(st.booleans(), st.integers(0, 4), st.lists(st.integers(0, 25), min_size=1, max_size=3))
@example(fails=False, waits=1, steps=[11, 0, 1])
async def test_cancelled_again_and_again_a_turn_is_whole_and_the_next_one_begins(
    fails: bool, waits: int, steps: list[int]
) -> None:
    agent = teller(fails, waits)
    token = CancellationToken()
    turn = asyncio.create_task(
        agent.on_messages([TextMessage(content="Go.", source="user")], token)
    )
    for number, count in enumerate(steps):
        for _ in range(count):
            await asyncio.sleep(0)
        token.cancel() if number == 0 else turn.cancel()
    await asyncio.wait([turn])
    if not turn.cancelled():
        turn.exception()  # whatever it was, it is known
    result = await agent.run(task="Again.")
    assert result.messages[-1].to_text() == "Done."
    assert not examine(agent.trace).violations
    assert len(traced(agent, TurnStart)) == len(traced(agent, TurnEnd))


async def test_a_message_that_is_added_leaves_a_line_and_a_replay_knows_it() -> None:
    agent = teller(fails=False, waits=0)
    await agent.run(task="Go.")
    before = len(agent.trace)
    await agent.context.add_message(UserMessage(content="By the way.", source="user"))
    added = [r for r in list(agent.trace)[before:] if isinstance(r, Percept)]
    assert [percept.content for percept in added] == ["By the way."]
    assert agent.context.working_memory.dialogue[-1].content == "By the way."
    messages = await agent.context.get_messages()
    assert [m.content for m in messages].count("By the way.") == 1
    assert not examine(agent.trace).violations
    start = WorkingMemory.model_validate(traced(agent, Snapshot)[0].working_memory)
    assert rebuild(start, agent.trace) == agent.context.working_memory


async def test_arguments_too_long_to_be_read_back_are_refused(
    tmp_path: Path,
) -> None:
    long = FunctionCall(id="1", name="pay", arguments='{"amount": 1, "x": "' + "y" * 300_000 + '"}')
    bank = Bank()
    agent = CoagAgent(
        "teller",
        ScriptedModel(scripted_answers([[long] * 3, "Done."])),
        tools=bank.tools(),
        model_context=AccountContext(),
        depth="compact",
        logs=tmp_path,
    )
    await agent.run(task="Pay.")
    await agent.close()
    assert bank.paid == []
    assert agent.run_folder is not None
    trace = agent.run_folder.trace_path
    assert max(map(len, trace.read_bytes().splitlines())) < 5_000_000
    assert "200,000 characters or more" in trace.read_text()
