"""What the JSON of a judgment's state has to look like, so that a spoiled file is known as one.

A file can be JSON and still be none: cut and joined by a hand or a tool, or with numbers that are
none. What entries say is checked where they are read (`entry_from`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from coag.errors import JudgmentError

from .graph import WEIGHT_BOUND

Check = Callable[[Any], bool]
"""Whether a value is what it should be."""


def check_shape(state: Mapping[str, Any]) -> None:
    """Refuses what is no state of a judgment.

    Raises:
        JudgmentError: Names the first part that is missing or wrong.
    """
    for name, check in _PARTS.items():
        try:
            right = check(state.get(name))
        except (KeyError, TypeError, ValueError):  # a check looks into what may be anything
            right = False
        if not right:
            raise JudgmentError(f"its part {name!r} is missing or has a wrong value")


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> bool:
        return type(value) in (int, float) and low <= value <= high

    return check


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _list(of: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(of, cast("list[Any]", value)))


def _each(of: Check) -> Check:
    """An object whose values are all alike; JSON has no other keys than texts."""
    return lambda value: (
        isinstance(value, dict) and all(map(of, cast("dict[str, Any]", value).values()))
    )


def _record(needed: Mapping[str, Check], further: Mapping[str, Check] | None = None) -> Check:
    """An object with these fields; what else it has is not looked at."""
    maybe: Mapping[str, Check] = further or {}

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and all(of(value[name]) for name, of in needed.items())
            and all(of(value[name]) for name, of in maybe.items() if name in value)
        )

    return check


def _none_or(of: Check) -> Check:
    return lambda value: value is None or of(value)


_UNIT = _number(0, 1)
_FINITE = _number(-math.ldexp(1, 1000), math.ldexp(1, 1000))
_WEIGHT = _number(-WEIGHT_BOUND, WEIGHT_BOUND)
_CAPABILITY = _record(
    {"name": _text}, {"summary": _text, "keywords": _list(_text), "utility": _UNIT, "cost": _UNIT}
)
_LEARNED = (_WEIGHT, _count, _UNIT, _UNIT, _UNIT)
"""An edge's weight, tries, mean, recent and novelty."""
_EDGE = _record(
    {"source": _text, "target": _text},
    {
        **dict.fromkeys(("utility", "cost", "novelty", "mean", "recent"), _UNIT),
        "weight": _WEIGHT,
        "tries": _count,
    },
)
_GRAPH = _record({"capabilities": _list(_CAPABILITY), "joined": _flag, "edges": _list(_EDGE)})
_SHARES = _each(_UNIT)
_STEP = _record(
    {
        **dict.fromkeys(("at", "from", "used", "source"), _text),
        "trust": lambda value: value in ("developer", "user", "untrusted"),
        **dict.fromkeys(("reward", "cost"), _UNIT),
        "moved": _FINITE,
    },
    {
        "before": _none_or(
            lambda value: (
                isinstance(value, list)
                and all(of(one) for of, one in zip(_LEARNED, cast("list[Any]", value), strict=True))
            )
        ),
        "shares": _SHARES,
        **dict.fromkeys(("override", "drawn"), _flag),
    },
)
_PATTERN = _record({"kind": _text, "route": _list(_text), "strength": _UNIT, "uses": _count})
_TALLIES = {
    **dict.fromkeys(("followed", "overridden"), _count),
    **dict.fromkeys(("net_followed", "net_overridden"), _FINITE),
}
_ENTRY = _record(
    {"is": _text, "origin": _record({"source": _text}, {"derived_from": _list(_text)})},
    dict.fromkeys(("id", "record", "tier", "reopened"), _text),
)
_PARTS: Mapping[str, Check] = {
    "version": _count,
    "graph": _none_or(_GRAPH),
    "entries": _list(_ENTRY),
    "steps": _list(_STEP),
    "consultations": _list(_record({"id": _text, "current": _text, "shares": _SHARES})),
    "failures": _each(_count),
    "patterns": _list(_PATTERN),
    "health": _record({}, {"reports": _count, "since_reflection": _count, **_TALLIES}),
    "dropped": _record(
        {},
        {
            "sources": _each(_count),
            "moved": _each(_each(_FINITE)),
            "patterns": _list(_PATTERN),
            **_TALLIES,
        },
    ),
    "consulted": _count,
}
