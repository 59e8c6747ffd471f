"""`CoagAgent` as an AutoGen agent: its events, its answer, its place in a team."""

from __future__ import annotations

from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import CancellationToken
from kits.brains import brain, respond
from kits.turns import Idle
from pydantic import BaseModel

from coag import CoagAgent, CoagContext
from coag.context import rebuild
from coag.schema import (
    PHASES,
    Outcome,
    Percept,
    PerceptKind,
    SystemClock,
    Trust,
)

TOLD = "TERMINATE now"


async def look(where: str) -> str:
    """Looks somewhere."""
    return f"nothing in the {where}"


LOOK = ("look", '{"where": "hall"}')


def message(text: str = "Look around.", source: str = "user") -> TextMessage:
    return TextMessage(content=text, source=source)


async def turn(
    agent: CoagAgent, *messages: BaseChatMessage
) -> list[BaseAgentEvent | BaseChatMessage | Response]:
    stream = agent.on_messages_stream(messages or [message()], CancellationToken())
    return [item async for item in stream]


async def answer(agent: CoagAgent, text: str = "Look around.") -> BaseChatMessage:
    return (await agent.on_messages([message(text)], CancellationToken())).chat_message


# ---- one turn ----


async def test_every_phase_is_shown_by_a_stock_event() -> None:
    *events, _ = await turn(
        CoagAgent(
            "assistant", brain(LOOK, respond()), tools=[look], proposal="json", events="phases"
        )
    )
    kinds = {ThoughtEvent, ToolCallRequestEvent, ToolCallExecutionEvent}
    assert {type(event) for event in events} == kinds
    thoughts = [e for e in events if isinstance(e, ThoughtEvent)]
    phases = [thought.metadata["phase"] for thought in thoughts]
    assert phases == [p.value for p in PHASES[:-1]] + [p.value for p in PHASES]
    assert thoughts[3].content == "Evaluation: 1 of 1 candidate(s) survived."
    assert thoughts[4].content == "Selection: look, decided by only_survivor."


async def test_no_event_says_what_the_model_wrote_but_its_metadata_does() -> None:
    model = brain([("TERMINATE now", "{}"), respond()], situation=TOLD)
    *events, _ = await turn(CoagAgent("assistant", model, proposal="json", events="phases"))
    thoughts = [e for e in events if isinstance(e, ThoughtEvent)]
    assert "an unknown action" in thoughts[2].content
    assert not any("TERMINATE" in thought.to_text() for thought in thoughts)
    assert thoughts[1].metadata["detail"] == TOLD
    assert "TERMINATE now" in thoughts[2].metadata["detail"]


class Grumbler(Idle):
    """A module that cannot do anything."""

    name = "grumbler"

    async def observe(self, event: Percept | Outcome) -> None:
        raise OSError("no")


async def test_a_module_that_fails_is_named_in_the_answer_and_noted() -> None:
    agent = CoagAgent("assistant", brain(respond()), modules=[Grumbler()], proposal="json")
    said = await answer(agent)
    assert said.metadata["failed_modules"] == "grumbler"
    notes = [r.text for r in agent.trace if r.record == "note" and r.about == "module"]
    assert notes[0] == "Module grumbler was left out: observe raised OSError: no."


async def test_a_percept_between_turns_is_recorded_and_changes_the_state() -> None:
    class Door(BaseModel):
        open: bool | None = None

    class Hall(CoagContext[Door]):
        def _update_state_from_percept(self, state: Door, percept: Percept) -> Door:
            return Door(open=percept.data)

    agent = CoagAgent("porter", brain(respond()), model_context=Hall(), proposal="json")
    start = agent.context.working_memory
    moved = Percept(
        id="door-1",
        at=SystemClock().now(),
        kind=PerceptKind.PROPERTY_CHANGE,
        source="door",
        trust=Trust.UNTRUSTED,
        content="The door is open.",
        data=True,
    )

    await agent.perceive(moved)

    assert agent.context.state == Door(open=True)
    assert rebuild(start, agent.trace) == agent.context.working_memory
