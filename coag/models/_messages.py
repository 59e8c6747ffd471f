"""Prompts as AutoGen messages."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from autogen_core import Image
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage

from coag.schema import Prompt, PromptMessage

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
    """The prompt as it stands in the record of a call."""
    return tuple(_as_sent(message) for message in prompt)


def _as_sent(message: PromptMessage) -> dict[str, Any]:
    """Images are told by number; what they were stands in the percept that brought them."""
    if message.images:
        images = len(message.images)
        return {"role": message.role, "content": message.content, "images": images}
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
