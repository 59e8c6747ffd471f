"""Numbers, times and costs for narrow columns of a terminal."""

from __future__ import annotations

_MINUTE = 60
_HOUR = 3_600
_DAY = 86_400
_THOUSAND = 1_000
_FULL = 10_000
_MILLION = 1_000_000


def duration(seconds: float) -> str:
    """A length of time in at most six characters: `4 s`, `12 m`, `3.5 h`, `20 d`."""
    if seconds < _MINUTE:
        return f"{int(seconds)} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} m"
    return f"{seconds / _HOUR:.1f} h" if seconds < _DAY else f"{int(seconds // _DAY)} d"


def amount(number: int) -> str:
    """A count in at most six characters: `812`, `9,120`, `91.2k`, `1.4M`."""
    if number < _FULL:
        return f"{number:,}"
    unit, sign = (_THOUSAND, "k") if number < _MILLION else (_MILLION, "M")
    if number < 100 * unit:
        return f"{number // (unit // 10) / 10:.1f}{sign}"
    return f"{number // unit}{sign}"


def money(cost: float) -> str:
    """A cost; `-` for none, as where no price is known."""
    if cost <= 0:
        return "-"
    return f"{cost:.4f}" if cost < 1 else f"{cost:,.2f}"


def count(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
