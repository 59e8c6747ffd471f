"""Numbers as a reader wants them: few digits, with their unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coag._util.text import ellipsis, in_a_line, visible

from .statistics import Interval, PairedComparison

_MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
"""The sign where there is no number."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def shown(text: object, limit: int = 300) -> str:
    """An untrusted text on one line, with each invisible character written out."""
    return visible(ellipsis(in_a_line(str(text)), limit))


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
    digits = f"{value:.3f}".rstrip("0").rstrip(".") if size < 1 else f"{value:.3g}"
    if digits in ("0", "-0"):
        digits = "<0.001" if value > 0 else ">-0.001"
    return digits.replace("-", _MINUS)


def signed(value: float | None) -> str:
    """A difference: +12.3, -4."""
    return f"+{number(value)}" if value is not None and value > 0 else number(value)


def seconds(value: float | None) -> str:
    """A duration: 4 ms, 1.23 s, 3.4 min, 2.1 h."""
    if value is None:
        return NONE
    if 0 < value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


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
    digits = f"{100 * difference:+.1f}" if abs(difference) < 0.1 else f"{100 * difference:+.0f}"
    return "0" if float(digits) == 0 else digits.replace("-", _MINUS)


def _spanned(show: Callable[[float], str]) -> Callable[[Interval | None], str]:
    return lambda ends: NONE if ends is None else f"{show(ends.low)} to {show(ends.high)}"


span, points_span, number_span = _spanned(_percent), _spanned(points), _spanned(number)
"""An interval of shares in percent (87 to 99), of a difference in points, in its own unit."""


def p_value(p: float | None) -> str:
    """A p-value: 0.013, <0.001."""
    if p is None:
        return NONE
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_words(comparison: PairedComparison) -> str:
    """The adjusted p-value as part of a sentence."""
    digits = p_value(comparison.adjusted_p)
    sign = "< " if digits.startswith("<") else "= "
    return f"adjusted p {sign}{digits.removeprefix('<')}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def times(ratio: float) -> str:
    """A ratio in a sentence: 5.2 times."""
    return f"{ratio:.2g} times" if ratio < 10 else f"{ratio:,.0f} times"


def comparison_words(result: PairedComparison) -> str:
    """A comparison in a few words."""
    if not result.pairs:
        return "no pair"
    if result.p is None:
        more = f"; about {number(result.needed_n)} pairs needed" if result.needed_n else ""
        return f"too few pairs: {result.why}{more}"
    if result.claims:
        return "better" if (result.difference or 0) > 0 else "worse"
    if not result.higher and not result.lower:
        return "the same in every pair"
    if result.needed_n is not None:
        return f"open: about {number(result.needed_n)} pairs needed"
    return "open: as often better as worse" if not result.difference else "open once adjusted"


def contribution_words(result: PairedComparison) -> str:
    """The same of a part that one side has and the other has not."""
    words = comparison_words(result)
    return {
        "better": "adds successes",
        "worse": "takes successes away",
        "the same in every pair": "nothing: the same in every pair",
    }.get(words, words.replace("open", "nothing shown", 1))
