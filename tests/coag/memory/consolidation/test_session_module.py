"""Sessions behind the seam: support cases of an agent."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_core import CancellationToken
from kits.statements import memory_over

from coag import CoagAgent, ScriptedModel
from coag.errors import StateError
from coag.memory import LongTermMemory
from coag.memory.consolidation import SessionModule
from coag.memory.consolidation.sessions import events_of
from coag.schema import Percept, PerceptKind, Phase, Situation, SteppingClock, Trust

SITUATION = Situation(activity="main", goal="", cycle=1, phase=Phase.REASONING, query="")


def percept(text: str, source: str = "user", **fields: Any) -> Percept:
    fields = {"kind": PerceptKind.MESSAGE, "trust": Trust.USER, **fields}
    return Percept(id="p", at=SteppingClock().now(), source=source, content=text, **fields)


async def fill_session(module: SessionModule) -> None:
    await module.observe(percept("My order 4711 arrived broken. Thanks!"))
    await module.observe(
        percept(
            "order 4711: 40 euros",
            "find_order",
            kind=PerceptKind.TOOL_RETURN,
            trust=Trust.UNTRUSTED,
        )
    )
    await module.observe(percept("low battery", "sensor", kind=PerceptKind.SIGNAL))


async def test_what_was_perceived_in_a_case_is_shown_in_the_next(memory: LongTermMemory) -> None:
    module = SessionModule(memory, "case 1")
    assert await module.contribute(Phase.REASONING, SITUATION, 500) is None
    await fill_session(module)
    end = await module.end("case 2")
    assert module.session == "case 2"
    assert end.summary is not None
    assert "order 4711 arrived broken" in end.summary.text
    assert "Thanks" not in end.summary.text
    assert "battery" not in end.summary.text
    assert await module.contribute(Phase.EXECUTION, SITUATION, 500) is None
    section = await module.contribute(Phase.PROPOSAL, SITUATION, 500)
    assert section is not None
    assert "order 4711 arrived broken" in section.text
    assert section.trust is Trust.UNTRUSTED  # a tool's text is part of it


async def test_each_event_is_trusted_as_what_it_was_taken_from(memory: LongTermMemory) -> None:
    module = SessionModule(memory, "case 1")
    await fill_session(module)
    await module.end("case 2")
    said, found = await events_of(memory, "case 1")
    assert (said.provenance.trust, found.provenance.trust) == (Trust.USER, Trust.UNTRUSTED)
    assert found.provenance.source == "find_order"


async def test_a_session_continues_after_a_restart(memory: LongTermMemory) -> None:
    module, again = SessionModule(memory, "case 1"), SessionModule(memory, "another")
    await fill_session(module)
    again.load_state(module.save_state())
    assert again.session == "case 1"
    assert (await again.end("case 2")).summary is not None


async def test_a_state_of_something_else_and_a_name_that_is_taken_are_refused() -> None:
    module = SessionModule(memory_over(), "case 1")
    with pytest.raises(StateError, match="no state of 'sessions'"):
        module.load_state({"session": ""})
    for name in ("case 1", " "):
        with pytest.raises(ValueError, match="a name of its own"):
            await module.end(name)


async def test_an_agent_carries_its_sessions(memory: LongTermMemory) -> None:
    def script(request: Any) -> dict[str, Any]:
        asked.append(request.text)
        action = {"action": "respond", "arguments": '{"text": "Done."}', "score": 1.0}
        return {"situation": "A case.", "goal_status": "achieved", "candidates": [action]}

    asked: list[str] = []
    module = SessionModule(memory, "case 1")
    agent = CoagAgent(
        "desk", ScriptedModel(script), modules=[module], depth="compact", proposal="json"
    )
    await agent.run(task="My order 4711 arrived broken.")
    await module.end("case 2")
    await agent.on_reset(CancellationToken())
    asked.clear()
    await agent.run(task="Is there anything new?")
    assert any("order 4711 arrived broken" in text for text in asked)
    await agent.close()
