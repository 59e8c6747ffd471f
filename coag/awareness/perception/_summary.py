"""The state as a perception model is told it: short, numbered, within a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coag.awareness.injection import as_item
from coag.awareness.state import AwarenessState, Entity
from coag.schema import cut_to_tokens, estimate_tokens

_ITEM = 30
"""Tokens of one goal, error or question; the rest is cut."""
_NAME = 12
"""Tokens of one name."""
_MOST = 12
"""Items of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A state as text, and what its numbers mean."""

    text: str
    goals: tuple[str, ...]
    """Ids of the goals, the first of them number 1."""
    errors: tuple[str, ...]
    """Names of the unresolved errors, the first of them number 1."""


def unresolved_errors(state: AwarenessState) -> tuple[Entity, ...]:
    """The errors that the coding adapter holds for unresolved, those seen last first."""
    errors = [one for one in state.world.entities if one.state.get("error_status") == "unresolved"]
    return tuple(sorted(errors, key=lambda error: -error.last_step))


def summary_of(state: AwarenessState, budget: int) -> Summary:
    """The state in at most `budget` tokens; of each list the newest, whole.

    Goals and errors come before names, since the answer refers to them.
    """
    room = _Room(budget)
    goals = sorted(
        (goal for goal in state.goals.goals if goal.is_open), key=lambda goal: -goal.updated_step
    )[:_MOST]
    told_goals = room.numbered("Open goals", [goal.description for goal in goals])
    errors = unresolved_errors(state)[:_MOST]
    told_errors = room.numbered("Unresolved errors", [error.name for error in errors])
    last = max((one.last_step for one in state.world.entities), default=0)
    entities = sorted(state.world.entities, key=lambda one: -one.last_step)
    now = [one.name for one in entities if one.last_step == last]
    room.names("In the message before", now)
    room.names("Earlier", [one.name for one in entities[len(now) :]])
    return Summary(
        text="\n".join(room.lines) or "Nothing yet: this is the first message.",
        goals=tuple(goal.id for goal in goals[:told_goals]),
        errors=tuple(error.name for error in errors[:told_errors]),
    )


class _Room:
    """Lines within a budget."""

    def __init__(self, budget: int) -> None:
        self.lines: list[str] = []
        self._left = budget

    def numbered(self, heading: str, items: Sequence[str]) -> int:
        """Tells as many of the items as there is room for, and says how many."""
        lines = [f"{number}. {_short(item, _ITEM)}" for number, item in enumerate(items, 1)]
        told = self._how_many([f"{heading}:", *lines])
        if told > 1:
            self._take([f"{heading}:", *lines[: told - 1]])
        return max(0, told - 1)

    def names(self, heading: str, names: Iterable[str]) -> None:
        """Tells as many of the names as there is room for, on one line."""
        line = ""
        for name in list(names)[:_MOST]:
            longer = (
                f"{line}, {_short(name, _NAME)}" if line else f"{heading}: {_short(name, _NAME)}"
            )
            if self._how_many([longer]) == 0:
                break
            line = longer
        if line:
            self._take([line])

    def _how_many(self, lines: Sequence[str]) -> int:
        left, told = self._left, 0
        for line in lines:
            left -= estimate_tokens(line + "\n")
            if left < 0:
                break
            told += 1
        return told

    def _take(self, lines: Sequence[str]) -> None:
        self.lines += lines
        self._left -= sum(estimate_tokens(line + "\n") for line in lines)


def _short(text: str, tokens: int) -> str:
    return cut_to_tokens(as_item(text), tokens)
