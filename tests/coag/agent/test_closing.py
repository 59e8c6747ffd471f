"""A turn that is cancelled while it closes is closed all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from hypothesis import given
from hypothesis import strategies as st
from kits.banks import AccountContext, Bank

from coag import CoagAgent, ScriptedModel
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import examine
from coag.schema import Outcome, Percept, Phase, Section, Situation, TurnEnd, TurnStart


class Slow:
    """A module that waits whenever it is told of something."""

    name = "slow"

    def __init__(self, waits: int) -> None:
        self.waits = waits

    async def observe(self, event: Percept | Outcome) -> None:
        for _ in range(self.waits):
            await asyncio.sleep(0)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass


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
    turn.cancelled() or turn.exception()
    result = await agent.run(task="Again.")
    assert result.messages[-1].to_text() == "Done."
    records = list(agent.trace)
    assert not examine(records).violations
    begun = [r for r in records if isinstance(r, TurnStart)]
    assert len(begun) == len([r for r in records if isinstance(r, TurnEnd)])
