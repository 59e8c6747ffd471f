"""A model client that is written down."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.errors import ModelCallError
from coag.models import limit_arguments, limit_name_of, listening, message_text
from coag.schema import ModelCall, Rung, TokenUsage

from ._recorder import PlainRecorder

MAX_TOKENS = 1_000
"""Longest completion of a turn: reasoning and the tool call."""


class RecordingClient(ChatCompletionClient):
    """Passes requests on and writes each down with its answer.

    Of several tool calls in one answer only the first is passed on: one action a turn, as for
    every agent of the case study; the trace says so.

    Args:
        client: Who answers.
        recorder: Who writes.
    """

    component_type = "model"

    def __init__(self, client: ChatCompletionClient, recorder: PlainRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._limit = limit_arguments(client, limit_name_of(client), MAX_TOKENS)

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
        """Asks the client.

        Raises:
            ModelCallError: The client could not be asked.
        """
        recorder = self._recorder
        at, begun = recorder.clock.now(), recorder.clock.monotonic()
        sent = tuple(_as_sent(message) for message in messages)
        with listening() as heard:
            try:
                result = await self._client.create(
                    messages,
                    tools=tools,
                    tool_choice=tool_choice,
                    json_output=json_output,
                    extra_create_args={**self._limit, **(extra_create_args or {})},
                    cancellation_token=cancellation_token,
                )
            except Exception as error:  # clients are an open interface: whatever one raises
                reason = f"{type(error).__name__}: {error}"
                call = self._call(at=at, messages=sent, begun=begun, usage=heard.usage())
                recorder.model_call(call.model_copy(update={"error": reason}))
                raise ModelCallError(recorder.model, reason) from error
            call = self._call(at=at, messages=sent, begun=begun, usage=heard.usage(result.usage))
        recorder.model_call(call.model_copy(update=_answered(result)))
        return self._one_action(result)

    def _call(
        self, *, at: Any, messages: tuple[dict[str, Any], ...], begun: float, usage: TokenUsage
    ) -> ModelCall:
        """The record of a request, its answer left open."""
        recorder = self._recorder
        return ModelCall(
            id=recorder.ids("call"),
            at=at,
            cycle=recorder.turn,
            model=recorder.model,
            rung=Rung.TEXT,
            attempt=1,
            messages=messages,
            raw="",
            usage=usage,
            seconds=round(recorder.clock.monotonic() - begun, 6),
        )

    def _one_action(self, result: CreateResult) -> CreateResult:
        if isinstance(result.content, str) or len(result.content) <= 1:
            return result
        text = f"Of {len(result.content)} tool calls in one answer only the first is run."
        self._recorder.note("bound", text)
        return result.model_copy(update={"content": result.content[:1]})

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

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()

    def actual_usage(self) -> RequestUsage:
        """The client's."""
        return self._client.actual_usage()

    def total_usage(self) -> RequestUsage:
        """The client's."""
        return self._client.total_usage()

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """The client's count."""
        return self._client.count_tokens(messages, tools=tools)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What the client has left."""
        return self._client.remaining_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same as `model_info`: AutoGen's deprecated name, whose type it deprecated too."""
        return self._client.model_info

    @property
    def model_info(self) -> ModelInfo:
        """The client's."""
        return self._client.model_info


def _answered(result: CreateResult) -> dict[str, Any]:
    """What an answer adds to the record: its text, or its thought and its tool calls."""
    filled: dict[str, Any] = {"finish_reason": result.finish_reason}
    if isinstance(result.content, str):
        return {**filled, "raw": result.content}
    calls = tuple(_as_call(call) for call in result.content)
    return {**filled, "raw": result.thought or "", "tool_calls": calls}


def _as_call(call: FunctionCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _as_sent(message: LLMMessage) -> dict[str, Any]:
    """A message as it stands in the record."""
    if isinstance(message, FunctionExecutionResultMessage):
        return {"role": "tool", "content": message_text(message)}
    if isinstance(message, AssistantMessage) and not isinstance(message.content, str):
        calls = [_as_call(call) for call in message.content]
        return {"role": "assistant", "content": message.thought or "", "tool_calls": calls}
    role = {"SystemMessage": "system", "UserMessage": "user"}.get(message.type, "assistant")
    return {"role": role, "content": message_text(message)}
