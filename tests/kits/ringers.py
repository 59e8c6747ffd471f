"""An agent with a module that acts: each ring of its bell is a line in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coag.agent import CoagAgent
from coag.models import ScriptedModel, ScriptedRequest
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Outcome,
    Percept,
    Phase,
    Section,
    Situation,
)
from coag.tracing import Recipe


class Bell:
    """A module whose action has an effect; it forgets to say that it is internal."""

    name = "bell"

    def __init__(self, log: Path) -> None:
        self.log = log

    async def observe(self, event: Percept | Outcome) -> None:
        pass

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass

    def action_specs(self) -> Sequence[ActionSpec]:
        return [ActionSpec(name="ring", description="Rings.")]

    async def run_action(self, call: ActionCall) -> ActionResult:
        with self.log.open("a") as file:
            file.write(f"{call.id}\n")
        return ActionResult(content="It has rung.")


def _think(request: ScriptedRequest) -> dict[str, Any]:
    known = "It has rung." in request.text or "may or may not" in request.text
    wanted = {"action": "respond", "arguments": {"text": "Done."}} if known else {"action": "ring"}
    return {"situation": "s", "candidates": [wanted]}


def ringer(*, log: str, logs: str) -> CoagAgent:
    """Rings once, unless it knows or has to fear that it has; its recipe builds it again."""
    return CoagAgent(
        "ringer",
        ScriptedModel(_think),
        modules=[Bell(Path(log))],
        depth="compact",
        proposal="json",
        logs=logs,
        recipe=Recipe(factory="kits.ringers:ringer", arguments={"log": log, "logs": logs}),
    )
