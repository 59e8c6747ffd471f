"""MiniGrid as a domain of CoAG: its state, its forward model, its rules. That is all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from coag.context import CoagContext
from coag.schema import Candidate, Percept, Verdict

from ._chart import GOAL, LAVA, NOTHING, Cell, Chart, Facing, beside
from ._physics import ACTIONS, UNSEEN, Scene
from ._reading import Over, Reading

_ENDS: Mapping[str, Over] = {LAVA: "death", GOAL: "success"}


class MiniGridState(BaseModel):
    """What the agent perceives of itself, of the cell ahead, and of the grid so far."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    at: Cell = (0, 0)
    """Its cell, counted from where it started."""
    facing: Facing = "east"
    """Where it looks."""
    carrying: str = NOTHING
    """What it has in hand."""
    ahead: str = UNSEEN
    """What is in the cell that it looks at."""
    things: dict[str, str] | None = None
    """Only in predictions: where each thing would lie as seen from there."""
    problem: str | None = None
    """Why the latest action did nothing; in predictions, why the next one would."""
    over: Over | None = None
    """How the episode ended; None until then."""
    seen: Chart | None = None
    """All that was seen so far; None in predictions, since only the eyes can change it."""

    def reading(self) -> Reading:
        """The same as one reading that shows all that was seen."""
        own = self.model_dump(include={"at", "facing", "carrying", "over"}, exclude_none=True)
        return Reading(chart=self.seen or Chart(), **own)

    def after(self, reading: Reading, problem: str | None = None) -> MiniGridState:
        """The state after a reading; what was seen before stays on the chart."""
        chart = reading.chart if self.seen is None else self.seen.with_seen(reading.chart)
        return MiniGridState(
            at=reading.at,
            facing=reading.facing,
            carrying=reading.carrying,
            ahead=chart.cells().get(beside(reading.at, reading.facing), UNSEEN),
            problem=problem,
            over=reading.over or None,
            seen=chart,
        )


class MiniGridContext(CoagContext[MiniGridState]):
    """Working memory of an agent in MiniGrid.

    Args:
        reading: What it sees when the episode begins; None if it has not looked yet.
        **context: See `CoagContext`.
    """

    def __init__(self, *, reading: Reading | None = None, **context: Any) -> None:
        self._first = MiniGridState().after(reading) if reading else MiniGridState()
        super().__init__(**context)

    def _initial_state(self) -> MiniGridState:
        return self._first

    def _update_state_from_function_result(
        self, state: MiniGridState, percept: Percept
    ) -> MiniGridState:
        fields: Any = percept.data
        if not isinstance(fields, dict) or "at" not in fields:
            return state
        problem = f"{percept.source}: {fields['reason']}" if percept.is_error else None
        return state.after(Reading.model_validate(fields), problem)

    def _get_state_description(self, state: MiniGridState) -> str:
        if state.seen is None:
            return "Nothing has been seen yet: look."
        reading = state.reading()
        failed = [f"The latest action failed. {state.problem}"] if state.problem else []
        return "\n".join([reading.words(), *failed, f"Seen so far: {reading.line()}"])

    def _get_retrieval_query(self, state: MiniGridState) -> str:
        return f"{self._memory.goal[:200]}\nAhead: {state.ahead}. Carrying: {state.carrying}."

    def _project(self, candidate: Candidate, state: MiniGridState) -> MiniGridState | None:
        if candidate.action not in ACTIONS:
            return state.model_copy(update={"seen": None, "problem": None})
        if state.seen is None:
            return None
        grid, here = state.seen.cells(), Scene(state.at, state.facing, state.carrying)
        there, problem = here.after(grid, candidate.action)
        return MiniGridState(
            at=there.at,
            facing=there.facing,
            carrying=there.carrying,
            ahead=there.what(grid, there.ahead),
            things=there.things(grid),
            problem=problem or None,
            over=_ENDS.get(there.what(grid, there.at)),
        )

    def _propose_grounded(self, state: MiniGridState) -> Sequence[Candidate]:
        """Every action that would do something."""
        offered = [Candidate(id=action, action=action) for action in ACTIONS]
        foreseen = [(each, self._project(each, state)) for each in offered]
        return [each for each, then in foreseen if then is None or then.problem is None]

    def _progress_key(self, state: MiniGridState) -> str:
        return f"at {state.at} facing {state.facing} ahead {state.ahead} with {state.carrying}"

    def _opens_goal(self, percept: Percept) -> bool:
        """The first message is the task; the later ones only say that it continues."""
        return bool(percept.content) and not self._memory.goal


def never_into_lava(
    candidate: Candidate, state: MiniGridState, projection: MiniGridState | None
) -> Verdict:
    """No step leads into death."""
    if projection is None or projection.over != "death" or state.over:
        return Verdict.allow()
    return Verdict.forbid(f"the cell ahead is {state.ahead}: whoever moves onto it dies")


def nothing_in_vain(
    candidate: Candidate, state: MiniGridState, projection: MiniGridState | None
) -> Verdict:
    """No action is taken that is known to do nothing, such as a step into a wall."""
    if projection is None or projection.problem is None:
        return Verdict.allow()
    return Verdict.forbid(f"nothing would happen: {projection.problem}")


CONSTRAINTS = (never_into_lava, nothing_in_vain)
"""The rules in force; none of them is a route."""
