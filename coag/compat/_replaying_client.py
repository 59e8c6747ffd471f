"""A model client that answers out of a recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Self

from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.errors import ConfigurationError
from coag.models import tell_usage
from coag.schema import ModelCall, provider_name

from ._answer_repair import ToolChoice
from ._asked import ModelRequest
from ._given import brought_none, error_of, pieces_of, result_of, was_cancelled
from ._tape import ModelTape, Run, folder_of
from ._token_counts import estimated_tokens

_CONTEXT_TOKENS = 128_000
"""The context size that is told: the recorded model's is in no record."""


class ReplayingClientConfig(BaseModel):
    """The declarative form of a replaying client."""

    run: str
    """The run's folder."""
    model: str | None = None
    """The model whose requests are replayed; None for all."""
    model_info: ModelInfo | None = None
    """What it is said to be able to do; None for what was recorded."""


class ReplayingClient(ChatCompletionClient, Component[ReplayingClientConfig]):
    """Answers requests as a recorded client did, without any model.

    A request is answered by the record of an equal one: the same messages, tools with their
    schemas, tool choice, form of the answer and further arguments, as a stream or not. Equal
    requests are answered in the order in which they were made, so several agents may share the
    client and run at the same time. What was recorded as an error is raised as `ModelCallError`,
    a cancellation as `CancelledError`. Texts of secrets are `[redacted]`, as in the record.

    Of a run of `CoagAgent`, whose phases record less, messages and the names of tools count.

    Its component names the run's folder and begins at the tape's beginning.

    Args:
        run: The folder of a run that was recorded with `RecordingClient`, or its records.
        model: Where the run asked several models: the one whose requests are replayed, as it is
            called in the records.
        model_info: What the model is said to be able to do; by default what was recorded.

    Raises:
        TraceError: The run cannot be read.
        ConfigurationError: It holds no requests to such a model, or several models are in it.
    """

    component_type = "model"
    component_config_schema = ReplayingClientConfig
    component_provider_override = "coag.compat.ReplayingClient"

    def __init__(
        self, run: Run, *, model: str | None = None, model_info: ModelInfo | None = None
    ) -> None:
        self._tape = ModelTape(run, model)
        self._folder = folder_of(run)
        self._model = model
        self._given_info = model_info
        self._info = model_info or self._tape.model_info
        self._usage = RequestUsage(prompt_tokens=0, completion_tokens=0)

    @property
    def unused(self) -> tuple[ModelCall, ...]:
        """The recorded requests that were not asked for, in their order."""
        return self._tape.unused

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The further arguments of the first recorded request, such as a limit of its answer.

        What wraps a client may add some by what it knows of the client; for the same requests in
        a replay it has to add these.
        """
        return self._tape.arguments

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
        """Gives the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: The client raised then; the reason is the recorded one.
            CancelledError: The request was cancelled then, or is now.
        """
        call = self._tape.take(
            ModelRequest(
                messages=messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                arguments=extra_create_args or {},
            )
        )
        await _let_others_run(cancellation_token)
        return self._ended(call)

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
        """Gives the recorded pieces, then the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: As `create`, after the pieces that had come.
            CancelledError: As `create`, after the pieces that had come.
        """
        call = self._tape.take(
            ModelRequest(
                messages=messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                arguments=extra_create_args or {},
                stream=True,
            )
        )
        for piece in pieces_of(call):
            await _let_others_run(cancellation_token)
            yield piece
        await _let_others_run(cancellation_token)
        if call.given is None or call.given.ended != "nothing":
            yield self._ended(call)

    async def close(self) -> None:
        """Nothing is held."""

    def actual_usage(self) -> RequestUsage:
        """The recorded usage of all answers that were given."""
        return self._usage

    def total_usage(self) -> RequestUsage:
        """The same as `actual_usage`."""
        return self._usage

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """About how many tokens messages and tools are; the recorded model may count others."""
        return estimated_tokens(messages, tools)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What is left of a context of 128,000 tokens."""
        return _CONTEXT_TOKENS - self.count_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same as `model_info`: AutoGen's deprecated name, whose type it deprecated too."""
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        """What the recorded client said of its model.

        Raises:
            ConfigurationError: The run's records do not tell, and `model_info` was not given.
        """
        if self._info is None:
            raise ConfigurationError(
                "The recorded run does not tell what its model can do, as it was not recorded "
                "with RecordingClient. Give it: `ReplayingClient(run, model_info=...)`."
            )
        return self._info

    def dump_component(self) -> ComponentModel:
        """The component of this very class, which names the run's folder.

        Raises:
            ConfigurationError: The run was given as records, which are in no description.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> ReplayingClientConfig:
        if self._folder is None:
            raise ConfigurationError(
                "A replay of records in RAM cannot be described: give the folder of a run."
            )
        return ReplayingClientConfig(
            run=str(self._folder), model=self._model, model_info=self._given_info
        )

    @classmethod
    def _from_config(cls, config: ReplayingClientConfig) -> Self:
        return cls(config.run, model=config.model, model_info=config.model_info)

    def _ended(self, call: ModelCall) -> CreateResult:
        """How the request ended then: the answer, or what was raised."""
        tell_usage(call.usage, failed=bool(call.error))
        if was_cancelled(call):
            raise asyncio.CancelledError
        if brought_none(call):
            raise error_of(call)
        result = result_of(call)
        self._usage = RequestUsage(
            prompt_tokens=self._usage.prompt_tokens + result.usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens + result.usage.completion_tokens,
        )
        return result


async def _let_others_run(token: CancellationToken | None) -> None:
    """Waits a turn of the loop, as a request over a network would, and minds a cancellation."""
    await asyncio.sleep(0)
    if token is not None and token.is_cancelled():
        raise asyncio.CancelledError
