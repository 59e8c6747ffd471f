"""What templates call: foreign text made visible, numbers and values as people read them, marks.

All HTML that is not in a template is made here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from markupsafe import Markup, escape

from coag._util.text import UNSEEN, clip
from coag.inspector.texts import bounded, value_in_a_line
from coag.inspector.views import (
    AwarenessView,
    CallView,
    CycleChange,
    CycleRow,
    CycleView,
    Finding,
    FindingSort,
    Move,
    PromptPiece,
    RunCard,
    TaskOutcome,
)
from coag.schema import PHASES

# ---- Foreign text, with every character visible ----


_UNSEEN = re.compile(f"[{UNSEEN}]")
_CONTROLS = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL"),
    *("BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI"),
    *("DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB"),
    *("CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)
"""What the first 32 characters are called."""
_SHORT = {
    0x200B: "ZWSP",
    0x200E: "LRM",
    0x200F: "RLM",
    0x061C: "ALM",
    0x2028: "LSEP",
    0x2029: "PSEP",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
    0x00AD: "SHY",
    0x007F: "DEL",
}


@lru_cache(maxsize=512)
def _box(character: str) -> Markup:
    """A small box with the name of a character that cannot be seen."""
    code = ord(character)
    if code < 0x20:
        short = _CONTROLS[code]
    elif 0xE0020 <= code < 0xE007F:
        short = f"tag {chr(code - 0xE0000)}"
    else:
        short = _SHORT.get(code, f"U+{code:04X}")
    name = unicodedata.name(character, "")
    title = f"U+{code:04X} {name}".strip()
    return Markup('<span class="ctl" title="{}">{}</span>').format(title, short)


def visible(text: object) -> Markup:
    """The text, escaped, with every character named that could not be seen or does something.

    It costs as much as the text is long, and more for what must be named: cut it before.
    """
    whole = str(text)
    pieces: list[str] = []
    at = 0
    for found in _UNSEEN.finditer(whole):
        pieces += (escape(whole[at : found.start()]), _box(found.group()))
        at = found.end()
    pieces.append(escape(whole[at:]))
    return Markup("".join(pieces))


def named(text: object, limit: int = 80) -> str:
    """The same for where only plain text can stand, as in a title: the characters are named.

    Args:
        text: Any text out of a log.
        limit: Characters of it that are kept; an ellipsis replaces the rest.
    """
    whole = str(text)
    shown = whole if len(whole) <= limit else f"{whole[:limit]}\u2026"
    return _UNSEEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", shown)


# ---- Numbers, times and values ----


_LINE = 76
"""Characters of JSON that are on one line."""
_DEPTH = 8
_ITEMS = 60
_STRING = 2_000
_WHOLE = 20_000
NOT_KNOWN = "\u2013"
"""A dash."""
THIN = "\u202f"
"""Narrow no-break space: separates thousands."""
ENDLESS = "\u221e"
_MOST = 1e18
"""Counts and amounts from which on only that sign is shown."""
_LONGEST = 1e13
"""Seconds from which on it is."""


def _odd(number: float, most: float) -> str:
    """The sign for a number that is none or too large; empty for one that can be shown."""
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
    """A cost, in the currency of the prices; small ones with as many digits as they need."""
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
    return clip(_laid_out(bounded(value, _STRING, _DEPTH, _ITEMS), ""), _WHOLE)


def inline(value: Any, limit: int = 160) -> str:
    """A JSON value on one line, cut."""
    return value_in_a_line(value, limit)


def named_values(arguments: Mapping[str, Any] | None, limit: int = 300) -> str:
    """Arguments on one line, as `direction=west, far=true`."""
    pairs = [
        f"{name}={value if isinstance(value, str) else inline(value, limit)}"
        for name, value in list((arguments or {}).items())[:_ITEMS]
    ]
    return clip(", ".join(pairs), limit)


def beginning(text: str, lines: int = 3, limit: int = 240) -> tuple[str, str]:
    """The first lines of a text, and the rest; all of it where the rest would be short."""
    head = "".join(text[: limit + 1].splitlines(keepends=True)[:lines])
    if len(head) > limit:
        head = head[: head.rfind(" ", limit // 2, limit) + 1 or limit]
    rest = text[len(head) :]
    return (text, "") if len(rest) < limit // 4 else (head, rest)


def _laid_out(value: Any, before: str) -> str:
    """JSON in which what fits on a line is on one."""
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


# ---- Marks: an icon and a word for a state, so that colour alone says nothing ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How a state is shown."""

    name: str
    """Part of a class: `mark-NAME`."""
    icon: str
    """Name of a symbol in `parts/icons.html`."""
    label: str
    """What it says in words."""


_CYCLES = {
    "done": Mark(name="good", icon="check", label="done"),
    "failed": Mark(name="bad", icon="cross", label="failed"),
    "refused": Mark(name="warn", icon="ban", label="refused"),
    "none": Mark(name="warn", icon="impasse", label="impasse"),
    "unknown": Mark(name="warn", icon="ask", label="outcome unknown"),
    "cancelled": Mark(name="warn", icon="ban", label="cancelled"),
}
_DONE_WRONG = Mark(name="warn", icon="cause", label="done")
"""What was done worked, and something is wrong with it."""
_UNDER_WAY = Mark(name="idle", icon="dots", label="not finished")
_UNREADABLE = Mark(name="bad", icon="alert", label="unreadable")
_OUTCOMES = {
    TaskOutcome.SUCCESS: Mark(name="good", icon="check", label="success"),
    TaskOutcome.FAILURE: Mark(name="bad", icon="cross", label="failure"),
}


def cycle_mark(row: CycleRow) -> Mark:
    """How the cycle ended."""
    if row.impasse:
        return _CYCLES["none"]
    if not row.status:
        return _UNDER_WAY
    if row.status == "done" and any(one.sort is FindingSort.CAUSE for one in row.findings):
        return _DONE_WRONG
    return _CYCLES.get(row.status) or Mark(name="idle", icon="dots", label=row.status)


def run_mark(card: RunCard) -> Mark:
    """What the run came to."""
    if card.info is None:
        return _UNREADABLE
    if card.outcome in _OUTCOMES:
        return _OUTCOMES[card.outcome]
    if card.is_open:
        return Mark(name="idle", icon="dots", label="open")
    return Mark(name="idle", icon="dash", label="not measured")


def phase_states(row: CycleRow) -> list[tuple[str, bool]]:
    """The six phases and which of them the cycle came through."""
    return [(phase.value, phase in row.phases) for phase in PHASES]


def part_class(part: PromptPiece) -> str:
    """The class that gives a piece of a prompt its colour."""
    if part.kind.value == "data":
        return f"part-data-{part.trust.value}" if part.trust else "part-data"
    return f"part-{part.kind.value}"


def part_label(part: PromptPiece) -> str:
    """What a piece of a prompt is, in words."""
    return f"{part.kind.value} · {part.trust.value}" if part.trust else part.kind.value


def returned(view: CycleView) -> frozenset[str]:
    """What the actions of a cycle returned, as Execution shows it."""
    receipts = [receipt.content for _, receipt in view.summary.effects if receipt is not None]
    shown = receipts or [one.result for one in view.summary.actions]
    return frozenset(text for text in shown if text)


def named_by(findings: Sequence[Finding], record: str) -> bool:
    """Whether one of the findings names a record of long-term memory by its id."""
    named = f"ecord {record[:8]}"
    return any(
        named in text
        for one in findings
        for text in (one.text, *(says for _, says in one.evidence))
    )


def last_same(call: CallView) -> tuple[int, int] | None:
    """Message and piece with which the prefix ends that the request before had too."""
    ends = [
        (at, position)
        for at, message in enumerate(call.messages)
        for position, part in enumerate(message.parts)
        if part.same
    ]
    return ends[-1] if ends else None


def halves(part: PromptPiece, limit: int) -> tuple[str, str, int]:
    """What is the same as in the request before, what is new, and how much is left out."""
    shown = part.text[:limit]
    same = min(part.same, len(shown))
    return shown[:same], shown[same:], len(part.text) - len(shown)


# ---- Awareness ----


_MOVES = {Move.ADDED: "+ added", Move.CHANGED: "~ changed", Move.GONE: "\u2212 gone"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCell:
    """One cycle among those that can be shown."""

    cycle: int
    mark: str
    """Part of a class: `mark-NAME`."""
    sign: str
    text: str
    """The same in words."""


def step_cells(view: AwarenessView) -> list[StepCell]:
    """The cycles that can be shown, with how much changed in each."""
    changed: dict[int, list[CycleChange]] = {}
    for _, history in view.modules:
        for one in history.changes:
            changed.setdefault(one.cycle, []).append(one)
    return [_cell(cycle, changed.get(cycle)) for cycle in view.steps]


def _cell(cycle: int, changed: list[CycleChange] | None) -> StepCell:
    number = sum(one.of for one in changed or ())
    grave = any(one.grave for one in changed or ())
    text = "1 change" if number == 1 else f"{number} changes"
    return StepCell(
        cycle=cycle,
        mark="bad" if grave else "live" if number else "idle",
        sign=f"\u00b1{number}" if number else "=" if changed is not None else "\u00b7",
        text=text + (", a failure, a reversal or a threat" if grave else ""),
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    "v": visible,
    "svg": Markup,
    "move_word": _MOVES.__getitem__,
    **{
        filter.__name__: filter
        for filter in (
            named,
            count,
            amount,
            decimal,
            percent,
            duration,
            moment,
            clock,
            stamp,
            words,
            cycles,
            pretty,
            inline,
            named_values,
            beginning,
            returned,
            named_by,
            cycle_mark,
            run_mark,
            phase_states,
            part_class,
            part_label,
            step_cells,
            halves,
            last_same,
        )
    },
}
"""The filters of the templates; `svg` takes a drawing of `coag.inspector.charts` as it is."""
