"""A model client that is written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from autogen_core import CancellationToken, ComponentModel
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, ModelInfo
from autogen_core.tools import Tool as CoreTool
from autogen_core.tools import ToolSchema
from pydantic import BaseModel

from coag.models import UnformedCall, listening, model_name_of
from coag.schema import TokenUsage, let_others_run

from ._answer_repair import ToolChoice
from ._asked import ModelRequest
from ._given import given_of, given_up
from ._recorder import Recorder
from ._wrapping_client import WrappingClient

_ONE_CALL = TokenUsage(calls=1)
"""The usage of a request of whose tokens nothing is known."""


class RecordingClient(WrappingClient):
    """Passes requests and answers on as they are, and writes each request down.

    What is written is enough for `ReplayingClient` to give the same answers, pieces of streams
    included.

    Dumped as a component it is the client within: a run is no part of a description.

    Args:
        client: Who answers.
        recorder: Who writes. What it raises, a request raises.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(client)
        self._recorder = recorder
        self._model = recorder.model or model_name_of(client)
        self._told: ModelInfo | None = None

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[CoreTool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Asks the client; raises what it raises.

        Raises:
            TraceError: The request could not be written down.
        """
        call = self._begin(
            ModelRequest(
                messages=messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                arguments=extra_create_args or {},
            )
        )
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
        call.answered(result, usage, given=given_of(result, None))
        return result

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[CoreTool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Streams from the client; the request is written down when the result comes.

        Raises:
            TraceError: The request could not be written down.
        """
        call = self._begin(
            ModelRequest(
                messages=messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                arguments=extra_create_args or {},
                stream=True,
            )
        )
        parts = self._client.create_stream(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args or {},
            cancellation_token=cancellation_token,
        )
        result: CreateResult | None = None
        pieces: list[str] = []
        with _failing(call, lambda: _ONE_CALL, pieces):
            try:
                async for part in parts:
                    if isinstance(part, CreateResult):
                        result = part
                    else:
                        pieces.append(part)
                        yield part
                        await let_others_run(len(pieces))
            finally:
                await parts.aclose()
        if result is None:
            reason = "the stream ended without a result"
            call.failed(reason, _ONE_CALL, given_up(None, pieces))
            return
        used = result.usage
        usage = TokenUsage(
            prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens, calls=1
        )
        call.answered(result, usage, given=given_of(result, pieces))
        yield result

    def dump_component(self) -> ComponentModel:
        """The client within."""
        return self._client.dump_component()

    def _begin(self, request: ModelRequest) -> UnformedCall:
        info = self._client.model_info
        news = None if info == self._told else info
        self._told = info
        return UnformedCall(
            request.messages,
            request.tools,
            model=self._model,
            context=self._recorder.context,
            expected=request.expected,
            asked=request.asked(news),
        )


@contextmanager
def _failing(
    call: UnformedCall, usage: Callable[[], TokenUsage], pieces: Sequence[str] | None = None
) -> Generator[None]:
    """Writes a request down that fails; what it failed with goes on its way."""
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit) as error:
        call.failed("cancelled", usage(), given_up(error, pieces))
        raise
    except Exception as error:  # clients are an open interface: whatever one raises
        call.failed(error, usage(), given_up(error, pieces))
        raise
