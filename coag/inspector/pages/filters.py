"""What templates call: foreign text made visible, numbers and values as people read them, marks.

All HTML that is not in a template is made here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, cast

from markupsafe import Markup, escape

from coag._util.text import UNSEEN, clip
from coag.inspector.charts import belief_svg, cost_svg, fading_svg, history_svg, kept_svg, why_svg
from coag.inspector.texts import bounded, named_values, value_in_a_line
from coag.inspector.tool_chart import tools_svg
from coag.inspector.views import (
    AwarenessView,
    CallView,
    CycleRow,
    CycleView,
    Finding,
    FindingSort,
    RunCard,
    TaskOutcome,
)

# ---- Foreign text, with every character visible ----


_UNSEEN = re.compile(f"([{UNSEEN}])")
_CONTROLS = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI "
    "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)
_MARKS = (
    "7F:DEL AD:SHY 61C:ALM 200B:ZWSP 200E:LRM 200F:RLM 2028:LSEP 2029:PSEP 202A:LRE 202B:RLE "
    "202C:PDF 202D:LRO 202E:RLO 2066:LRI 2067:RLI 2068:FSI 2069:PDI FEFF:BOM"
)
_SHORT = dict(enumerate(_CONTROLS.split())) | {
    int(code, 16): name for code, name in (pair.split(":") for pair in _MARKS.split())
}
"""What characters are called that nobody sees."""


@lru_cache(maxsize=512)
def _box(character: str) -> Markup:
    """A small box with the name of a character that cannot be seen."""
    code = ord(character)
    short = _SHORT.get(code, f"U+{code:04X}")
    if 0xE0020 <= code < 0xE007F:
        short = f"tag {chr(code - 0xE0000)}"
    title = f"U+{code:04X} {unicodedata.name(character, '')}".strip()
    return Markup('<span class="ctl" title="{}">{}</span>').format(title, short)


def visible(text: object) -> Markup:
    """The text, escaped, with every character named that could not be seen or does something.

    It costs as much as the text is long, and more for what must be named: cut it before.
    """
    pieces = enumerate(_UNSEEN.split(str(text)))
    return Markup("").join(_box(piece) if at % 2 else escape(piece) for at, piece in pieces)


def named(text: object, limit: int = 80) -> str:
    """The same, cut, for where only plain text can be, as in a title."""
    full = str(text)
    cut = full if len(full) <= limit else f"{full[:limit]}\N{HORIZONTAL ELLIPSIS}"
    return _UNSEEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", cut)


# ---- Numbers, times and values ----


_LINE = 76
"""Characters of JSON that are on one line."""
_DEPTH, _ITEMS, _STRING, _WHOLE = 8, 60, 2_000, 20_000
"""Levels, items of one, characters of a text and of all that is shown of a JSON value."""
NOT_KNOWN, ENDLESS = "\N{EN DASH}", "\N{INFINITY}"
_THIN = "\N{NARROW NO-BREAK SPACE}"
"""Separates thousands, and units."""
_MOST, _LONGEST = 1e18, 1e13
"""Amounts and seconds from which on only the sign of infinity is shown."""


def _number_text(number: float | None, show: Callable[[Any], str], most: float = _MOST) -> str:
    """A number, or a sign for one that is not known, is none or is too large."""
    if number is None:
        return NOT_KNOWN
    if abs(number) < most:
        return show(number)
    if number >= most:
        return ENDLESS
    return f"-{ENDLESS}" if number <= -most else NOT_KNOWN


def count(number: float | None) -> str:
    """A whole number with its thousands apart; a dash where it is not known."""
    return _number_text(number, lambda known: f"{known:,.0f}".replace(",", _THIN))


def amount(money: float) -> str:
    """A cost, in the currency of the prices; small ones with as many digits as they need."""
    size = abs(money)
    digits = ".0f" if not money else ".2f" if size >= 1 else ".4f" if size >= 0.0001 else ".1e"
    return _number_text(money, lambda known: f"{known:{digits}}")


def decimal(number: float) -> str:
    """A number with two decimals."""
    return _number_text(number, lambda known: f"{known:.2f}")


def percent(share: float) -> str:
    """A share as the percents of a bar's width, between 0 and 100."""
    return f"{min(max(0, share), 1) * 100:.1f}"


def duration(seconds: float | None) -> str:
    """How long something took, with two units at most; a dash where that is not known."""
    return _number_text(seconds, _duration, _LONGEST)


def _duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}{_THIN}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}{_THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}{_THIN}min {rest:02d}{_THIN}s"
    if hours < 48:
        return f"{hours}{_THIN}h {minutes:02d}{_THIN}min"
    return f"{hours // 24}{_THIN}d {hours % 24}{_THIN}h"


def moment(at: datetime | None) -> str:
    """A time in UTC, to the second; a dash where it is not known."""
    return NOT_KNOWN if at is None else f"{_utc(at):%Y-%m-%d %H:%M:%S}"


def clock(at: datetime) -> str:
    """The time of the day in UTC."""
    return f"{_utc(at):%H:%M:%S}"


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
    return f"cycles {finding.cycles[0]}{NOT_KNOWN}{finding.cycles[-1]}"


def pretty(value: Any) -> str:
    """A JSON value to read, over several lines; what is too deep, long or many is counted."""
    return clip(_laid_out(bounded(value, _STRING, _DEPTH, _ITEMS), ""), _WHOLE)


def _laid_out(value: Any, before: str) -> str:
    """JSON in which what fits on a line is on one."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    if len(before) + len(line) <= _LINE or not isinstance(value, dict | list) or not value:
        return line
    deeper = f"{before}  "
    if isinstance(value, list):
        items = [_laid_out(item, deeper) for item in cast("list[Any]", value)]
    else:
        items = [
            f"{json.dumps(name, ensure_ascii=False)}: {_laid_out(item, deeper)}"
            for name, item in cast("dict[str, Any]", value).items()
        ]
    inside = f",\n{deeper}".join(items)
    return f"{line[0]}\n{deeper}{inside}\n{before}{line[-1]}"


def inline(value: Any, limit: int = 160) -> str:
    """A JSON value on one line, cut."""
    return value_in_a_line(value, limit)


def beginning(text: str, lines: int = 3, limit: int = 240) -> tuple[str, str]:
    """The first lines of a text, and the rest; all of it where the rest would be short."""
    head = "".join(text[: limit + 1].splitlines(keepends=True)[:lines])
    if len(head) > limit:
        head = head[: head.rfind(" ", limit // 2, limit) + 1 or limit]
    rest = text[len(head) :]
    return (text, "") if len(rest) < limit // 4 else (head, rest)


# ---- Marks: an icon and a word for a state, so that colour alone says nothing ----


class Mark(NamedTuple):
    """How a state is shown: part of a class (`mark-NAME`), a symbol, and what it says in words."""

    name: str
    icon: str
    label: str


_CYCLES = {
    "": Mark("idle", "dots", "not finished"),
    "done": Mark("good", "check", "done"),
    "failed": Mark("bad", "cross", "failed"),
    "refused": Mark("warn", "ban", "refused"),
    "none": Mark("warn", "impasse", "impasse"),
    "unknown": Mark("warn", "ask", "outcome unknown"),
    "cancelled": Mark("warn", "ban", "cancelled"),
}


def cycle_mark(row: CycleRow) -> Mark:
    """How the cycle ended."""
    if row.status == "done" and any(one.sort is FindingSort.CAUSE for one in row.findings):
        return Mark("warn", "cause", "done")  # it worked, and something is wrong with it
    status = "none" if row.impasse else row.status
    return _CYCLES.get(status) or Mark("idle", "dots", status)


def run_mark(card: RunCard) -> Mark:
    """The result of the run."""
    if card.info is None:
        return Mark("bad", "alert", "unreadable")
    if card.outcome is TaskOutcome.SUCCESS:
        return Mark("good", "check", "success")
    if card.outcome is TaskOutcome.FAILURE:
        return Mark("bad", "cross", "failure")
    return Mark("idle", "dots", "open") if card.is_open else Mark("idle", "dash", "not measured")


# ---- What of a view is shown how ----


def returned(view: CycleView) -> frozenset[str]:
    """What the actions of a cycle returned, as Execution shows it."""
    receipts = [receipt.content for _, receipt in view.summary.effects if receipt is not None]
    texts = receipts or [one.result for one in view.summary.actions]
    return frozenset(text for text in texts if text)


def named_by(findings: Sequence[Finding], record: str) -> bool:
    """Whether one of the findings names a record of long-term memory by its id."""
    texts = (text for one in findings for text in (one.text, *(says for _, says in one.evidence)))
    return any(f"ecord {record[:8]}" in text for text in texts)


def last_same(call: CallView) -> tuple[int, int] | None:
    """Message and piece with which the prefix ends that the request before had too."""
    ends = [
        (at, position)
        for at, message in enumerate(call.messages)
        for position, part in enumerate(message.parts)
        if part.same
    ]
    return ends[-1] if ends else None


def steps(view: AwarenessView) -> Iterator[tuple[int, int | None, bool]]:
    """The cycles that can be shown, how much changed in each (if known), and if that is grave."""
    for cycle in view.steps:
        changes = [
            one for _, history in view.modules for one in history.changes if one.cycle == cycle
        ]
        of = sum(one.of for one in changes) if changes else None
        yield cycle, of, any(one.grave for one in changes)


def _drawn(draw: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *view: Markup(draw(*view))


_DRAWINGS = (belief_svg, cost_svg, fading_svg, history_svg, kept_svg, tools_svg, why_svg)
_OTHERS = (
    *(named, count, amount, decimal, percent, duration, moment, clock, stamp, words),
    *(cycles, pretty, inline, named_values, beginning, cycle_mark, run_mark, returned),
    *(named_by, last_same, steps),
)
FILTERS: Mapping[str, Callable[..., Any]] = {
    "v": visible,
    **{draw.__name__: _drawn(draw) for draw in _DRAWINGS},
    **{each.__name__: each for each in _OTHERS},
}
"""The filters of the templates."""
