"""How what an awareness module held is marked on a page."""

from __future__ import annotations

from dataclasses import dataclass

from coag.inspector.views import AttentionView, AwarenessView, CycleChange, Move, Stand

from .marks import Mark

_ATTENTION = {
    "threat": Mark(name="bad", icon="alert", label="threat"),
    "opportunity": Mark(name="good", icon="go", label="opportunity"),
    "anomaly": Mark(name="warn", icon="ask", label="anomaly"),
    "transition": Mark(name="live", icon="result", label="transition"),
}
_MOVES = {Move.ADDED: "+ added", Move.CHANGED: "~ changed", Move.GONE: "\u2212 gone"}
_GRAVE = ("failure", "reversal")
"""Transitions for which a cycle stands out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCell:
    """One cycle among those that can be shown."""

    cycle: int
    mark: str
    """Part of a class: `mark-NAME`."""
    changes: int
    """How much changed since the cycle before it that is looked at."""
    known: bool
    """Whether that is known: of a long run it is known of some cycles."""
    told: str
    """The same in words."""


def attention_mark(item: AttentionView) -> Mark:
    """What kind of attention it is, as an icon and a word."""
    return _ATTENTION.get(item.type) or Mark(name="idle", icon="dash", label=item.type)


def move_word(move: Move) -> str:
    """What became of something, as a sign and a word."""
    return _MOVES[move]


def goal_names(stand: Stand) -> dict[str, str]:
    """Goals by their ids."""
    return {goal.id: goal.description for goal in stand.goals}


def step_cells(view: AwarenessView) -> list[StepCell]:
    """The cycles that can be shown, with how much changed in each."""
    changes: dict[int, list[CycleChange]] = {}
    for course in view.courses:
        for one in course.changes:
            changes.setdefault(one.cycle, []).append(one)
    return [_cell(cycle, changes.get(cycle)) for cycle in view.steps]


def _cell(cycle: int, changes: list[CycleChange] | None) -> StepCell:
    count = sum(one.of for one in changes or ())
    grave = any(map(_is_grave, changes or ()))
    mark = "bad" if grave else "live" if count else "idle"
    words = "1 change" if count == 1 else f"{count} changes"
    return StepCell(
        cycle=cycle,
        mark=mark,
        changes=count,
        known=changes is not None,
        told=words + (", a failure, a reversal or a threat" if grave else ""),
    )


def _is_grave(change: CycleChange) -> bool:
    """Whether something failed, was reversed, or a threat came."""
    return any(
        (one.kind == "transition" and one.after in _GRAVE)
        or (one.kind == "attention" and one.move is Move.ADDED and one.after.startswith("threat"))
        for one in change.told
    )
