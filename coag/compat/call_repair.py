"""Dialogues that providers accept, and tool calls that can be run."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
)

from coag.models import ModelRequest, merged_system, repaired_object
from coag.schema import estimate_tokens

# ---- Making a dialogue legal that an agent, a crash or a cancellation has left otherwise ----


UNKNOWN_RESULT = "This call was interrupted. It may or may not have had its effect."
"""Used as the result of a call that got none."""


def legal_dialogue(messages: Sequence[LLMMessage], *, one_system: bool) -> list[LLMMessage]:
    """The messages as every server takes them; none of them is changed itself.

    System messages are one; each tool call has a JSON object for arguments and a result; an
    answer without content is an empty text.
    """
    legal: list[LLMMessage] = []
    open_calls: list[FunctionCall] = []
    for message in (*messages, None):
        if open_calls or isinstance(message, FunctionExecutionResultMessage):
            legal.append(_with_results(message, open_calls))
            open_calls = []
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
            answer, open_calls = _legal_calls(message)
            legal.append(answer)
        elif message is not None and not isinstance(message, FunctionExecutionResultMessage):
            legal.append(message)
    return merged_system(legal) if one_system else legal


def _legal_calls(message: AssistantMessage) -> tuple[AssistantMessage, list[FunctionCall]]:
    if not message.content:
        return message.model_copy(update={"content": message.thought or ""}), []
    calls = [call for call in message.content if isinstance(call, FunctionCall)]
    legal = [_legal_call(call) for call in calls]
    return (message if legal == calls else message.model_copy(update={"content": legal})), legal


def _legal_call(call: FunctionCall) -> FunctionCall:
    """The call with an object for arguments: what cannot be read is put inside it."""
    try:
        if isinstance(json.loads(call.arguments), dict):
            return call
    except (ValueError, TypeError, RecursionError):
        pass  # it is data of an earlier answer, not a fault of this one
    arguments = json.dumps({"unusable": str(call.arguments)[:500]}, ensure_ascii=False)
    return FunctionCall(id=call.id, name=call.name, arguments=arguments)


def _with_results(
    message: LLMMessage | None, calls: Sequence[FunctionCall]
) -> FunctionExecutionResultMessage:
    answers = message if isinstance(message, FunctionExecutionResultMessage) else None
    results = answers.content if answers else []
    known = {result.call_id for result in results}
    missing = [
        FunctionExecutionResult(
            content=UNKNOWN_RESULT, name=call.name, call_id=call.id, is_error=True
        )
        for call in calls
        if call.id not in known
    ]
    if answers and not missing:
        return answers
    return FunctionExecutionResultMessage(content=[*results, *missing])


# ---- Repairing the tool calls of an answer ----
#
# Two rules. Nothing is guessed that could change what a tool does: a value that was cut off stays
# unusable; only what is around whole values is repaired. And what stays unusable is no JSON at
# all, because AutoGen's `AssistantAgent` answers that with an error, while JSON that is no object
# makes it wait for ever.


_FENCE = re.compile(r"```[\w-]*")
_CLOSED = re.compile(r'(?:["}\]]|\b(?:true|false|null))\Z')
_MAX_DEPTH = 100
"""How many brackets are added that are missing at an end."""
_UNUSABLE = "Unusable arguments:"
_SHOWN = 300
"""Characters of unusable arguments that are shown to the model again."""


@dataclass(frozen=True, slots=True)
class RepairedArguments:
    """What became of something, and what was wrong with it."""

    text: str
    fault: str | None = None
    """None if nothing was."""


def repair_arguments(
    given: object, *, truncated: bool = False, takes_none: bool = False
) -> RepairedArguments:
    """A call's arguments as a JSON object where that is safe, else as text that is no JSON.

    Args:
        given: As they came; ought to be a JSON object in a string, and is often enough a
            dictionary, None, empty, in a code fence, or JSON within a string.
        truncated: The answer was cut off at the token limit: no missing bracket is added.
        takes_none: The tool has no arguments, so that nothing is lost if they are left out.
    """
    repaired = _repaired_text(_as_text(given), truncated)
    if takes_none and _object(repaired.text) is None:
        return RepairedArguments(
            "{}", repaired.fault or f"arguments for a tool without any: {given!r:.80}"
        )
    return repaired


def _as_text(given: object) -> str:
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    try:
        return json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(given)


def _repaired_text(text: str, truncated: bool) -> RepairedArguments:
    if not text.strip():
        return RepairedArguments("{}", "no arguments were given" if text else None)
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError:
        return _from_broken(text, truncated)
    except (ValueError, RecursionError) as error:
        return _unusable(text, f"JSON that cannot be read ({type(error).__name__})")
    if isinstance(value, dict):
        return RepairedArguments(text)
    if value is None:
        return RepairedArguments("{}", "null instead of a JSON object")
    if isinstance(value, str) and _object(value) is not None:
        return RepairedArguments(value, "a JSON object within a string")
    return _unusable(text, f"a JSON {_KINDS[type(value)]}")


_KINDS: Mapping[type, str] = {
    list: "list",
    str: "string",
    bool: "truth value",
    int: "number",
    float: "number",
}


def _from_broken(text: str, truncated: bool) -> RepairedArguments:
    """The one object in the text, or the text as it is."""
    start = text.find("{")
    if start < 0 or text.startswith(_UNUSABLE):
        return RepairedArguments(text, "no JSON")
    inner = text.strip()
    if fence := _FENCE.match(inner):
        inner = inner[fence.end() :].removesuffix("```").strip()
    found = _alone(inner)
    if found is not None:
        return RepairedArguments(found, "a JSON object among other text")
    body = inner[inner.find("{") :].rstrip()
    closed = None if truncated else _closed(body)
    if closed is not None:
        return RepairedArguments(closed, "a JSON object without its last bracket")
    whole = body.endswith("}") and _nesting(body) == (0, False, 1)
    if whole and (value := repaired_object(body)):
        repaired = json.dumps(value, ensure_ascii=False)
        return RepairedArguments(repaired, "a JSON object with faults of form")
    return RepairedArguments(text, "no JSON, or cut off")


def _alone(text: str) -> str | None:
    """The object that begins with the first brace, if no other begins behind it."""
    start = text.find("{")
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return text[start:end] if isinstance(value, dict) and "{" not in text[end:] else None


def _closed(body: str) -> str | None:
    depth, in_string, _ = _nesting(body)
    if in_string or not 0 < depth <= _MAX_DEPTH or not _CLOSED.search(body):
        return None
    closed = body + "}" * depth
    return closed if _object(closed) is not None else None


def _nesting(body: str) -> tuple[int, bool, int]:
    """How many brackets are open at the end, whether a string is, and how often none was."""
    depth, in_string, escaped, closings = 0, False, False, 0
    for character in body:
        if escaped:
            escaped = False
        elif character == "\\" and in_string:
            escaped = True
        elif character == '"':
            in_string = not in_string
        elif not in_string:
            depth += (character in "{[") - (character in "}]")
            closings += character in "}]" and depth == 0
    return depth, in_string, closings


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _unusable(text: str, what: str) -> RepairedArguments:
    excerpt = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return RepairedArguments(f"{_UNUSABLE} a JSON object is needed, not {what}: {excerpt}", what)


# ---- Repairing a model's answer in text or tool calls ----


_EMPTY = "The answer was empty."
_CALLED = "The answer called a tool, and none can be called here."


def fault_of(result: CreateResult, *, may_call: bool) -> str | None:
    """What is wrong with an answer as a whole, if asking again may help; else None."""
    content = result.content
    if result.finish_reason == "content_filter":
        return None
    if not content or (isinstance(content, str) and not content.strip()):
        return _EMPTY
    return None if isinstance(content, str) or may_call else _CALLED


def with_pieces(
    result: CreateResult, pieces: Sequence[str]
) -> tuple[CreateResult, tuple[str, ...]]:
    """A stream's result with its text, which AutoGen's Ollama client loses; and faults."""
    text = "".join(pieces)
    if result.content or not text.strip() or text.lstrip().startswith("<think>"):
        return result, ()
    usage = RequestUsage(
        prompt_tokens=result.usage.prompt_tokens,
        completion_tokens=result.usage.completion_tokens or estimate_tokens(text),
    )
    repaired = result.model_copy(update={"content": text, "usage": usage})
    return repaired, ("the stream's result lacked its text",)


def repair_answer(result: CreateResult, request: ModelRequest) -> tuple[CreateResult, list[str]]:
    """The answer as an agent can rely on it, and what was wrong with it.

    Calls get usable arguments, and ids that neither another one nor the dialogue has.
    """
    content = result.content or ""
    if isinstance(content, str):
        return result.model_copy(update={"content": content}), []
    if request.tool_choice == "none":
        return result.model_copy(update={"content": result.thought or "", "thought": None}), []
    parameters = {schema["name"]: schema.get("parameters") or {} for schema in request.schemas}
    taken = {
        call.id
        for message in request.messages
        if isinstance(message, AssistantMessage) and not isinstance(message.content, str)
        for call in message.content
    }
    repaired: list[FunctionCall] = []
    faults: list[str] = []
    for call in content:
        arguments = repair_arguments(
            call.arguments,
            truncated=result.finish_reason == "length",
            takes_none=call.name in parameters and _takes_none(parameters[call.name]),
        )
        call_id = _free_id(call.id, taken)
        taken.add(call_id)
        if arguments.fault:
            faults.append(f"{call.name}: {arguments.fault}")
        if call_id != call.id:
            faults.append(f"{call.name}: call id {call.id!r} was empty or taken")
        repaired.append(FunctionCall(id=call_id, name=call.name or "", arguments=arguments.text))
    return result.model_copy(update={"content": repaired}), faults


def _takes_none(parameters: Mapping[str, Any]) -> bool:
    return not parameters.get("properties") and not parameters.get("additionalProperties")


def _free_id(given: object, taken: Collection[str]) -> str:
    if isinstance(given, str) and given.strip():
        if given not in taken:
            return given
    else:
        given = "call"
    return next(name for n in count(1) if (name := f"{given}-{n}") not in taken)
