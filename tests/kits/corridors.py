"""A corridor for tests of `depth="auto"`: an agent walks it to its east end and says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from coag.agent import CoagAgent
from coag.context import CoagContext
from coag.judgment import DepthModule
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import Candidate, Constraint, Percept, Verdict
from coag.tracing import Recipe

END = 2
Way = Literal["east", "west"]
CALLS = ("ReasoningAnswer", "ProposalAnswer", "EvaluationAnswer", "SelectionAnswer")
"""What full deliberation asks."""
ONE = ("DeliberationAnswer",)


class Spot(BaseModel):
    """Where the walker is."""

    model_config = ConfigDict(frozen=True)

    at: int = 0


class CorridorContext(CoagContext[Spot]):
    """Reads the place from results; foresees each step, and values what is nearer to the end."""

    def __init__(self, at: int = 0) -> None:
        self._first = Spot(at=at)
        super().__init__()

    def _initial_state(self) -> Spot:
        return self._first

    def _update_state_from_function_result(self, state: Spot, percept: Percept) -> Spot:
        place = percept.content.rpartition("at ")[2]
        return Spot(at=int(place)) if place.lstrip("-").isdecimal() else state

    def _project(self, candidate: Candidate, state: Spot) -> Spot | None:
        if candidate.action != "step":
            return state
        by = 1 if (candidate.arguments or {})["way"] == "east" else -1
        return Spot(at=state.at + by)

    def _value(self, state: Spot) -> float | None:
        return -abs(END - state.at) / 2


class Corridor:
    """The world: counts what was done, and can hold the walker back."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.raises = 0
        """Steps that will fail, but move the walker."""
        self.held = 0
        """Steps that will have no effect."""
        self.steps: list[str] = []

    def step(self, way: Way) -> str:
        """Takes a step."""
        self.steps.append(way)
        if self.raises:
            self.raises -= 1
            self.at += 1
            raise RuntimeError(f"you stumbled at {self.at}")
        if self.held:
            self.held -= 1
        else:
            self.at += 1 if way == "east" else -1
        return f"You are at {self.at}"


def east_only(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    """No step back."""
    west = (candidate.arguments or {}).get("way") == "west"
    return Verdict.forbid("that is the way back") if west else Verdict.allow()


def walk_first(candidate: Candidate, state: Spot, projection: Any) -> Verdict:
    """No answer before the end."""
    early = candidate.action == "respond" and state.at < END
    return Verdict.forbid("not there yet") if early else Verdict.allow()


def step(way: str = "east", score: float = 0.9) -> dict[str, Any]:
    """A candidate."""
    return {"action": "step", "arguments": json.dumps({"way": way}), "score": score}


def done(score: float = 0.9, text: str = "There.") -> dict[str, Any]:
    """The answer as a candidate."""
    return {"action": "respond", "arguments": json.dumps({"text": text}), "score": score}


def agrees(request: object) -> bool:
    """An approver who agrees to everything."""
    return True


Think = Callable[[ScriptedRequest], Sequence[dict[str, Any]]]


def eastward(request: ScriptedRequest) -> Sequence[dict[str, Any]]:
    """Walks on until it is at the end."""
    return [done() if f'"at":{END}' in request.text else step()]


def walker(
    think: Think = eastward,
    world: Corridor | None = None,
    *,
    judge: Callable[[int], float] = lambda number: 1 / number,
    **further: Any,
) -> tuple[CoagAgent, ScriptedModel, Corridor]:
    """A walker with its model and its world."""

    def answer(request: ScriptedRequest) -> ScriptedReply:
        seen: dict[str, Any] = {"situation": "A corridor.", "risks": [], "goal_status": "open"}
        judged = [{"candidate": n, "score": judge(n)} for n in range(1, 4)]
        replies: dict[str, dict[str, Any]] = {
            "ReasoningAnswer": seen,
            "EvaluationAnswer": {"evaluations": judged},
            "SelectionAnswer": {"reason": "so", "choice": 1},
        }
        return replies.get(request.schema_name or "") or {**seen, "candidates": think(request)}

    world, model = world or Corridor(), ScriptedModel(answer)
    settings: dict[str, Any] = {"depth": "auto", "proposal": "json", "model_context": None}
    settings |= {"tools": [world.step], **further}
    settings["model_context"] = settings["model_context"] or CorridorContext(world.at)
    return CoagAgent("walker", model, **settings), model, world


def recipe_walker(logs: str, rules: bool = True, depths: str = "") -> CoagAgent:
    """The walker that a recipe builds again; perhaps it learns which depth pays."""
    constraints: list[Constraint] = [east_only, walk_first] if rules else []
    arguments = {"logs": logs, "rules": rules, "depths": depths}
    recipe = Recipe(factory="kits.corridors:recipe_walker", arguments=arguments)
    further: dict[str, Any] = {"constraints": constraints}
    if depths:
        further = {"modules": [DepthModule(depths)], "reflex_gain": None}
    return walker(logs=Path(logs), recipe=recipe, **further)[0]


def asked(model: ScriptedModel) -> tuple[str | None, ...]:
    """The forms that the model was asked for, in order."""
    return tuple(request.schema_name for request in model.requests)
