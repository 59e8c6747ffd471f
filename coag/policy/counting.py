"""Whether a call would be one too many, by what working memory holds of the calls before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from coag._util.text import comparable, ellipsis
from coag.context import CountedAction, counted_for, counted_value
from coag.cycle import IDEMPOTENCY_KEY, JudgedBy
from coag.schema import Candidate, CountedFor
from coag.tracing import REDACTED

ALL = ("all",)
"""For `once`: the same call is one with the same arguments."""


class CountingRule(Protocol):
    """What of a rule says how it counts."""

    @property
    def at_most(self) -> Decimal | None:
        """How many calls, or how much of `sum`."""
        ...

    @property
    def sum(self) -> str | None:
        """The argument that is added up."""
        ...

    @property
    def once(self) -> tuple[str, ...] | None:
        """The arguments by which a call is the same."""
        ...

    @property
    def per(self) -> CountedFor | None:
        """For what it counts."""
        ...

    def applies(self, action: str) -> bool:
        """Whether it judges calls of this tool."""
        ...


def too_often(rule: CountingRule, candidate: Candidate, known: JudgedBy) -> str:
    """Why the call would be one too many; empty if it is not."""
    memory, action = known.memory, candidate.action
    if not counted_for(action, memory.counted):
        return "its calls are not counted here"
    gone = {name: goal for name, goal in memory.forgotten.items() if rule.applies(name)}
    if any(rule.per != "goal" or goal == memory.goal_id for goal in gone.values()):
        return "there were so many calls that the oldest are not known any more"
    earlier = [
        one for one in memory.done if rule.applies(one.action) and _counts_now(rule, one, known)
    ]
    given = {name: one for name, one in (candidate.arguments or {}).items() if one is not None}
    if rule.once is not None:
        return _repeated(rule, given, earlier)
    if rule.sum is None:
        return "" if len(earlier) < (rule.at_most or 0) else f"there were {len(earlier)} already"
    value, before = given.get(rule.sum), [one.values.get(rule.sum, "") for one in earlier]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return f"{rule.sum} is {ellipsis(repr(value), 80)}, which is no number to add up"
    numbers = [_number(str(value)), *map(_number, before)]
    total = Decimal(0)
    for number in numbers:
        if number is None or number < 0:
            return f"{rule.sum} has to be a number that is not below 0 in each call"
        total += number
    most = rule.at_most or 0
    return "" if total <= most else f"with the calls before it would be {total}"


def _counts_now(rule: CountingRule, one: CountedAction, known: JudgedBy) -> bool:
    """Whether an earlier call counts now."""
    memory = known.memory
    if rule.per == "goal":
        return one.goal_id == memory.goal_id
    if rule.per == "person":
        scopes = (memory.memory_scope, one.memory_scope)
        return "" in scopes or scopes[0] == scopes[1]
    return True


def _repeated(
    rule: CountingRule, given: Mapping[str, Any], earlier: Sequence[CountedAction]
) -> str:
    """Which call was the same, by the arguments that count."""
    for one in earlier:
        names = rule.once if rule.once != ALL else {*given, *one.values} - {IDEMPOTENCY_KEY}
        values = ((name, one.values.get(name), given.get(name)) for name in names or ())
        if all(REDACTED in (was or "") or was == _counted(now) for _, was, now in values):
            return f"it was done already{_shown(rule, given)}"
    missing = [] if rule.once == ALL else [name for name in rule.once or () if name not in given]
    return f"{missing[0]!r} is not given" if missing else ""


def _shown(rule: CountingRule, given: Mapping[str, Any]) -> str:
    names = () if rule.once == ALL else rule.once or ()
    shown = ", ".join(f"{name} {ellipsis(repr(given.get(name)), 60)}" for name in names)
    return f" with {shown}" if shown else ""


def _counted(value: Any) -> str | None:
    return None if value is None else counted_value(value)


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(comparable(text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
