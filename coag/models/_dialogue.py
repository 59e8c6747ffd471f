"""Dialogues in AutoGen's messages: going on with one, and writing one down."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from ._requests import message_text


def continued(dialogue: Sequence[LLMMessage], added: Sequence[LLMMessage]) -> list[LLMMessage]:
    """The dialogue with messages at its end; two texts of the user in a row become one message.

    Some chat templates refuse two user messages in a row.
    """
    if not dialogue or not added:
        return [*dialogue, *added]
    last, first = dialogue[-1], added[0]
    if not isinstance(last, UserMessage) or not isinstance(first, UserMessage):
        return [*dialogue, *added]
    if isinstance(last.content, str) and isinstance(first.content, str):
        text: str | list[str | Image] = f"{last.content}\n\n{first.content}"
    else:
        text = [*_parts(last), *_parts(first)]
    return [*dialogue[:-1], last.model_copy(update={"content": text}), *added[1:]]


def merged_system(messages: Sequence[LLMMessage]) -> list[LLMMessage]:
    """The messages with all system messages as one, at the front.

    Clients whose `model_info` lacks `multiple_system_messages` raise for scattered ones, and
    some servers read only the last.
    """
    system = [message.content for message in messages if isinstance(message, SystemMessage)]
    rest: list[LLMMessage] = [each for each in messages if not isinstance(each, SystemMessage)]
    return [SystemMessage(content="\n\n".join(system)), *rest] if system else rest


def sent_messages(messages: Sequence[LLMMessage]) -> tuple[dict[str, Any], ...]:
    """The messages as they stand in the record of a call; of images there is a hash."""
    return tuple(_sent(message) for message in messages)


def sent_call(call: FunctionCall) -> dict[str, Any]:
    """A tool call as it stands in the record of a call."""
    return {
        "id": storable(call.id or ""),
        "name": storable(call.name or ""),
        "arguments": storable(call.arguments or ""),
    }


def storable(value: object) -> str:
    """The value as text, with lone surrogates replaced: they can be in no UTF-8 file."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _parts(message: UserMessage) -> list[str | Image]:
    return [message.content] if isinstance(message.content, str) else list(message.content)


def _sent(message: LLMMessage) -> dict[str, Any]:
    match message:
        case SystemMessage():
            return {"role": "system", "content": storable(message.content)}
        case UserMessage():
            return _said(message)
        case AssistantMessage():
            return _answered(message)
        case FunctionExecutionResultMessage():
            return _brought_back(message)


def _said(message: UserMessage) -> dict[str, Any]:
    sent = {
        "role": "user",
        "content": storable(message_text(message)),
        "source": storable(message.source),
    }
    if isinstance(message.content, str):
        return sent
    parts = [len(part) if isinstance(part, str) else _hash(part) for part in message.content]
    return {**sent, "parts": parts}


def _answered(message: AssistantMessage) -> dict[str, Any]:
    told = {"role": "assistant", "source": storable(message.source)}
    if not isinstance(message.content, str):
        calls = [sent_call(call) for call in message.content]
        return {**told, "content": storable(message.thought or ""), "tool_calls": calls}
    thought = {} if message.thought is None else {"thought": storable(message.thought)}
    return {**told, "content": storable(message.content), **thought}


def _brought_back(message: FunctionExecutionResultMessage) -> dict[str, Any]:
    results = [
        {
            "id": storable(result.call_id),
            "name": storable(result.name),
            "is_error": result.is_error,
            "characters": len(result.content),
        }
        for result in message.content
    ]
    return {"role": "tool", "content": storable(message_text(message)), "results": results}


def _hash(image: Image) -> str:
    """Tells images apart by their pixels: writing one as PNG would take far longer."""
    pixels = image.image
    digest = hashlib.sha256(pixels.tobytes()).hexdigest()[:32]
    return f"{pixels.width}x{pixels.height} {digest}"
