"""What a goal's completion criteria say that can be reckoned with."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time

from coag.awareness._names import words_of
from coag.awareness.state import Goal, Need, Resource, Step, folded
from coag.schema import Moment, Value

_BY_STEP = re.compile(r"\bby step (\d{1,9})\b")
_BY = re.compile(
    r"\bby (\d{4}-\d{2}-\d{2})(?:[ t](\d{2}:\d{2}(?::\d{2})?)(z|[+-]\d{2}:\d{2})?)?(?![\w:+-])"
)
_NEEDS = re.compile(r"\bneeds (\d{1,12}(?:\.\d{1,6})?) (?:of )?")


class Criteria(Value):
    """What is told of a goal in a form that can be reckoned with."""

    by_step: Step | None = None
    """From `by step 40`."""
    by: Moment | None = None
    """From `by 2026-03-01` (the end of that day, UTC) or `by 2026-03-01T12:00Z`."""


def criteria_of(goal: Goal) -> Criteria:
    """The deadlines in a goal's completion criteria; other words in it are left alone."""
    text = folded(goal.completion_criteria or "")
    step = _BY_STEP.search(text)
    return Criteria(by_step=int(step[1]) if step else None, by=_moment(text))


def amount_needed(goal: Goal, resource: Resource, needs: tuple[Need, ...]) -> float | None:
    """How much of a resource a goal takes; None if nobody says that it takes any.

    Told by its completion criteria (`needs 30 battery`), or by what an action takes that the
    goal's description names (`Move to charger` for the action `move_to_charger`). The most counts.
    """
    text, name = folded(goal.completion_criteria or ""), folded(resource.name)
    said = [
        float(match[1])
        for match in _NEEDS.finditer(text)
        if re.match(rf"{re.escape(name)}(?!\w)", text[match.end() :])
    ]
    said += [
        need.amount
        for need in needs
        if folded(need.resource) == name and _names_action(goal.description, need.action)
    ]
    return max(said, default=None)


def _moment(text: str) -> datetime | None:
    """The deadline as a time, if the text tells one that exists."""
    match = _BY.search(text)
    if match is None:
        return None
    day, hour, zone = match.groups()
    try:
        if hour is None:
            return datetime.combine(datetime.fromisoformat(day), time.max, UTC)
        said = datetime.fromisoformat(f"{day}T{hour}{(zone or '').upper()}")
        return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None  # "by 2026-13-45" is no time; it stays what it was, words


def _names_action(text: str, action: str) -> bool:
    """Whether a text has the words of an action's name in a row; `*` stands for none."""
    said, wanted = words_of(text), words_of(action.replace("*", " "))
    starts = range(len(said) - len(wanted) + 1)
    return bool(wanted) and any(said[start : start + len(wanted)] == wanted for start in starts)
