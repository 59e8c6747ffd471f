"""A model client whose calls in words become calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.compat import Recorder, WrappingClient

from ._spelled import spelled_call

SPELLED = "spelled"
"""What a note on a call in words is about."""


class SpellingClient(WrappingClient):
    """Passes requests on; a tool call that the answer's text spells out becomes a call.

    The trace says so in a note, and holds the call as the model's.

    Args:
        client: Who answers.
        recorder: Who writes the note.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(client)
        self._recorder = recorder

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Asks the client."""
        result = await self.wrapped.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args or {},
            cancellation_token=cancellation_token,
        )
        return self._called(result, tools)

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The same in one piece."""
        yield await self.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args,
            cancellation_token=cancellation_token,
        )

    def _called(self, result: CreateResult, tools: Sequence[Tool | ToolSchema]) -> CreateResult:
        names = [tool.name if isinstance(tool, Tool) else tool["name"] for tool in tools]
        spelled = spelled_call(result.content, names) if isinstance(result.content, str) else None
        if spelled is None:
            return result
        self._recorder.note(SPELLED, f"Called in words: {spelled.name} {spelled.arguments}")
        call = FunctionCall(
            id=self._recorder.ids(SPELLED), name=spelled.name, arguments=spelled.arguments
        )
        return result.model_copy(
            update={
                "content": [call],
                "thought": spelled.before.strip() or None,
                "finish_reason": "function_calls",
            }
        )
