"""A model client that is written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from autogen_core import CancellationToken, ComponentModel
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.models import UnformedCall, listening, model_name_of, reason_of
from coag.schema import TokenUsage

from ._answer_repair import ToolChoice
from ._recorder import Recorder
from ._wrapping_client import WrappingClient


class RecordingClient(WrappingClient):
    """Passes requests and answers on as they are, and writes each request down.

    Dumped as a component it is the client within: a run is no part of a description.

    Args:
        client: Who answers.
        recorder: Who writes. What it raises, a request raises.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(client)
        self._recorder = recorder
        self._model = recorder.model or model_name_of(client)

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Asks the client; raises what it raises.

        Raises:
            TraceError: The request could not be written down.
        """
        call = self._begin(messages, tools, json_output)
        with listening() as heard, _failing(call, heard.usage):
            result = await self._client.create(
                messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                extra_create_args=extra_create_args or {},
                cancellation_token=cancellation_token,
            )
            usage = heard.usage(result.usage)
        call.answered(result, usage)
        return result

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Streams from the client; the request is written down when the result comes.

        Raises:
            TraceError: The request could not be written down.
        """
        call = self._begin(messages, tools, json_output)
        parts = self._client.create_stream(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args or {},
            cancellation_token=cancellation_token,
        )
        result: CreateResult | None = None
        with _failing(call, lambda: TokenUsage(calls=1)):
            try:
                async for part in parts:
                    if isinstance(part, CreateResult):
                        result = part
                    else:
                        yield part
            finally:
                await parts.aclose()
        if result is None:
            call.failed("the stream ended without a result", TokenUsage(calls=1))
            return
        used = result.usage
        call.answered(
            result,
            TokenUsage(
                prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens, calls=1
            ),
        )
        yield result

    def dump_component(self) -> ComponentModel:
        """The client within."""
        return self._client.dump_component()

    def _begin(
        self,
        messages: Sequence[LLMMessage],
        tools: Sequence[Tool | ToolSchema],
        json_output: bool | type[BaseModel] | None,
    ) -> UnformedCall:
        expected = json_output.__name__ if isinstance(json_output, type) else None
        return UnformedCall(
            messages,
            tools,
            model=self._model,
            context=self._recorder.context,
            expected=expected,
        )


@contextmanager
def _failing(call: UnformedCall, usage: Callable[[], TokenUsage]) -> Generator[None]:
    """Writes a request down that fails; what it failed with goes on its way."""
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):
        call.failed("cancelled", usage())
        raise
    except Exception as error:  # clients are an open interface: whatever one raises
        call.failed(reason_of(error), usage())
        raise
