"""A message of a prompt, taken apart into what its pieces are.

Working memory renders data between delimiters that it cannot close itself, under a heading each;
all else is instruction. Foreign logs may hold anything, so whatever is found, the pieces one after
the other are the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coag.inspector.views import PartKind, PromptPart
from coag.schema import Trust, estimate_tokens

_OPENED = re.compile(
    r"^(?:#{1,6} (?P<title>[^\n]{0,400})\n)?"
    r'<data source="(?P<source>[^"<>\n]{0,400})" trust="(?P<trust>developer|user|untrusted)">\n',
    re.MULTILINE,
)
_CLOSED = re.compile(r"\n</data>(?=\n|\Z)\n*")
_HEADING = re.compile(r"^#{1,2} (?P<title>[^\n]{1,400})$", re.MULTILINE)
_MOST = 400
"""Pieces of one message; what comes after them is one piece more."""
_EXTRAS = ("thought", "tool_calls")
"""What an answer may hold beside its text."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where a piece of a message begins, and what it is."""

    begin: int
    kind: PartKind
    title: str = ""
    source: str = ""
    trust: Trust | None = None


def message_text(message: Mapping[str, Any]) -> str:
    """A recorded message as one text: its content, and what an answer holds beside it."""
    return "".join(text for _, text in _texts(message))


def parts_of(
    message: Mapping[str, Any], *, delimited: bool, same: int = 0
) -> tuple[PromptPart, ...]:
    """The pieces of a recorded message; one after the other they are its `message_text`.

    Args:
        message: As a model call has it.
        delimited: True if working memory rendered it, so that data stands between delimiters.
        same: Characters at its beginning that are part of the prefix which the request shares
            with the one before it.
    """
    parts: list[PromptPart] = []
    before = 0
    for title, text in _texts(message):
        for piece, end in _ends(_pieces(str(message.get("role")), title, text, delimited), text):
            whole = text[piece.begin : end]
            shared = min(max(same - before - piece.begin, 0), len(whole))
            parts.append(
                PromptPart(
                    kind=piece.kind,
                    title=piece.title,
                    text=whole,
                    source=piece.source,
                    trust=piece.trust,
                    tokens=estimate_tokens(whole),
                    same=shared,
                )
            )
        before += len(text)
    return tuple(parts)


def _texts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts that a message holds, each under a name; none that is empty."""
    content = message.get("content")
    if content is not None and content != "":
        yield "", content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    for name in _EXTRAS:
        value = message.get(name)
        if value:
            yield name.replace("_", " "), json.dumps(value, ensure_ascii=False)


def _ends(pieces: Iterator[_Piece], text: str) -> Iterator[tuple[_Piece, int]]:
    """The pieces that hold something, each with where it ends."""
    found = list(pieces)
    ends = [*(piece.begin for piece in found[1:]), len(text)]
    for piece, end in zip(found, ends, strict=True):
        if end > piece.begin:
            yield piece, end


def _pieces(role: str, title: str, text: str, delimited: bool) -> Iterator[_Piece]:
    if role == "assistant":
        yield _Piece(0, PartKind.ANSWER, title)
    elif delimited and not title:
        yield from _bounded(_delimited(text), text)
    else:
        yield _Piece(0, PartKind.PLAIN, title)


def _bounded(pieces: Iterator[_Piece], text: str) -> Iterator[_Piece]:
    """So many of the pieces, and the rest as one of which nothing is said."""
    for number, piece in enumerate(pieces):
        if number == _MOST:
            yield _Piece(piece.begin, PartKind.PLAIN, "and more")
            return
        yield piece


def _delimited(text: str) -> Iterator[_Piece]:
    at = 0
    while opened := _OPENED.search(text, at):
        closed = _CLOSED.search(text, opened.end() - 1)
        if closed is None:
            break
        yield from _instructions(text, at, opened.start())
        yield _Piece(
            opened.start(),
            PartKind.DATA,
            opened["title"] or "",
            opened["source"],
            Trust(opened["trust"]),
        )
        at = closed.end()
    yield from _instructions(text, at, len(text))


def _instructions(text: str, begin: int, end: int) -> Iterator[_Piece]:
    """What is no data, at its headings."""
    title = ""
    at = begin
    for heading in _HEADING.finditer(text, begin, end):
        if heading.start() > at:
            yield _Piece(at, PartKind.INSTRUCTION, title)
        at, title = heading.start(), heading["title"]
    if end > at:
        yield _Piece(at, PartKind.INSTRUCTION, title)


def shared_prefix(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
