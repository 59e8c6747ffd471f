"""An action that waits ends the turn and leaves the goal open; what arrives is perceived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond

from coag import CoagAgent
from coag.proof import verify
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Section,
    Situation,
    SystemClock,
    Trust,
)


class Waiting:
    """A module with an action that waits, and percepts that arrive."""

    name = "waiting"

    def __init__(self) -> None:
        self.arrived: list[Percept] = []
        self.seen: list[str] = []

    def action_specs(self) -> Sequence[ActionSpec]:
        return [ActionSpec(name="wait", description="Waits.", internal=True, repeatable=True)]

    async def run_action(self, call: ActionCall) -> ActionResult:
        return ActionResult(content="Waiting for the bell.", suspends=True)

    async def take_percepts(self) -> Sequence[Percept]:
        return [one for one in self.arrived if one.id not in self.seen]

    async def observe(self, event: Percept | Outcome) -> None:
        if isinstance(event, Percept):
            self.seen.append(event.id)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass


def task(text: str) -> TextMessage:
    """What the user asks for."""
    return TextMessage(content=text, source="user")


def bell(number: int) -> Percept:
    """A signal that rings."""
    return Percept(
        id=f"bell/{number}",
        at=SystemClock().now(),
        kind=PerceptKind.SIGNAL,
        source="bell",
        trust=Trust.UNTRUSTED,
        content=f"Ring {number}.",
    )


async def test_what_arrived_meanwhile_is_perceived_once_before_the_next_cycle() -> None:
    module = Waiting()
    model = brain([("wait", "{}")], respond("Answered."))
    agent = CoagAgent("keeper", model, modules=[module], proposal="json")
    await agent.on_messages([task("Answer the bell.")], CancellationToken())
    module.arrived = [bell(1)]

    response = await agent.on_messages([], CancellationToken())

    assert response.chat_message.to_text() == "Answered."
    assert module.seen.count("bell/1") == 1
    assert "Ring 1." in model.requests[-1].text


async def test_a_run_with_waits_is_verified(tmp_path: Path) -> None:
    module = Waiting()
    model = brain([("wait", "{}")], respond("Answered."))
    agent = CoagAgent("keeper", model, modules=[module], logs=tmp_path, proposal="json")
    await agent.on_messages([task("Answer the bell.")], CancellationToken())
    module.arrived = [bell(1)]
    await agent.on_messages([], CancellationToken())
    assert agent.run_folder is not None
    folder = agent.run_folder.path
    await agent.close()

    assert verify(folder) == []
