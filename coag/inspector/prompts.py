"""Requests to models: what the pieces of a prompt are, and what it shares with the one before.

Working memory renders data between delimiters that it cannot close itself, under a heading each;
everything else is instruction. Foreign logs may hold anything, so whatever is found, the pieces
one after the other are the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from coag.schema import ModelCall, Trust, estimate_tokens

from .views import CallView, MessageView, PartKind, PromptPiece

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
) -> tuple[PromptPiece, ...]:
    """The pieces of a recorded message; one after the other they are its `message_text`.

    Args:
        message: As a model call has it.
        delimited: True if working memory rendered it, so that data is between delimiters.
        same: Characters at its beginning that are part of the prefix which the request shares
            with the one before it.
    """
    parts: list[PromptPiece] = []
    before = 0
    for title, text in _texts(message):
        for piece, end in _ends(_pieces(str(message.get("role")), title, text, delimited), text):
            whole = text[piece.begin : end]
            shared = min(max(same - before - piece.begin, 0), len(whole))
            parts.append(
                PromptPiece(
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


# ---- Requests to models, each beside the one that it repeats most of ----


def call_views(calls: Sequence[ModelCall], earlier: Sequence[ModelCall]) -> list[CallView]:
    """The requests of a cycle as they are shown.

    Each is compared with the request before it, and with the last one of its phase; what it
    shares most with may have been in a server's cache.

    Args:
        calls: In order.
        earlier: Requests before the first of them, in order; as many as are at hand.
    """
    views: list[CallView] = []
    latest = {call.phase: call for call in earlier}
    before = None
    for call in calls:
        rivals = [each for each in (before, latest.get(call.phase)) if each is not None]
        shared = max((_shared(call, each) for each in rivals), key=sum, default=list[int]())
        views.append(_view(call, shared))
        latest[call.phase] = before = call
    return views


def _shared(call: ModelCall, other: ModelCall) -> list[int]:
    """Of each message how many characters are in the common prefix, as long as there are any."""
    found: list[int] = []
    for mine, theirs in zip(call.messages, other.messages, strict=False):
        if mine.get("role") != theirs.get("role"):
            break
        text = message_text(mine)
        found.append(shared_prefix(text, message_text(theirs)))
        if found[-1] < len(text):
            break
    return found


def _view(call: ModelCall, shared: Sequence[int]) -> CallView:
    lengths = [*shared, *[0] * (len(call.messages) - len(shared))]
    delimited = call.phase is not None
    return CallView(
        call=call,
        messages=tuple(
            _message(message, delimited=delimited, same=same)
            for message, same in zip(call.messages, lengths, strict=True)
        ),
        same_tokens=sum(
            estimate_tokens(message_text(message)[:same])
            for message, same in zip(call.messages, lengths, strict=True)
        ),
        answer=_answer(call.raw),
    )


def _message(message: Mapping[str, Any], *, delimited: bool, same: int) -> MessageView:
    role = message.get("role")
    return MessageView(
        role=role if isinstance(role, str) else "",
        parts=parts_of(message, delimited=delimited, same=same),
        tokens=estimate_tokens(message_text(message)),
    )


def _answer(raw: str) -> Any:
    """The answer where it is an object or a list; small ones of JSON are text as well."""
    if raw.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return from_json(raw)
    except ValueError:
        return None
