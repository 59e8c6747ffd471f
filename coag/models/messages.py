"""Prompts and answers as AutoGen's messages, and as they are recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)

from coag._util.text import estimate_tokens, well_formed
from coag.schema import Prompt, PromptMessage

from .client import message_text

# ---- Prompts as AutoGen messages ----


_SHORT = 2_000
"""Characters of a message that is made only once."""


def one_system_message(prompt: Prompt) -> Prompt:
    """The prompt with its system messages merged into one at the front.

    Several or scattered system messages make some clients raise and some servers drop all but
    the last.
    """
    roles = [message.role for message in prompt]
    if "system" not in roles[1:]:
        return tuple(prompt)
    system = [message.content for message in prompt if message.role == "system"]
    rest = tuple(message for message in prompt if message.role != "system")
    return (PromptMessage(role="system", content="\n\n".join(system)), *rest)


def with_addition(prompt: Prompt, text: str) -> Prompt:
    """The prompt with a text at its end: in the last message if the user says it, else after.

    Some chat templates refuse two user messages in a row.
    """
    if prompt and prompt[-1].role == "user":
        last = prompt[-1].model_copy(update={"content": f"{prompt[-1].content}\n\n{text}"})
        return (*prompt[:-1], last)
    return (*prompt, PromptMessage(role="user", content=text))


def to_autogen(prompt: Prompt, *, vision: bool = False) -> list[LLMMessage]:
    """The prompt in AutoGen's message types; images only for a model that sees them."""
    return [_to_autogen(message, vision) for message in prompt]


def as_sent(prompt: Prompt) -> tuple[dict[str, Any], ...]:
    """The prompt as the record of a call holds it."""
    return tuple(_as_sent(message) for message in prompt)


def _as_sent(message: PromptMessage) -> dict[str, Any]:
    """Of images the number is recorded; the percept that brought them holds what they were."""
    if message.images:
        return {**_sent(message.role, message.content), "images": len(message.images)}
    make = _sent_once if len(message.content) <= _SHORT else _sent
    return make(message.role, message.content)


def _sent(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _to_autogen(message: PromptMessage, vision: bool) -> LLMMessage:
    if vision and message.images:
        seen = [Image.from_uri(image) for image in message.images]
        return UserMessage(content=[message.content, *seen], source="user")
    make = _made_once if len(message.content) <= _SHORT else _made
    return make(message.role, message.content)


def _made(role: str, content: str) -> LLMMessage:
    if role == "system":
        return SystemMessage(content=content)
    if role == "assistant":
        return AssistantMessage(content=content, source="assistant")
    return UserMessage(content=content, source="user")


# The messages of a long dialogue are sent again in every turn.
_made_once = lru_cache(maxsize=2_000)(_made)
_sent_once = lru_cache(maxsize=2_000)(_sent)


# ---- Dialogues in AutoGen's messages: going on with one, and writing one down ----


def continued(dialogue: Sequence[LLMMessage], added: Sequence[LLMMessage]) -> list[LLMMessage]:
    """The dialogue with messages at its end; two texts of the user in a row become one message.

    Some chat templates refuse two user messages in a row.
    """
    if not dialogue or not added:
        return [*dialogue, *added]
    last, first = dialogue[-1], added[0]
    if not isinstance(last, UserMessage) or not isinstance(first, UserMessage):
        return [*dialogue, *added]
    text: str | list[str | Image] = [*_parts(last), *_parts(first)]
    if isinstance(last.content, str) and isinstance(first.content, str):
        text = f"{last.content}\n\n{first.content}"
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
    """The messages as the record of a call holds them; of images there is a hash."""
    return tuple(_sent_message(message) for message in messages)


def sent_call(call: FunctionCall) -> dict[str, Any]:
    """A tool call as the record of a call holds it."""
    return {
        "id": storable(call.id or ""),
        "name": storable(call.name or ""),
        "arguments": storable(call.arguments or ""),
    }


def storable(value: object) -> str:
    """The value as text, with lone surrogates replaced: they can be in no UTF-8 file."""
    return well_formed(str(value))


def _parts(message: UserMessage) -> list[str | Image]:
    return [message.content] if isinstance(message.content, str) else list(message.content)


def _sent_message(message: LLMMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "user", "content": storable(message_text(message))}
    match message:
        case SystemMessage():
            fields["role"] = "system"
        case UserMessage():
            fields["source"] = storable(message.source)
            if not isinstance(message.content, str):
                fields["parts"] = [
                    len(part) if isinstance(part, str) else _hash(part) for part in message.content
                ]
        case AssistantMessage():
            fields |= {"role": "assistant", "source": storable(message.source)}
            if not isinstance(message.content, str):
                fields["content"] = storable(message.thought or "")
                fields["tool_calls"] = [sent_call(call) for call in message.content]
            elif message.thought is not None:
                fields["thought"] = storable(message.thought)
        case FunctionExecutionResultMessage():
            fields["role"] = "tool"
            fields["results"] = [
                {
                    "id": storable(result.call_id),
                    "name": storable(result.name),
                    "is_error": result.is_error,
                    "characters": len(result.content),
                }
                for result in message.content
            ]
    return fields


def _hash(image: Image) -> str:
    """Tells images apart by their pixels: writing one as PNG would take far longer."""
    pixels = image.image
    digest = hashlib.sha256(pixels.tobytes()).hexdigest()[:32]
    return f"{pixels.width}x{pixels.height} {digest}"


# ---- A client's response, checked before it is used: nobody holds clients to their types ----


_SHOWN = 80
"""Characters of a wrong value that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizedResponse:
    """A result whose fields are what their types say."""

    content: str | tuple[FunctionCall, ...] = ""
    thought: str = ""
    finish_reason: str | None = None
    usage: RequestUsage
    usage_estimated: bool = False
    """True if the client gave no possible numbers, so that these are estimated."""
    fault: str = ""
    """Why the result cannot be read, for the log and the model; its content is empty then."""


def normalize_response(result: object, sent: Sequence[Mapping[str, Any]]) -> NormalizedResponse:
    """The result as it can be used: wrong usage is estimated, anything else wrong is a fault."""
    if not isinstance(result, CreateResult):
        fault = _fault_text("The client brought no result but", result)
        return NormalizedResponse(usage=_estimate(sent, ""), usage_estimated=True, fault=fault)
    # Made without validation, a result may lack any field.
    content: Any = getattr(result, "content", None)
    thought: Any = getattr(result, "thought", None)
    finish: Any = getattr(result, "finish_reason", None)
    usage: Any = getattr(result, "usage", None)
    fault = _fault(content, thought)
    estimated = not _believable(usage)
    if content is None or isinstance(content, str):  # careless clients bring None
        content = storable(content or "")
    return NormalizedResponse(
        content="" if fault else content if isinstance(content, str) else tuple(content),
        thought="" if fault else storable(thought or ""),
        finish_reason=None if finish is None else storable(finish),
        usage=_estimate(sent, content) if estimated else usage,
        usage_estimated=estimated,
        fault=fault,
    )


def _fault(content: Any, thought: Any) -> str:
    if thought is not None and not isinstance(thought, str):
        return _fault_text("The client brought as the model's thought no text but", thought)
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list | tuple):
        return _fault_text("The client brought as its answer neither a text nor calls but", content)
    for call in cast("Sequence[object]", content):
        if not isinstance(call, FunctionCall):
            return _fault_text("Among the tool calls of the answer was", call)
        name = cast("object", call.name)
        if not isinstance(name, str):
            return _fault_text("A tool call of the answer names as its tool", name)
    return ""


def _fault_text(problem: str, value: object) -> str:
    text = storable(repr(value))
    return f"{problem} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}."


def _believable(usage: object) -> bool:
    if not isinstance(usage, RequestUsage):
        return False
    numbers = cast("tuple[object, ...]", (usage.prompt_tokens, usage.completion_tokens))
    return all(isinstance(number, int) and number >= 0 for number in numbers)


def _estimate(sent: Sequence[Mapping[str, Any]], content: object) -> RequestUsage:
    prompt = sum(estimate_tokens(str(message.get("content", ""))) for message in sent)
    written = content if isinstance(content, str) else "" if content is None else repr(content)
    return RequestUsage(prompt_tokens=prompt, completion_tokens=estimate_tokens(written))
