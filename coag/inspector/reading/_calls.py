"""Requests to models, each beside the one that it repeats most of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from coag.inspector.views import CallView, MessageView
from coag.schema import ModelCall, estimate_tokens

from ._parts import message_text, parts_of, shared_prefix


def call_views(calls: Sequence[ModelCall], earlier: Sequence[ModelCall]) -> list[CallView]:
    """The requests of a cycle as they are shown.

    Each is compared with the request before it, and with the last one of its phase; what it
    shares most with is what a server's cache can have held.

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
