"""Where two JSON values differ first, as a reader wants to be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from coag.errors import ReplayDivergenceError

_SHOWN = 160
"""Characters of a value that are shown."""
_BEFORE = 40
"""Characters that are shown of what two texts have in common before they differ."""
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two values differ."""

    where: str
    """The way there, as in `messages[1].content`."""
    recorded: str
    """What stood there, cut."""
    now: str
    """What stands there now, cut."""


def first_difference(
    recorded: Mapping[str, Any], now: Mapping[str, Any], where: str = ""
) -> Difference:
    """The first field that differs, in the order of the recorded ones; deepest place first."""
    for key in (*recorded, *(key for key in now if key not in recorded)):
        at = f"{where}.{key}" if where else key
        if key not in recorded:
            return Difference(at, _NOTHING, _cut(now[key]))
        if key not in now:
            return Difference(at, _cut(recorded[key]), _NOTHING)
        if recorded[key] != now[key]:
            return _between(recorded[key], now[key], at)
    return Difference(where, _cut(recorded), _cut(now))


def nearest_differs(
    what: str, number: int, nearest: int, recorded: Mapping[str, Any], now: Mapping[str, Any]
) -> ReplayDivergenceError:
    """The error where something is asked for that was not recorded.

    Args:
        what: `request` or `tool call`.
        number: Its number in this replay.
        nearest: Number of the recorded one that is most like it.
        recorded: That one.
        now: What is asked for.
    """
    found = first_difference(recorded, now)
    return ReplayDivergenceError(
        what=what,
        number=number,
        problem=f"the nearest recorded one that is left, {what} {nearest}, differs",
        where=found.where,
        recorded=found.recorded,
        now=found.now,
    )


def none_left(what: str, number: int, total: int) -> ReplayDivergenceError:
    """The error where more is asked for than was recorded."""
    problem = f"all {total} recorded {what}s have been answered"
    return ReplayDivergenceError(what=what, number=number, problem=problem)


def _between(recorded: Any, now: Any, at: str) -> Difference:
    if isinstance(recorded, dict) and isinstance(now, dict):
        return first_difference(cast("dict[str, Any]", recorded), cast("dict[str, Any]", now), at)
    if isinstance(recorded, list) and isinstance(now, list):
        return _in_lists(cast("list[Any]", recorded), cast("list[Any]", now), at)
    if isinstance(recorded, str) and isinstance(now, str):
        start = max(0, _common(recorded, now) - _BEFORE)
        return Difference(at, _cut(recorded, start), _cut(now, start))
    return Difference(at, _cut(recorded), _cut(now))


def _in_lists(recorded: Sequence[Any], now: Sequence[Any], at: str) -> Difference:
    for number, (was, is_now) in enumerate(zip(recorded, now, strict=False)):
        if was != is_now:
            return _between(was, is_now, f"{at}[{number}]")
    common = min(len(recorded), len(now))
    more, fewer = f"{len(recorded)} of them", f"{len(now)} of them"
    if len(recorded) > common:
        return Difference(f"{at}[{common}]", _cut(recorded[common]), f"{_NOTHING} ({fewer})")
    return Difference(f"{at}[{common}]", f"{_NOTHING} ({more})", _cut(now[common]))


def _common(left: str, right: str) -> int:
    """How many characters two texts have in common at their beginning."""
    for number, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return number
    return min(len(left), len(right))


def _cut(value: Any, start: int = 0) -> str:
    """The value as Python writes it, from a place on; its escapes keep a terminal from harm."""
    text = value if isinstance(value, str) else repr(value)
    kept = text[start : start + _SHOWN]
    kept = repr(kept) if isinstance(value, str) else kept
    return f"{'…' if start else ''}{kept}{'…' if len(text) > start + _SHOWN else ''}"
