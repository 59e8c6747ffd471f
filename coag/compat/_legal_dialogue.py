"""Making a dialogue legal that an agent, a crash or a cancellation has left otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence

from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
)

from coag.models import merged_system

UNKNOWN_RESULT = "This call was broken off. It may or may not have had its effect."
"""Stands for the result of a call that got none."""


def legal_dialogue(messages: Sequence[LLMMessage], *, one_system: bool) -> list[LLMMessage]:
    """The messages as every server takes them; none of them is changed itself.

    System messages are one; each tool call has a JSON object for arguments and a result; an
    answer without content is an empty text.

    Args:
        messages: What is to be sent.
        one_system: Whether the client or its server takes one system message only.
    """
    legal: list[LLMMessage] = []
    open_calls: list[FunctionCall] = []
    for message in messages:
        if isinstance(message, FunctionExecutionResultMessage):
            legal.append(_with_results(message, open_calls))
            open_calls = []
            continue
        if open_calls:
            legal.append(_with_results(None, open_calls))
            open_calls = []
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
            said, open_calls = _legal_calls(message)
            legal.append(said)
        else:
            legal.append(message)
    if open_calls:
        legal.append(_with_results(None, open_calls))
    return merged_system(legal) if one_system else legal


def call_ids(messages: Sequence[LLMMessage]) -> set[str]:
    """Ids of all tool calls in the messages."""
    return {
        call.id
        for message in messages
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str)
        for call in message.content
    }


def _legal_calls(message: AssistantMessage) -> tuple[AssistantMessage, list[FunctionCall]]:
    if not message.content:
        return message.model_copy(update={"content": message.thought or ""}), []
    calls = [call for call in message.content if isinstance(call, FunctionCall)]
    legal = [_legal_call(call) for call in calls]
    return (message if legal == calls else message.model_copy(update={"content": legal})), legal


def _legal_call(call: FunctionCall) -> FunctionCall:
    """The call with an object for arguments: what cannot be read stands within it."""
    try:
        if isinstance(json.loads(call.arguments), dict):
            return call
    except (ValueError, TypeError, RecursionError):
        pass  # told below: it is data of an earlier answer, not a fault of this one
    arguments = json.dumps({"unusable": str(call.arguments)[:500]}, ensure_ascii=False)
    return FunctionCall(id=call.id, name=call.name, arguments=arguments)


def _with_results(
    message: FunctionExecutionResultMessage | None, calls: Sequence[FunctionCall]
) -> FunctionExecutionResultMessage:
    """The results, with one for every call that has none."""
    given = [] if message is None else message.content
    known = {result.call_id for result in given}
    missing = [
        FunctionExecutionResult(
            content=UNKNOWN_RESULT, name=call.name, call_id=call.id, is_error=True
        )
        for call in calls
        if call.id not in known
    ]
    if message is not None and not missing:
        return message
    return FunctionExecutionResultMessage(content=[*given, *missing])
