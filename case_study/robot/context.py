"""The robot's working memory, its prompts and procedures."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from case_study.grid import CLEAN, MOVE, SENSE, around
from case_study.tasks import CONTINUE
from coag.context import Budgets, CoagContext, WorkingMemory
from coag.memory import Procedure, binding_metadata, parse_procedure
from coag.schema import Candidate, Percept, PerceptKind, RecalledRecord, UnsettledAction
from vacuum_world.world import DIRECTIONS, Cell, Reading, last_state_line, neighbour

from .rules import forbidden_cells
from .state import (
    WAYS,
    VacuumState,
    described,
    described_prediction,
    is_blocked,
    listed,
    project,
    state_of,
    value,
)

PromptName = Literal["robot", "utility", "change"]


@cache
def prompt(name: PromptName) -> str:
    """The text of a prompt: `robot` (CoAG's system message), `utility` (the baseline's)."""
    folder = files("case_study.robot") / "prompts"
    return (folder / f"{name}.md").read_text(encoding="utf-8").strip()


def change_sentence(cell: Cell) -> str:
    """The change of requirements of `evolution`, as a sentence."""
    return prompt("change").replace("{cell}", str(cell))


@cache
def procedures() -> Mapping[str, Procedure]:
    """The robot's own procedures, by name; they take the place of CoAG's seeds."""
    folder = files("case_study.robot") / "procedures"
    return {
        name: parse_procedure(name, (folder / f"{name}.md").read_text(encoding="utf-8"))
        for name in ("deliberation", "reasoning", "proposal", "evaluation", "selection")
    }


BLOCKED_X, BLOCKED_Y = "blocked_x", "blocked_y"
"""Metadata of a record that was written right after a bump: the cell that was blocked."""

_BUDGETS = Budgets(goal=800, dialogue=150, deeds=200)
"""The task is the goal, and must not be cut; the state holds what was done."""
_SENSED = re.compile(r"^Your sensors say:\nSTATE [^\n]*\n?", re.MULTILINE)
"""The first reading in a task, which is soon out of date."""
_NULL = re.compile(r'"(?:failure|reason)": null, ')
"""What a result says where nothing went wrong."""
_DONE = "I have done what could be done."


class VacuumContext(CoagContext[VacuumState]):
    """Working memory of a vacuum robot.

    Args:
        reading: What the robot's sensors said when it joined the world; None if nothing was
            sensed yet, in which case the first action to make sense is `sense`.
        work: Cells that the task asks to clean, as its text says; None where that takes
            judgement, such as of orders that contradict each other. Without them the robot's
            states have no value, and it may finish when it likes.
        patrol: Whether the work continues when all is clean.
        valued: Whether its states have a value, which ranking adds to scores.
        readings: Whether prompts show readings and results as they came. Without, they give the
            state in words alone, which is less to read: what was done and seen is in it.
        **context: See `CoagContext`.
    """

    def __init__(
        self,
        *,
        reading: Reading | None = None,
        work: Collection[Cell] | None = None,
        patrol: bool = False,
        valued: bool = True,
        readings: bool = True,
        **context: Any,
    ) -> None:
        self._valued = valued
        self._readings = readings
        self._first = state_of(reading, work, patrol=patrol)
        context.setdefault("budgets", _BUDGETS)
        super().__init__(**context)

    def _initial_state(self) -> VacuumState:
        return self._first

    def _update_state_from_function_result(
        self, state: VacuumState, percept: Percept
    ) -> VacuumState:
        """Every tool's text ends with a fresh reading; a failed move shows an obstacle too."""
        reading = last_state_line(percept.content)
        after = state if reading is None else state.sensed(reading)
        news: dict[str, Any] = {"forbidden": tuple(sorted(self._forbidden()))}
        if reading is None:
            news["fresh"] = False
        if percept.source in (MOVE, CLEAN):
            bump = _bump(state, percept)
            found = set[Cell]() if bump is None or bump in after.obstacles else {bump}
            news |= {"bump": bump, "hidden": tuple(sorted({*after.hidden, *found}))}
            news |= _progress(state, after, percept)
        return after.model_copy(update=news)

    def _settles(self, percept: Percept, action: UnsettledAction) -> bool:
        """A fresh reading shows where the robot is, and so what became of any move."""
        reads = percept.kind is PerceptKind.TOOL_RETURN
        return reads and last_state_line(percept.content) is not None

    def _get_state_description(self, state: VacuumState) -> str:
        forbidden = tuple(sorted(self._forbidden()))
        known = state.model_copy(update={"forbidden": forbidden})
        return described(
            known,
            self._remembered(),
            readings=self._readings,
            words=not (self._readings and self.lean),
        )

    def _get_retrieval_query(self, state: VacuumState) -> str:
        if state.position is None:
            return self._memory.goal
        area = listed([*around(state.position, state.grid), *state.dirty])
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

    def _get_prediction_description(self, projection: VacuumState) -> str:
        if self._readings and not self.lean:
            return super()._get_prediction_description(projection)
        return described_prediction(projection)

    def _value(self, state: VacuumState) -> float | None:
        return value(state) if self._valued else None

    def _progress_key(self, state: VacuumState) -> str:
        return f"at {state.position} dirty {state.dirty}"

    def _opens_goal(self, percept: Percept) -> bool:
        """The first message is the task; the later ones only continue it."""
        return bool(percept.content) and not self._memory.goal

    def _propose_grounded(self, state: VacuumState) -> Sequence[Candidate] | None:
        """Every call that may do something: the moves that are open, a cleaning, an answer."""
        if state.position is None:
            return None
        blocked = self._remembered()
        calls = [
            (MOVE, json.dumps({"direction": way}))
            for way in DIRECTIONS
            if not is_blocked(state, way, blocked)
        ]
        calls += [(CLEAN, "{}"), ("respond", json.dumps({"text": _DONE}))]
        return [
            Candidate(id=self.ids("candidate"), action=action, raw_arguments=arguments)
            for action, arguments in calls
        ]

    def _memory_shown(self) -> WorkingMemory:
        """Results without their `STATE` line, which the state's description holds already."""
        memory = super()._memory_shown()
        percepts = tuple(
            percept.model_copy(update={"content": _without_state(percept.content)})
            for percept in memory.percepts
        )
        shown = memory.model_copy(update={"percepts": percepts})
        if not self._readings:
            return _in_words(shown)
        deeds = tuple(
            deed.model_copy(update={"result": _without_state(deed.result)}) for deed in memory.deeds
        )
        shown = shown.model_copy(update={"deeds": deeds})
        return _briefly(shown) if self.lean and self.state.position is not None else shown

    def _forbidden(self) -> set[Cell]:
        """Cells that the rules in force forbid to clean."""
        retrieval = self._memory.cognitive_state.retrieval
        return forbidden_cells(retrieval.constraints if retrieval else ())

    def _remembered(self) -> dict[Cell, str]:
        retrieval = self._memory.cognitive_state.retrieval
        return remembered_obstacles(retrieval.records if retrieval else ())


def remembered_obstacles(records: Sequence[RecalledRecord]) -> dict[Cell, str]:
    """Cells that recalled records hold for blocked, with the short id of the record.

    Only records that the robot's own code made from its sensors count.
    """
    found: dict[Cell, str] = {}
    for hit in records:
        metadata = binding_metadata(hit.record)
        x, y = (metadata.get(name) for name in (BLOCKED_X, BLOCKED_Y))
        if isinstance(x, int) and isinstance(y, int):
            found.setdefault((x, y), hit.record.id[:8])
    return found


def _in_words(memory: WorkingMemory) -> WorkingMemory:
    """What the state in words lacks: the goal, others' messages, and actions outside the world."""
    own = (MOVE, CLEAN, SENSE)
    messages = [each for each in memory.dialogue if each.content not in (memory.goal, CONTINUE)]
    return memory.model_copy(
        update={
            "goal": _SENSED.sub("", memory.goal),
            "dialogue": tuple(each for each in messages if not each.own),
            "deeds": tuple(deed for deed in memory.deeds if deed.action not in own)[-2:],
        }
    )


def _briefly(memory: WorkingMemory) -> WorkingMemory:
    """Without nulls, and what a prompt says elsewhere: the task in the dialogue, its reading."""
    percepts = tuple(
        each.model_copy(update={"content": _NULL.sub("", each.content)}) for each in memory.percepts
    )
    deeds = tuple(
        each.model_copy(update={"result": _NULL.sub("", each.result)}) for each in memory.deeds
    )
    goal = _SENSED.sub("", memory.goal)
    said = (memory.goal, CONTINUE)
    dialogue = tuple(each for each in memory.dialogue if each.own or each.content not in said)
    return memory.model_copy(
        update={"goal": goal, "dialogue": dialogue, "percepts": percepts, "deeds": deeds}
    )


def _without_state(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith("STATE ")]
    return "\n".join(lines) or "done; see the state"


def _progress(before: VacuumState, after: VacuumState, percept: Percept) -> dict[str, Any]:
    """What was achieved: a cleaned cell, or a full battery; the trail restarts there."""
    here = after.position
    charged = here == after.charger and after.battery > before.battery
    cleaned = percept.source == CLEAN and (_data(percept).get("ok") is True or here in after.clean)
    if here is None or not (charged or cleaned):
        return {}
    news: dict[str, Any] = {"trail": (here,)}
    if cleaned:
        news["done"] = tuple(sorted({*after.done, here}))
    if cleaned and "dirt" in after.silent:
        news["dirty"] = tuple(cell for cell in after.dirty if cell != here)
    return news


def _data(percept: Percept) -> Mapping[str, Any]:
    data: Any = percept.data
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}


def _bump(state: VacuumState, percept: Percept) -> Cell | None:
    """The cell that a move could not enter because of an obstacle; edges are no news."""
    direction = WAYS.get(str((percept.arguments or {}).get("direction")))
    stopped = str(_data(percept).get("reason")).startswith("blocked by an obstacle")
    if percept.source != MOVE or state.position is None or direction is None or not stopped:
        return None
    return neighbour(state.position, direction)
