"""Dialogues in AutoGen's messages: going on with one, and writing one down."""

from __future__ import annotations

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
    """The messages as they stand in the record of a call; images are left out."""
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
    if isinstance(message, FunctionExecutionResultMessage):
        return {"role": "tool", "content": storable(message_text(message))}
    if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
        calls = [sent_call(call) for call in message.content]
        return {
            "role": "assistant",
            "content": storable(message.thought or ""),
            "tool_calls": calls,
        }
    role = {"SystemMessage": "system", "UserMessage": "user"}.get(message.type, "assistant")
    return {"role": role, "content": storable(message_text(message))}
