"""What a scripted model is asked, and what it may answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from autogen_core import FunctionCall
from autogen_core.models import (
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.schema import estimate_tokens

ScriptedReply: TypeAlias = str | BaseModel | Mapping[str, Any] | Sequence[FunctionCall]
"""What a script may answer: text; a value or a mapping, sent as JSON; tool calls; or all of it
as a `CreateResult` (which is a `BaseModel`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRequest:
    """What a scripted model was asked."""

    messages: tuple[LLMMessage, ...]
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: str = "auto"
    """`auto`, `required`, `none`, or the name of the tool to call."""
    json_output: bool = False
    """True if the answer must be JSON, with or without a schema."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, where one was asked for."""
    schema_name: str | None = None
    """The schema's name: that of the answer's type."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All further arguments of the call, e.g. `max_tokens`."""
    number: int = 1
    """1 for the first request to this model."""

    @property
    def text(self) -> str:
        """The text of all messages, tool results included, one after the other."""
        return "\n".join(message_text(message) for message in self.messages)

    @property
    def system_text(self) -> str:
        """The text of the system messages."""
        return "\n".join(m.content for m in self.messages if isinstance(m, SystemMessage))

    @property
    def last_user_text(self) -> str:
        """The text of the last message that the user said; empty if there is none."""
        said = [message_text(m) for m in self.messages if isinstance(m, UserMessage)]
        return said[-1] if said else ""


Script: TypeAlias = Callable[[ScriptedRequest], ScriptedReply | Awaitable[ScriptedReply]]
"""A scripted model's behaviour; plain or async. What it raises, the client raises."""


def message_text(message: LLMMessage) -> str:
    """The text of one message; tool calls and results as text, images left out."""
    if isinstance(message, FunctionExecutionResultMessage):
        return "\n".join(result.content for result in message.content)
    if isinstance(message.content, str):
        return message.content
    parts = [
        part if isinstance(part, str) else f"{part.name}({part.arguments})"
        for part in message.content
        if isinstance(part, str | FunctionCall)
    ]
    return "\n".join(parts)


def as_result(reply: ScriptedReply, request: ScriptedRequest) -> CreateResult:
    """The reply as AutoGen's clients give it, with estimated usage."""
    if isinstance(reply, CreateResult):
        return reply
    content: str | list[FunctionCall]
    if isinstance(reply, str):
        content, written = reply, reply
    elif isinstance(reply, BaseModel):
        content = written = reply.model_dump_json()
    elif isinstance(reply, Mapping):
        content = written = json.dumps(reply, ensure_ascii=False)
    else:
        content = list(reply)
        written = "".join(call.name + call.arguments for call in content)
    usage = RequestUsage(
        prompt_tokens=prompt_tokens(request.messages, request.tools),
        completion_tokens=estimate_tokens(written),
    )
    finish = "stop" if isinstance(content, str) else "function_calls"
    return CreateResult(finish_reason=finish, content=content, usage=usage, cached=False)


def prompt_tokens(messages: Sequence[LLMMessage], tools: Sequence[ToolSchema]) -> int:
    """About how many tokens messages and tools are."""
    said = sum(estimate_tokens(message_text(message)) for message in messages)
    return said + sum(estimate_tokens(json.dumps(tool)) for tool in tools)


def tool_schema(tool: Tool | ToolSchema) -> ToolSchema:
    """The tool's description as models see it."""
    return tool.schema if isinstance(tool, Tool) else tool


def wanted_schema(
    json_output: bool | type[BaseModel] | None, extra: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, str | None]:
    """The schema that was asked for and its name, whichever way it was asked for."""
    if isinstance(json_output, type):
        return json_output.model_json_schema(), json_output.__name__
    form = cast("Mapping[str, Any]", extra.get("response_format") or {})
    if form.get("type") != "json_schema":
        return None, None
    described = cast("Mapping[str, Any]", form["json_schema"])
    return described["schema"], described.get("name")


def wants_json(json_output: bool | type[BaseModel] | None, extra: Mapping[str, Any]) -> bool:
    """True if JSON of any form was asked for."""
    form = cast("Mapping[str, Any]", extra.get("response_format") or {})
    return json_output is True or form.get("type") == "json_object"
