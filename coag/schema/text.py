"""Texts: how many tokens they take, how they are read, what of them is made safe to show."""

# ruff: noqa: RUF001 - what looks alike is what a part of this is about
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape

# ---- A local estimate of how many tokens a text is; no tokenizer, no network ----


BYTES_PER_TOKEN = 4
"""English prose has about four bytes of UTF-8 a token with the tokenizers in use today."""


def estimate_tokens(text: str) -> int:
    """About how many tokens the text is: its UTF-8 bytes over four, rounded up."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def cut_to_tokens(text: str, budget: int) -> str:
    """The text, or its beginning with a note of how much is missing, within `budget` tokens.

    A budget too small for the note gives the beginning alone.
    """
    if estimate_tokens(text) <= budget:
        return text
    missing = estimate_tokens(text) - budget
    note = f" [… {missing} tokens cut]"
    room = budget * BYTES_PER_TOKEN - len(note.encode())
    if room < 0:
        note, room = "", budget * BYTES_PER_TOKEN
    kept = text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
    return kept + note


def well_formed(text: str) -> str:
    """The text with characters that UTF-8 cannot carry (lone surrogates) replaced by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


# ---- Making foreign text safe for a terminal, and short ----


_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"  # CSI and short ones: colours, movement
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""All but tab and newline; with the marks that turn the direction of writing."""


def cleaned(text: str) -> str:
    """The text without terminal escapes and control characters; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def one_line(text: str, limit: int = 300) -> str:
    """The beginning of a foreign text, cleaned, on one line.

    Args:
        text: Any text out of a log.
        limit: Characters kept; what is missing is counted.
    """
    line = " ".join(cleaned(text).split())
    if len(line) <= limit:
        return line
    return f"{line[:limit]} [… {len(line) - limit} more]"


def escaped_json(line: str) -> str:
    """A line of JSON of the same value in which no character can steer a terminal."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", line)


# ---- Delimiters of ours in foreign text, however they are spelled there ----


_ALIKE = {
    "<": "‹〈〈⟨⟪❮❬❰˂ᐸ≺≪«《⧼﹤<",
    ">": "›〉〉⟩⟫❯❭❱˃ᐳ≻≫»》⧽﹥>",
    "/": "⁄∕⧸╱⟋᜵⫽〳丿ノ",
    "d": "ԁⅾᏧᑯꓒɗɖđð",
    "a": "аɑαᴀᎪΑАᗅ",
    "t": "тτᴛᎢТΤꓔƭ",
    "g": "ɡցǥ",
    "e": "еεᴇЕΕ",
    "n": "ոηռп",
    "s": "ѕЅꜱ",
}
_ENTITY = re.compile(r"&(?:#x?[0-9a-f]{1,8}|lt|gt|sol);?", re.IGNORECASE)
_HIDDEN = frozenset({"Cf", "Cc", "Mn", "Me", "Cn", "Co", "Cs"})
_NAMES = ("data", "sagen")


class _Table(dict[int, str | None]):
    """What each character reads as; None for what nobody sees."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        seen = character.isspace() or unicodedata.category(character) not in _HIDDEN
        self[code] = character if seen else None
        return self[code]


_READS_AS = _Table({ord(one): plain for plain, alike in _ALIKE.items() for one in alike})


@lru_cache(maxsize=8)
def _tag(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<\s*(?:/\s*)*(?:{'|'.join(names)})", re.IGNORECASE)


def as_read(text: str) -> str:
    """A text as a careless reader takes it: without what is invisible, look-alikes as plain."""
    if text.isascii() and "&" not in text:
        return text
    plain = _ENTITY.sub(lambda found: unescape(found[0]), text)
    return unicodedata.normalize("NFKD", plain).translate(_READS_AS)


def without_tags(text: str, escaped: str = "<\\", names: tuple[str, ...] = _NAMES) -> str:
    """The text in which nothing reads as a tag of one of these names; else as it is.

    Takes time in proportion to its length.
    """
    tag = _tag(names)
    if not tag.search(as_read(text)):
        return text
    pieces = list(_pieces(text))
    reads = "".join(read for _, read in pieces)
    starts = {found.start() for found in tag.finditer(reads)}
    place, parts = 0, list[str]()
    for piece, read in pieces:
        parts.append(escaped if read and place in starts else piece)
        place += len(read)
    return "".join(parts)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Each character, or entity, with what it reads as."""
    place = 0
    for found in _ENTITY.finditer(text):
        yield from ((one, as_read(one)) for one in text[place : found.start()])
        yield found[0], as_read(found[0])
        place = found.end()
    yield from ((one, as_read(one)) for one in text[place:])


# ---- Showing foreign text in a notebook: small tables of HTML in which nothing can act ----
#
# There is no script, no class and no address in it, so that it looks the same wherever it is put;
# colours are the page's own, so that it can be read in dark and light.


CELL = 200
"""Characters that are shown of a text, where no other number is given."""
ROWS = 20
"""Rows that are shown of a table."""

_FACTS = 40

_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""All that steers or is not seen: controls, marks of direction, characters without a width."""

_BOX = "border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:.6em .9em;max-width:64em;"
_WORDS = "overflow-wrap:anywhere;white-space:normal;"
_PLACE = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;"
_CELL = f"{_PLACE}{_WORDS}min-width:12em;"
_SHORT = f"{_PLACE}white-space:nowrap;"
_NARROW = 28
"""Characters of a text that is never broken."""
_QUIET = "opacity:.75;"


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlTable:
    """A table; what stands in it is any value, and shown as text."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    total: int | None = None
    """How many rows there are, where not all are given."""


def visible(text: str, limit: int = CELL) -> str:
    """The beginning of a foreign text, in which what steers or is not seen is written out.

    Args:
        text: Any text.
        limit: Characters kept; what is missing is counted.
    """
    kept = _STEERING.sub(_written_out, well_formed(text[:limit]))
    more = len(text) - limit
    return f"{kept} [… {more:,} more]" if more > 0 else kept


def _written_out(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 1 << 8:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def html_text(value: object, limit: int = CELL) -> str:
    """A value as text within HTML; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(visible(value if isinstance(value, str) else str(value), limit))


def html_card(
    title: str,
    *,
    facts: Iterable[tuple[str, object]] = (),
    lines: Iterable[str] = (),
    table: HtmlTable | None = None,
) -> str:
    """A small box of HTML.

    Args:
        title: What is shown, in a few words.
        facts: Names with values; those of None are left out.
        lines: Sentences below them; of many the first ones.
        table: Below those.
    """
    parts = [f'<div style="{_BOX}"><strong>{html_text(title)}</strong>']
    told = [(name, value) for name, value in facts if value is not None][:_FACTS]
    if told:
        cells = "".join(f"<tr>{_cell(name, _QUIET)}{_cell(value)}</tr>" for name, value in told)
        parts.append(f'<table style="border:0;margin:.4em 0">{cells}</table>')
    parts += _sentences(lines)
    if table is not None and table.rows:
        parts.append(_table(table))
    return "".join([*parts, "</div>"])


def _sentences(lines: Iterable[str]) -> Iterable[str]:
    shown = list(lines)
    for line in shown[:ROWS]:
        yield f'<div style="{_WORDS}margin:.3em 0">{html_text(line, 600)}</div>'
    if len(shown) > ROWS:
        yield f'<div style="{_QUIET}">and {len(shown) - ROWS:,} more</div>'


def _table(table: HtmlTable) -> str:
    head = "".join(_cell(name, element="th") for name in table.columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows[:ROWS])
    total = len(table.rows) if table.total is None else table.total
    left = total - min(len(table.rows), ROWS)
    more = f'<div style="{_QUIET}">and {left:,} more</div>' if left > 0 else ""
    frame = '<table style="border:0;margin:.5em 0;border-collapse:collapse">'
    return f"{frame}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object, style: str = "", element: str = "td") -> str:
    text = html_text(value)
    place = _SHORT if len(text) <= _NARROW else _CELL
    return f'<{element} style="{place}{style}">{text}</{element}>'
