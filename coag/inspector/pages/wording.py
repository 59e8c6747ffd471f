"""Numbers, times and values as people read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from coag.inspector.views import Finding

_LINE = 76
"""Characters of JSON that stand on one line."""
_DEPTH = 8
_ITEMS = 60
_STRING = 2_000
_WHOLE = 20_000
NOT_KNOWN = "\u2013"
"""A dash."""
THIN = "\u202f"
"""Narrow no-break space: what parts thousands."""
ENDLESS = "\u221e"
"""More than anything that was measured can be."""
_MOST = 1e18
"""Counts and amounts beyond which nothing is told."""
_LONGEST = 1e13
"""Seconds beyond which nothing lasts."""


def _odd(number: float, most: float) -> str:
    """What stands for a number that is none or too large; empty for one that can be told."""
    size = abs(number)
    if size < most:
        return ""
    if size >= most:
        return ENDLESS if number > 0 else f"-{ENDLESS}"
    return NOT_KNOWN


def count(number: float | None) -> str:
    """A whole number with its thousands apart; a dash where it is not known."""
    if number is None:
        return NOT_KNOWN
    return _odd(number, _MOST) or f"{number:,.0f}".replace(",", THIN)


def amount(money: float) -> str:
    """A cost, in the currency of the prices; small ones with what can be told of them."""
    if money == 0:
        return "0"
    size = abs(money)
    return _odd(money, _MOST) or (
        f"{money:.2f}" if size >= 1 else f"{money:.4f}" if size >= 0.0001 else f"{money:.1e}"
    )


def decimal(number: float) -> str:
    """A number with two decimals."""
    return _odd(number, _MOST) or f"{number:.2f}"


def brief(number: float) -> str:
    """A number in as few digits as it needs."""
    return _odd(number, _MOST) or f"{number:.4g}"


def percent(share: float) -> str:
    """A share as the percents of a bar's width, between 0 and 100."""
    return f"{min(max(0, share), 1) * 100:.1f}"


def duration(seconds: float | None) -> str:
    """How long something took, with two units at most."""
    if seconds is None:
        return NOT_KNOWN
    odd = _odd(seconds, _LONGEST)
    if odd:
        return odd
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}{THIN}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}{THIN}s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return (
            f"{hours}{THIN}h {minutes:02d}{THIN}min"
            if hours
            else f"{minutes}{THIN}min {rest:02d}{THIN}s"
        )
    return f"{hours // 24}{THIN}d {hours % 24}{THIN}h"


def moment(at: datetime | None) -> str:
    """A time in UTC, to the second; a dash where it is not known."""
    return NOT_KNOWN if at is None else f"{_utc(at):%Y-%m-%d %H:%M:%S}"


def clock(at: datetime | None) -> str:
    """The time of the day in UTC."""
    return NOT_KNOWN if at is None else f"{_utc(at):%H:%M:%S}"


def stamp(at: datetime) -> str:
    """A time as machines read it."""
    return _utc(at).isoformat()


def _utc(at: datetime) -> datetime:
    """The time in UTC; at the ends of the calendar, where UTC has none, as it was written."""
    if at.tzinfo is None:
        return at.replace(tzinfo=UTC)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return at


def words(name: object) -> str:
    """A name from code as words: `tool_return` becomes `tool return`."""
    return str(name).replace("_", " ")


def cycles(finding: Finding) -> str:
    """The cycles of a finding: `cycle 3`, or `cycles 3-11` with a dash."""
    if len(finding.cycles) < 2:
        return f"cycle {finding.cycle}"
    return f"cycles {finding.cycles[0]}\u2013{finding.cycles[-1]}"


def pretty(value: Any) -> str:
    """A JSON value to read, over several lines; what is too deep, long or many is counted."""
    return clipped(_laid_out(_bounded(value, _DEPTH), ""), _WHOLE)


def inline(value: Any, limit: int = 160) -> str:
    """A JSON value on one line, cut."""
    text = json.dumps(_bounded(value, 4), ensure_ascii=False, default=str)
    return clipped(text, limit)


def named_values(arguments: Mapping[str, Any] | None, limit: int = 300) -> str:
    """Arguments on one line, as `direction=west, far=true`."""
    pairs = [
        f"{name}={value if isinstance(value, str) else inline(value, limit)}"
        for name, value in list((arguments or {}).items())[:_ITEMS]
    ]
    return clipped(", ".join(pairs), limit)


def beginning(text: str, lines: int = 3, limit: int = 240) -> tuple[str, str]:
    """The first lines of a text, and the rest; all of it where the rest would be short."""
    head = "".join(text[: limit + 1].splitlines(keepends=True)[:lines])
    if len(head) > limit:
        head = head[: head.rfind(" ", limit // 2, limit) + 1 or limit]
    rest = text[len(head) :]
    return (text, "") if len(rest) < limit // 4 else (head, rest)


def clipped(text: str, limit: int) -> str:
    """The beginning of a text, and how much is missing."""
    rest = len(text) - limit
    return text if rest <= 0 else f"{text[:limit]}… [{count(rest)} more characters]"


def _laid_out(value: Any, before: str) -> str:
    """JSON in which what fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    if len(before) + len(line) <= _LINE or not isinstance(value, dict | list) or not value:
        return line
    deeper = f"{before}  "
    if isinstance(value, list):
        items = [_laid_out(item, deeper) for item in cast("list[Any]", value)]
        opening, closing = "[]"
    else:
        fields = cast("dict[str, Any]", value).items()
        items = [
            f"{json.dumps(name, ensure_ascii=False)}: {_laid_out(item, deeper)}"
            for name, item in fields
        ]
        opening, closing = "{}"
    inside = f",\n{deeper}".join(items)
    return f"{opening}\n{deeper}{inside}\n{before}{closing}"


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clipped(value, _STRING)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        if depth == 0:
            return f"{{… {len(items)} fields}}"
        kept = {
            clipped(str(name), 200): _bounded(items[name], depth - 1)
            for name in list(items)[:_ITEMS]
        }
        return kept | ({"…": f"{len(items) - _ITEMS} more fields"} if len(items) > _ITEMS else {})
    if isinstance(value, list | tuple):
        listed = list(cast("list[Any]", value))
        if depth == 0:
            return f"[… {len(listed)} items]"
        more = [f"… {len(listed) - _ITEMS} more"] if len(listed) > _ITEMS else []
        return [_bounded(item, depth - 1) for item in listed[:_ITEMS]] + more
    return value
