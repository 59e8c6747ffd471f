"""A request to a model as a replay compares it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autogen_core.models import LLMMessage, ModelInfo
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.models import sent_messages
from coag.schema import Asked, ModelCall
from coag.tracing import Redactor

from ._answer_repair import ToolChoice
from ._plain_json import canonical, hash_of, plain_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a client is asked, as AutoGen's agents ask it."""

    messages: Sequence[LLMMessage]
    tools: Sequence[Tool | ToolSchema] = ()
    tool_choice: ToolChoice = "auto"
    json_output: bool | type[BaseModel] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stream: bool = False

    @property
    def expected(self) -> str | None:
        """Name of the answer's type, where one is asked for."""
        return self.json_output.__name__ if isinstance(self.json_output, type) else None

    def asked(self, model_info: ModelInfo | None = None) -> Asked:
        """The part of the request that stands in no other field of its record."""
        choice, form = self.tool_choice, self.json_output
        return Asked(
            tools=tuple(hash_of(schema) for schema in self._schemas()),
            tool_choice=choice if isinstance(choice, str) else f"tool {choice.name}",
            json_output=hash_of(form.model_json_schema()) if isinstance(form, type) else form,
            arguments=plain_json(self.arguments),
            stream=self.stream,
            model_info=None if model_info is None else plain_json(model_info),
        )

    def compared(self) -> dict[str, Any]:
        """The request with the fields of its record."""
        names = [schema["name"] for schema in self._schemas()]
        return _compared(sent_messages(self.messages), names, self.expected, self.asked())

    def _schemas(self) -> list[ToolSchema]:
        return [tool.schema if isinstance(tool, Tool) else tool for tool in self.tools]


def compared(call: ModelCall) -> dict[str, Any]:
    """A recorded request with what a replay compares; less of one whose rest was not recorded."""
    return _compared(call.messages, call.tools, call.expected, call.asked)


def without_rest(request: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of requests whose rest was not recorded: who says what, and the tools."""
    said = [{"role": each["role"], "content": each["content"]} for each in request["messages"]]
    return {"messages": said, "tools": request["tools"]}


def redacted_alike(request: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The request without secrets: what was recorded has none, so what is live must have none."""
    return json.loads(redactor.clean(canonical(request)))


def _compared(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[str],
    expected: str | None,
    asked: Asked | None,
) -> dict[str, Any]:
    whole: dict[str, Any] = {"messages": list(messages), "tools": list(tools)}
    if asked is None:
        return without_rest(whole)
    rest = asked.model_dump(mode="json", exclude={"model_info"})
    return {**whole, "expected": expected, "asked": rest}


def shown(request: Mapping[str, Any]) -> dict[str, Any]:
    """A compared request under the names that AutoGen has for its parts, for messages."""
    rest: Mapping[str, Any] | None = request.get("asked")
    if rest is None:
        return dict(request)
    hashes: list[str] = rest["tools"]
    named = zip(request["tools"], hashes, strict=True)
    return {
        "messages": request["messages"],
        "tools": {name: {"schema": f"of hash {digest}"} for name, digest in named},
        "tool_choice": rest["tool_choice"],
        "json_output": [request["expected"], rest["json_output"]],
        "extra_create_args": rest["arguments"],
        "stream": rest["stream"],
    }
