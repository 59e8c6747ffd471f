"""The robot's structured context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from coag.context import Budgets, CoagContext
from coag.schema import Candidate, Percept, RecalledRecord
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Reading,
    inside,
    last_state_line,
    neighbour,
    state_line,
)

from ._projection import CLEAN, MOVE, WAYS, project
from ._state import VacuumState, state_of

BLOCKED_X, BLOCKED_Y = "blocked_x", "blocked_y"
"""Metadata of a record that was written right after a bump: the cell that was blocked."""

_GOAL_TOKENS = 800
"""The task is the goal, and must not be cut."""


class VacuumContext(CoagContext[VacuumState]):
    """Working memory of a vacuum robot.

    Args:
        reading: What the robot's sensors said when it joined the world; None if nothing was
            sensed yet, in which case the first action to make sense is `sense`.
        **context: See `CoagContext`.
    """

    def __init__(self, *, reading: Reading | None = None, **context: Any) -> None:
        self._first = state_of(reading)
        context.setdefault("budgets", Budgets(goal=_GOAL_TOKENS))
        super().__init__(**context)

    @property
    def perceptual_state_schema(self) -> type[VacuumState]:
        """What a robot perceives."""
        return VacuumState

    def _initial_state(self) -> VacuumState:
        return self._first

    def _update_state_from_function_result(
        self, state: VacuumState, percept: Percept
    ) -> VacuumState:
        """Every tool's text ends with a fresh reading; a failed move tells of an obstacle too."""
        reading = last_state_line(percept.content)
        after = state if reading is None else state.sensed(reading)
        if percept.source not in (MOVE, CLEAN):
            return after
        return after.model_copy(update={"bump": _bump(state, percept)})

    def _get_state_description(self, state: VacuumState) -> str:
        reading = state.reading()
        if reading is None:
            return "Nothing has been sensed yet."
        lines = [state_line(reading), _around(reading)]
        seen = {"dirty": state.dirty, "clean": state.clean, "blocked": state.obstacles}
        lines += [f"Cells seen {how}: {_listed(cells)}." for how, cells in seen.items() if cells]
        if state.bump is not None:
            lines.append(f"The latest move failed: cell {state.bump} is blocked.")
        lines += [
            f"Remembered: cell {cell} is blocked (record {record})."
            for cell, record in self._remembered().items()
        ]
        return "\n".join(lines)

    def _get_retrieval_query(self, state: VacuumState) -> str:
        if state.position is None:
            return self._memory.goal
        near = [neighbour(state.position, way) for way in DIRECTIONS]
        next_door = [cell for cell in near if inside(cell, state.grid)]
        area = _listed([*next_door, *state.dirty])
        return (
            f"Obstacles and rules: moving from {state.position} failed, cell is blocked, "
            f"cleaning cell is forbidden; cells {area}"
        )

    def _get_memory_metadata(self, state: VacuumState) -> Mapping[str, str | int | float | bool]:
        if state.position is None:
            return {}
        where = {"x": state.position[0], "y": state.position[1]}
        if state.bump is None:
            return where
        return {**where, BLOCKED_X: state.bump[0], BLOCKED_Y: state.bump[1]}

    def _project(self, candidate: Candidate, state: VacuumState) -> VacuumState | None:
        return project(candidate.action, candidate.arguments or {}, state, self._remembered())

    def _progress_key(self, state: VacuumState) -> str:
        return f"at {state.position} dirty {state.dirty}"

    def _opens_goal(self, percept: Percept) -> bool:
        """The first message is the task; the later ones only say that it goes on."""
        return bool(percept.content) and not self._memory.goal

    def _remembered(self) -> dict[Cell, str]:
        retrieval = self._memory.cognitive_state.retrieval
        return remembered_obstacles(retrieval.records if retrieval else ())


def remembered_obstacles(records: Sequence[RecalledRecord]) -> dict[Cell, str]:
    """Cells that recalled records hold for blocked, with the short id of the record."""
    found: dict[Cell, str] = {}
    for hit in records:
        x, y = (hit.record.metadata.get(name) for name in (BLOCKED_X, BLOCKED_Y))
        if isinstance(x, int) and isinstance(y, int):
            found.setdefault((x, y), hit.record.id[:8])
    return found


def _around(reading: Reading) -> str:
    """The sensors' directions as cells: small models do not work them out."""
    parts: list[str] = []
    for direction in DIRECTIONS:
        there = neighbour(reading.position, direction)
        if getattr(reading.blocked, direction):
            parts.append(f"{direction} you cannot move")
        else:
            charger = ", the charger" if there == reading.charger else ""
            parts.append(f"{direction} of you is {there}{charger}")
    return f"You are at {reading.position}: {'; '.join(parts)}."


def _bump(state: VacuumState, percept: Percept) -> Cell | None:
    """The cell that a move could not enter because of an obstacle; edges are no news."""
    data: Any = percept.data
    if percept.source != MOVE or state.position is None or not isinstance(data, dict):
        return None
    told = cast("Mapping[str, Any]", data)
    direction = WAYS.get(str((percept.arguments or {}).get("direction")))
    if direction is None or not str(told.get("reason")).startswith("blocked by an obstacle"):
        return None
    return neighbour(state.position, direction)


def _listed(cells: Sequence[Cell]) -> str:
    return ", ".join(str(cell) for cell in dict.fromkeys(cells))
