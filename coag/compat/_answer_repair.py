"""Mending a model's answer in text or tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, RequestUsage
from autogen_core.tools import Tool, ToolSchema

from coag.schema import estimate_tokens

from ._call_repair import mend_calls
from ._legal_dialogue import call_ids

ToolChoice = Tool | Literal["auto", "required", "none"]
"""Which tool an answer is to call."""
_EMPTY = "The answer was empty."
_CALLED = "The answer called a tool, and none can be called here."


def fault_of(result: CreateResult, *, may_call: bool) -> str | None:
    """What is wrong with an answer as a whole, if asking again may help; else None.

    Args:
        result: The answer.
        may_call: Whether tools were offered.
    """
    content = result.content
    if result.finish_reason == "content_filter":
        return None
    if not content or (isinstance(content, str) and not content.strip()):
        return _EMPTY
    return None if isinstance(content, str) or may_call else _CALLED


def with_pieces(
    result: CreateResult, pieces: Sequence[str]
) -> tuple[CreateResult, tuple[str, ...]]:
    """A stream's result with its text, and what was wrong.

    AutoGen's Ollama client loses the text of a stream of one piece, and its completion tokens.
    """
    text = "".join(pieces)
    if result.content or not text.strip() or text.lstrip().startswith("<think>"):
        return result, ()
    usage = RequestUsage(
        prompt_tokens=result.usage.prompt_tokens,
        completion_tokens=result.usage.completion_tokens or estimate_tokens(text),
    )
    mended = result.model_copy(update={"content": text, "usage": usage})
    return mended, ("the stream's result lacked its text",)


def mend_answer(
    result: CreateResult,
    *,
    tools: Sequence[Tool | ToolSchema],
    tool_choice: ToolChoice,
    dialogue: Sequence[LLMMessage],
) -> tuple[CreateResult, list[str]]:
    """The answer as an agent can rely on it, and what was wrong with it.

    Args:
        result: The answer as it came.
        tools: What was offered.
        tool_choice: With `none`, calls are left out.
        dialogue: What was sent; no call gets an id from there.
    """
    content: str | list[FunctionCall] = result.content or ""
    faults: list[str] = []
    if isinstance(content, str):
        return result.model_copy(update={"content": content}), faults
    if tool_choice == "none":
        return result.model_copy(update={"content": result.thought or "", "thought": None}), faults
    content, mended = mend_calls(
        content,
        without_arguments=_without_arguments(tools),
        used_ids=call_ids(dialogue),
        truncated=result.finish_reason == "length",
    )
    return result.model_copy(update={"content": content}), [*faults, *mended]


def _schema(tool: Tool | ToolSchema) -> ToolSchema:
    return tool.schema if isinstance(tool, Tool) else tool


def _without_arguments(tools: Sequence[Tool | ToolSchema]) -> set[str]:
    """Names of the tools that can be given nothing."""
    names: set[str] = set()
    for schema in map(_schema, tools):
        parameters: Mapping[str, Any] = schema.get("parameters") or {}
        if not parameters.get("properties") and not parameters.get("additionalProperties"):
            names.add(schema["name"])
    return names
