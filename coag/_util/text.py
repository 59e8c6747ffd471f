"""Foreign text: made safe to show, cut, measured in tokens, cleared of our own delimiters."""

# ruff: noqa: RUF001 - what looks alike is what a part of this is about
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html import unescape

# ---- Text that is safe to show, and short ----


UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
"""Characters that nobody sees or that steer, for a class of a pattern; not tab and newline.

They are controls, marks of direction, characters without a width or without a meaning (private
ones and halves), variation selectors, and blanks that look like others.
"""
_UNSEEN = re.compile(f"[{UNSEEN}]")
_JOINED = re.compile(
    f"(?![\u200c\u200d\ufe0e\ufe0f])[{UNSEEN}]|(?:(?<=[\\x00-\\x7f])|^)[\u200c\u200d]"
)
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"  # CSI and short ones: colours, movement
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""All but tab and newline; with the marks that turn the direction of writing."""


_NOT_COMPARED = frozenset({"Cf", "Cc", "Mn", "Me", "Cn", "Co"})


@lru_cache(maxsize=128)
def comparable(text: str) -> str:
    """The text in one case, form and width, its white space single, without unseen signs."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = (one for one in folded if one.isspace() or is_compared(one))
    return " ".join("".join(" " if one.isspace() else one for one in kept).split())


def is_compared(sign: str) -> bool:
    """Whether a sign is one that a reader sees and that `comparable` keeps."""
    return unicodedata.category(sign) not in _NOT_COMPARED


def visible(text: str, limit: int | None = None, *, joined: bool = False) -> str:
    r"""The beginning of a foreign text with each character that nobody sees as an escape.

    Tabs and newlines stay; all else that steers or hides is written out, as in `\x1b` or `\u202e`.

    Args:
        text: Any text.
        limit: Characters kept; the number of missing ones is added.
        joined: Whether joiners after a letter or a sign stay, which Persian and emoji need.
    """
    pattern = _JOINED if joined else _UNSEEN
    shown = pattern.sub(lambda found: found[0].encode("unicode_escape").decode(), text[:limit])
    return clip(text, limit, shown)


def without_unseen(text: str) -> str:
    """The text without the characters that nobody sees; unusual blanks become plain ones."""
    return _UNSEEN.sub(lambda found: " " if unicodedata.category(found[0]) == "Zs" else "", text)


def clip(text: str, limit: int | None, beginning: str | None = None) -> str:
    """The beginning of a text, and how many characters are missing.

    Args:
        text: Any text.
        limit: Characters kept; None keeps all.
        beginning: How its beginning is shown, if not as it is.
    """
    shown = text[:limit] if beginning is None else beginning
    missing = 0 if limit is None else len(text) - limit
    return f"{shown} [… {missing:,} more]" if missing > 0 else shown


def ellipsis(text: str, limit: int) -> str:
    """The text in at most so many characters; the last one is `…` if it was cut."""
    return text if len(text) <= limit else f"{text[: max(0, limit - 1)]}…"


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 pair, 1,200 pairs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cleaned(text: str) -> str:
    """The text without terminal escapes and control characters; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def in_a_line(text: str) -> str:
    """The text with each run of blanks and line breaks as one blank."""
    return " ".join(text.split())


def one_line(text: str, limit: int = 300) -> str:
    """The beginning of a foreign text, cleaned, on one line; missing characters are counted."""
    return clip(in_a_line(cleaned(text)), limit)


def escaped_json(line: str) -> str:
    """A line of JSON of the same value in which no character can steer a terminal."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", line)


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
    beginning = text.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
    return beginning + note


def well_formed(text: str) -> str:
    """The text with characters that UTF-8 cannot carry (lone surrogates) replaced by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
    """A text as it looks to a reader: without invisible characters, look-alikes as plain ones."""
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
