"""Delimiters of ours in foreign text, however they are spelled there."""

# ruff: noqa: RUF001 - what looks alike is what this is about

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html import unescape

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
