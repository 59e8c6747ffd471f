"""Prompts as AutoGen messages."""

from __future__ import annotations

from typing import Any

from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage

from coag.schema import Prompt, PromptMessage


def one_system_message(prompt: Prompt) -> Prompt:
    """The prompt with its system messages merged into one at the front.

    Several or scattered system messages make some clients raise and some servers drop all but
    the last.
    """
    system = [message.content for message in prompt if message.role == "system"]
    rest = tuple(message for message in prompt if message.role != "system")
    if not system:
        return rest
    return (PromptMessage(role="system", content="\n\n".join(system)), *rest)


def with_addition(prompt: Prompt, text: str) -> Prompt:
    """The prompt with a text at its end: in the last message if the user says it, else after.

    Some chat templates refuse two user messages in a row.
    """
    if prompt and prompt[-1].role == "user":
        last = PromptMessage(role="user", content=f"{prompt[-1].content}\n\n{text}")
        return (*prompt[:-1], last)
    return (*prompt, PromptMessage(role="user", content=text))


def to_autogen(prompt: Prompt) -> list[LLMMessage]:
    """The prompt in AutoGen's message types, text only."""
    return [_to_autogen(message) for message in prompt]


def as_sent(prompt: Prompt) -> tuple[dict[str, Any], ...]:
    """The prompt as it stands in the record of a call."""
    return tuple({"role": message.role, "content": message.content} for message in prompt)


def _to_autogen(message: PromptMessage) -> LLMMessage:
    match message.role:
        case "system":
            return SystemMessage(content=message.content)
        case "user":
            return UserMessage(content=message.content, source="user")
        case "assistant":
            return AssistantMessage(content=message.content, source="assistant")
