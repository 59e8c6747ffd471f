"""Numbers as a reader wants them: few digits, with their unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from case_study.statistics import Comparison, Interval

from ._values import DecidedBy, Rate

_MINUS = "\N{MINUS SIGN}"
_DASH = "\N{EN DASH}"
NONE = _DASH
"""What stands where there is no number."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What nobody sees, or what turns the direction of writing."""


def visible(text: object, limit: int = 300) -> str:
    """A foreign text on one line, with each character named that could not be seen.

    Args:
        text: A name or a problem, out of an assessment's files.
        limit: Characters that are kept; an ellipsis tells of more.
    """
    whole = str(text)
    kept = whole if len(whole) <= limit else f"{whole[:limit]}\N{HORIZONTAL ELLIPSIS}"
    spaced = kept.replace("\r\n", " ").replace("\n", " ").replace("\t", " ")
    return _UNSEEN.sub(_named, spaced)


def _named(found: re.Match[str]) -> str:
    code = ord(found.group())
    name = unicodedata.name(found.group(), "")
    return f"[U+{code:04X}{' ' if name else ''}{name}]"


def number(value: float | None) -> str:
    """A number in few characters: 12.3, 1,234, 45.6k."""
    if value is None:
        return NONE
    size = abs(value)
    for unit, letter in _UNITS:
        if size >= 10 * unit:
            return f"{value / unit:,.3g}{letter}".replace("-", _MINUS)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}".replace("-", _MINUS)
    told = f"{value:.3f}".rstrip("0").rstrip(".") if size < 1 else f"{value:.3g}"
    if told in ("0", "-0"):
        told = "<0.001" if value > 0 else ">-0.001"
    return told.replace("-", _MINUS)


def seconds(value: float | None) -> str:
    """A duration: 4 ms, 1.23 s, 3.4 min, 2.1 h."""
    if value is None:
        return NONE
    if 0 < value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h"


def percent(share: float | None) -> str:
    """A share: 96 %; 0 % and 100 % only where they are exact."""
    return NONE if share is None else f"{_percent(share)} %"


def _percent(share: float) -> str:
    whole = round(100 * share)
    if whole in (0, 100) and share not in (0, 1):
        near = f"{100 * share:.1f}"
        return {"0.0": "<0.1", "100.0": ">99.9"}.get(near, near)
    return str(whole)


def points(difference: float | None) -> str:
    """A difference of shares in percentage points: +12, -3, 0."""
    if difference is None:
        return NONE
    told = f"{100 * difference:+.1f}" if abs(difference) < 0.1 else f"{100 * difference:+.0f}"
    return "0" if float(told) == 0 else told.replace("-", _MINUS)


def span(interval: Interval | None) -> str:
    """An interval of shares in percent: 87 to 99."""
    if interval is None:
        return NONE
    return f"{_percent(interval.low)} to {_percent(interval.high)}"


def points_span(interval: Interval | None) -> str:
    """An interval of a difference in percentage points."""
    return NONE if interval is None else f"{points(interval.low)} to {points(interval.high)}"


def number_span(interval: Interval | None) -> str:
    """An interval of a measure in its own unit."""
    return NONE if interval is None else f"{number(interval.low)} to {number(interval.high)}"


def rate(one: Rate) -> str:
    """A rate in one line: 48 of 50 (96 %, 95 % interval 87 to 99)."""
    if one.share is None:
        return "no trial"
    return (
        f"{one.successes:,} of {one.n:,} ({percent(one.share)}, "
        f"95 % interval {span(one.interval)} %)"
    )


def p_value(p: float | None) -> str:
    """A p-value: 0.013, <0.001."""
    if p is None:
        return NONE
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_told(comparison: Comparison) -> str:
    """The adjusted p-value as part of a sentence."""
    p = comparison.p if comparison.p_holm is None else comparison.p_holm
    told = p_value(p)
    return (
        f"adjusted p {told.replace('<', '< ')}"
        if told.startswith("<")
        else (f"adjusted p = {told}")
    )


def deciders(one: DecidedBy) -> str:
    """Shares of decisions by model, rank and only survivor: 62 / 0 / 38 %."""
    if one.model is None or one.rank is None or one.only_survivor is None:
        return NONE
    shares = (one.model, one.rank, one.only_survivor)
    return f"{' / '.join(_percent(share) for share in shares)} %"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number and what it counts: 1 pair, 1,200 pairs."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def times(ratio: float) -> str:
    """A ratio in a sentence: 5.2 times."""
    return f"{ratio:.2g} times" if ratio < 10 else f"{ratio:,.0f} times"
