"""Requests to models: what the pieces of a prompt are, and what it shares with the one before.

Working memory renders data between delimiters that it cannot close itself, under a heading each;
everything else is instruction. Foreign logs may hold anything, so whatever is found, the pieces
one after the other are the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from os.path import commonprefix
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


def message_text(message: Mapping[str, Any]) -> str:
    """A recorded message as one text: its content, and what an answer holds beside it."""
    return "".join(text for _, text in _texts(message))


def parts_of(
    message: Mapping[str, Any], *, delimited: bool, same: int = 0
) -> tuple[PromptPiece, ...]:
    """The pieces of a recorded message; one after the other they are its `message_text`.

    Data is between delimiters where working memory rendered it. So many characters at its beginning
    are the same as in the request before.
    """
    parts: list[PromptPiece] = []
    for title, text in _texts(message):
        for piece in _pieces(str(message.get("role")), title, text, delimited):
            shared = min(max(same, 0), len(piece.text))
            same -= len(piece.text)
            if piece.text:
                tokens = estimate_tokens(piece.text)
                parts.append(replace(piece, tokens=tokens, same=shared))
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


def _pieces(role: str, title: str, text: str, delimited: bool) -> Iterator[PromptPiece]:
    if role == "assistant" or not delimited or title:
        kind = PartKind.ANSWER if role == "assistant" else PartKind.PLAIN
        yield PromptPiece(kind=kind, title=title, text=text)
        return
    at = 0
    for piece in islice(_delimited(text), _MOST):
        yield piece
        at += len(piece.text)
    if at < len(text):
        yield PromptPiece(kind=PartKind.PLAIN, title="and more", text=text[at:])


def _delimited(text: str) -> Iterator[PromptPiece]:
    at = 0
    while opened := _OPENED.search(text, at):
        closed = _CLOSED.search(text, opened.end() - 1)
        if closed is None:
            break
        yield from _instructions(text, at, opened.start())
        at = closed.end()
        yield PromptPiece(
            kind=PartKind.DATA,
            title=opened["title"] or "",
            text=text[opened.start() : at],
            source=opened["source"],
            trust=Trust(opened["trust"]),
        )
    yield from _instructions(text, at, len(text))


def _instructions(text: str, begin: int, end: int) -> Iterator[PromptPiece]:
    """What is no data, at its headings."""
    at, title = begin, ""
    for heading in _HEADING.finditer(text, begin, end):
        if heading.start() > at:
            yield PromptPiece(
                kind=PartKind.INSTRUCTION, title=title, text=text[at : heading.start()]
            )
        at, title = heading.start(), heading["title"]
    if end > at:
        yield PromptPiece(kind=PartKind.INSTRUCTION, title=title, text=text[at:end])


# ---- Requests to models, each beside the one that it repeats most of ----


def call_views(calls: Sequence[ModelCall], earlier: Sequence[ModelCall]) -> list[CallView]:
    """The requests of a cycle as they are shown.

    Each is compared with the request before it, and with the last one of its phase; what it
    shares most with may have been in a server's cache.
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
    positions: list[int] = []
    for mine, theirs in zip(call.messages, other.messages, strict=False):
        text = message_text(mine)
        if mine.get("role") != theirs.get("role"):
            break
        same = commonprefix([text, message_text(theirs)])  # noqa: RUF071 - these are no paths
        positions.append(len(same))
        if positions[-1] < len(text):
            break
    return positions


def _view(call: ModelCall, shared: Sequence[int]) -> CallView:
    lengths = [*shared, *[0] * (len(call.messages) - len(shared))]
    messages: list[MessageView] = []
    same_tokens = 0
    for message, same in zip(call.messages, lengths, strict=True):
        role, text = message.get("role"), message_text(message)
        same_tokens += estimate_tokens(text[:same])
        messages.append(
            MessageView(
                role=role if isinstance(role, str) else "",
                parts=parts_of(message, delimited=call.phase is not None, same=same),
                tokens=estimate_tokens(text),
            )
        )
    answer = None
    if call.raw.lstrip()[:1] in ("{", "["):  # small ones of JSON are text as well
        with suppress(ValueError):
            answer = from_json(call.raw)
    return CallView(call=call, messages=tuple(messages), same_tokens=same_tokens, answer=answer)
