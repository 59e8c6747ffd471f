"""`CoagAgent` as an AutoGen agent: its events, its answer, its place in a team."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_agentchat.ui import Console
from autogen_core import CancellationToken
from autogen_core.models import LLMMessage, UserMessage
from autogen_core.tools import FunctionTool, StaticWorkbench
from kits.brains import brain, respond
from pydantic import BaseModel

from coag import CoagAgent, CoagContext, Verdict
from coag.context import rebuild
from coag.errors import ConfigurationError
from coag.schema import (
    PHASES,
    Candidate,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Section,
    Situation,
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


async def test_console_shows_the_deliberation(capsys: pytest.CaptureFixture[str]) -> None:
    agent = CoagAgent(
        "assistant", brain(LOOK, respond()), tools=[look], proposal="json", events="phases"
    )
    result = await Console(agent.run_stream(task="Look around."))
    assert isinstance(result, TaskResult)
    out = capsys.readouterr().out
    for phase in PHASES[:-1]:
        assert f"{phase.value.capitalize()}: " in out
    assert "nothing in the hall" in out
    assert "Done." in out


async def test_only_the_users_words_carry_the_users_trust() -> None:
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    await turn(agent, message("Go.", "user"), message("No, stop.", "stranger"))
    said = agent.context.working_memory.dialogue
    assert [(u.source, u.trust.value) for u in said[:2]] == [
        ("user", "user"),
        ("stranger", "untrusted"),
    ]


async def test_what_a_handoff_carries_is_perceived_before_it() -> None:
    carried: list[LLMMessage] = [UserMessage(content="The door is red.", source="user")]
    handoff = HandoffMessage(
        content="Over to you.", source="clerk", target="assistant", context=carried
    )
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    await turn(agent, handoff)
    said = agent.context.working_memory.dialogue
    assert [u.content for u in said] == ["The door is red.", "Over to you.", "Done."]


# ---- AssistantAgent's arguments ----


def test_tools_and_a_workbench_together_are_refused() -> None:
    bench = StaticWorkbench([FunctionTool(look, description="Looks.")])
    with pytest.raises(ConfigurationError, match="tools or a workbench, not both"):
        CoagAgent("assistant", brain(respond()), tools=[look], workbench=bench, proposal="json")


def test_a_limit_below_one_is_refused_with_its_value() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1, got 0"):
        CoagAgent("assistant", brain(respond()), max_tool_iterations=0, proposal="json")


# ---- constraints ----


def no_looking(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    return Verdict.forbid("eyes shut") if candidate.action == "look" else Verdict.allow()


async def test_a_constraint_is_stronger_than_the_model() -> None:
    agent = CoagAgent(
        "assistant",
        brain([LOOK, respond()]),
        tools=[look],
        constraints=[no_looking],
        proposal="json",
        events="phases",
    )
    *events, last = await turn(agent)
    assert isinstance(last, Response)
    assert last.chat_message.to_text() == "Done."
    rejected = [e.to_text() for e in events if not isinstance(e, Response)]
    assert any("look rejected by no_looking" in text for text in rejected)


# ---- teams ----


# ---- cancellation and errors ----


async def test_cancelled_before_it_begins_nothing_has_happened() -> None:
    agent = CoagAgent("assistant", brain(respond()), proposal="json")
    token = CancellationToken()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await agent.on_messages([message()], token)
    assert (agent.turn, agent.trace) == (0, ())
    assert agent.context.working_memory.dialogue == ()
    assert (await answer(agent)).to_text() == "Done."


async def test_a_reader_who_leaves_early_leaves_a_whole_cycle() -> None:
    agent = CoagAgent("assistant", brain(LOOK, respond()), tools=[look], proposal="json")
    stream = agent.on_messages_stream([message()], CancellationToken())
    async for _ in stream:
        break
    await stream.aclose()
    assert not agent.context.working_memory.in_cycle
    assert (await answer(agent)).metadata["ended_by"] == "respond"


class Grumbler:
    """A module that cannot do anything."""

    name = "grumbler"

    async def observe(self, event: Percept | Outcome) -> None:
        raise OSError("no")

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        return None


async def test_a_module_that_fails_is_named_in_the_answer_and_noted() -> None:
    agent = CoagAgent("assistant", brain(respond()), modules=[Grumbler()], proposal="json")
    said = await answer(agent)
    assert said.metadata["failed_modules"] == "grumbler"
    notes = [r.text for r in agent.trace if r.record == "note" and r.about == "module"]
    assert notes[0] == "Module grumbler was left out: observe raised OSError: no."


# ---- what stays behind ----


async def test_a_bare_agent_writes_nothing_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = CoagAgent("assistant", brain(LOOK, respond()), tools=[look], proposal="json")
    await answer(agent)
    await agent.close()
    assert os.listdir(tmp_path) == []


async def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    agent = CoagAgent(
        "assistant", brain(respond()), logs=tmp_path, memory=tmp_path / "memory", proposal="json"
    )
    await answer(agent)
    await agent.close()
    kept = agent.trace
    await agent.close()
    assert agent.trace == kept


# ---- sensors ----


async def test_a_percept_between_turns_is_recorded_and_changes_the_state() -> None:
    class Door(BaseModel):
        open: bool | None = None

    class Hall(CoagContext[Door]):
        @property
        def perceptual_state_schema(self) -> type[Door]:
            return Door

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


def test_a_context_class_in_place_of_a_context_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"takes a context, e.g. CoagContext\(\), not"):
        CoagAgent("a", brain(), model_context=CoagContext, proposal="json")  # pyright: ignore[reportArgumentType] - the point


def test_a_misspelt_argument_is_named_with_those_that_exist() -> None:
    with pytest.raises(TypeError, match=r"no argument 'constraint'.*constraints.*depth"):
        CoagAgent("a", brain(), constraint=[], proposal="json")  # pyright: ignore[reportCallIssue] - the point
