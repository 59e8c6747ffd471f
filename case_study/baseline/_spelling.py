"""A model client whose calls in words become calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from ._one_piece import OnePieceClient
from ._spelled import spelled_call

SPELLED = "spelled"
"""What the id of such a call begins with, and what a note on it is about."""


class SpellingClient(OnePieceClient):
    """Passes requests on; a tool call that the answer's text spells out becomes a call.

    Args:
        client: Who answers.
        ids: Gives the next id that begins with a word.
    """

    def __init__(self, client: ChatCompletionClient, ids: Callable[[str], str]) -> None:
        super().__init__(client)
        self._ids = ids

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

    def _called(self, result: CreateResult, tools: Sequence[Tool | ToolSchema]) -> CreateResult:
        names = [tool.name if isinstance(tool, Tool) else tool["name"] for tool in tools]
        spelled = spelled_call(result.content, names) if isinstance(result.content, str) else None
        if spelled is None:
            return result
        call = FunctionCall(id=self._ids(SPELLED), name=spelled.name, arguments=spelled.arguments)
        return result.model_copy(
            update={
                "content": [call],
                "thought": spelled.before.strip() or None,
                "finish_reason": "function_calls",
            }
        )


def was_spelled(call: FunctionCall) -> bool:
    """Whether a call was made of words; its id tells, also when it is replayed."""
    return call.id.startswith(f"{SPELLED}-")
