"""Between AutoGen's messages and ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from coag.schema import Clock, IdSource, Percept, PerceptKind, Prompt, Trust

from ._working_memory import Utterance


def utterances(
    messages: Sequence[LLMMessage],
    at: datetime,
    named: Callable[[object], Mapping[str, str]] = lambda content: {},
) -> tuple[Utterance, ...]:
    """AutoGen messages as dialogue. System messages are instructions, not dialogue: left out.

    Tool results stand as untrusted text of their tool, images as `[image]` and by their hash.

    Args:
        messages: The messages.
        at: When they were said.
        named: Gives the images of a content by their hash.
    """
    said: list[Utterance] = []
    for message in messages:
        match message:
            case UserMessage():
                trust = Trust.USER if message.source == "user" else Trust.UNTRUSTED
                heard = _utterance(message.source, _text(message), trust, at)
                said.append(heard.model_copy(update={"images": tuple(named(message.content))}))
            case AssistantMessage():
                said.append(_utterance(message.source, _text(message), Trust.DEVELOPER, at, True))
            case FunctionExecutionResultMessage():
                said += [
                    _utterance(result.name, result.content, Trust.UNTRUSTED, at)
                    for result in message.content
                ]
            case SystemMessage():
                continue
    return tuple(said)


def percepts_of(
    message: LLMMessage,
    clock: Clock,
    ids: IdSource,
    named: Callable[[object], Mapping[str, str]],
) -> list[Percept]:
    """What an agent perceives of an AutoGen message; nothing of instructions to another one."""
    return [
        Percept(
            id=ids("percept"),
            at=said.at,
            kind=PerceptKind.MESSAGE,
            source=said.source,
            trust=said.trust,
            content=said.content,
            images=dict(named(message.content)),
        )
        for said in utterances([message], clock.now())
    ]


def _utterance(
    source: str, content: str, trust: Trust, at: datetime, own: bool = False
) -> Utterance:
    return Utterance(source=source, own=own, trust=trust, content=content, at=at)


def _text(message: UserMessage | AssistantMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts: list[str] = []
    for part in message.content:
        if isinstance(part, str):
            parts.append(part)
        elif hasattr(part, "arguments"):
            parts.append(json.dumps(part.__dict__, default=str))
        else:
            parts.append("[image]")
    return "\n".join(parts)


def dialogue_messages(
    dialogue: Sequence[Utterance], name: str = "", thought: str = ""
) -> list[LLMMessage]:
    """The dialogue as AutoGen messages.

    Args:
        dialogue: What was said.
        name: The agent's name, as the source of its own messages.
        thought: What it thought when it said its own ones.
    """
    return [
        AssistantMessage(content=said.content, source=name or said.source, thought=thought or None)
        if said.own
        else UserMessage(content=said.content, source=said.source)
        for said in dialogue
    ]


def prompt_messages(prompt: Prompt) -> list[LLMMessage]:
    """A prompt as AutoGen messages."""
    made: list[LLMMessage] = []
    for message in prompt:
        match message.role:
            case "system":
                made.append(SystemMessage(content=message.content))
            case "user":
                made.append(UserMessage(content=message.content, source="user"))
            case "assistant":
                made.append(AssistantMessage(content=message.content, source="assistant"))
    return made
