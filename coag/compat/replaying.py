"""A client and a workbench that answer from a tape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any, Self

from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import (
    CreateResult,
    LLMMessage,
    ModelInfo,
)
from autogen_core.tools import (
    StaticStreamWorkbench,
    TextResultContent,
    Tool,
    ToolResult,
    ToolSchema,
)
from pydantic import BaseModel

from coag.errors import ConfigurationError, RecordedToolError, ReplayDivergenceError
from coag.models import publish_usage
from coag.schema import Intent, ModelCall, TokenUsage, provider_name

from .clients import ModelClient, ModelRequest
from .exchanges import brought_none, error_of, pieces_of, result_of, was_cancelled
from .tape import ModelTape, RecordedCall, Run, ToolTape, folder_of

# ---- A model client that answers out of a recorded run ----


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


class ReplayingClient(ModelClient, Component[ReplayingClientConfig]):
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

    component_config_schema = ReplayingClientConfig
    component_provider_override = "coag.compat.ReplayingClient"

    def __init__(
        self, run: Run, *, model: str | None = None, model_info: ModelInfo | None = None
    ) -> None:
        super().__init__()
        self._tape = ModelTape(run, model)
        self._folder = folder_of(run)
        self._model = model
        self._given_info = model_info
        self._info = model_info or self._tape.model_info

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

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Gives the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: The client raised then; the reason is the recorded one.
            CancelledError: The request was cancelled then, or is now.
        """
        call = self._tape.take(request)
        await _let_others_run(request.token)
        return self._ended(call)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Gives the recorded pieces, then the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: As `answer`, after the pieces that had come.
            CancelledError: As `answer`, after the pieces that had come.
        """
        call = self._tape.take(request)
        for piece in pieces_of(call):
            await _let_others_run(request.token)
            yield piece
        await _let_others_run(request.token)
        if call.given is None or call.given.ended != "nothing":
            yield self._ended(call)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What is left of a context of 128,000 tokens."""
        return _CONTEXT_TOKENS - self.count_tokens(messages, tools=tools)

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
        publish_usage(call.usage, failed=bool(call.error))
        if was_cancelled(call):
            raise asyncio.CancelledError
        if brought_none(call):
            raise error_of(call)
        result = result_of(call)
        self.used += TokenUsage(
            prompt_tokens=result.usage.prompt_tokens,
            completion_tokens=result.usage.completion_tokens,
        )
        return result


async def _let_others_run(token: CancellationToken | None) -> None:
    """Waits a turn of the loop, as a request over a network would, and minds a cancellation."""
    await asyncio.sleep(0)
    if token is not None and token.is_cancelled():
        raise asyncio.CancelledError


# ---- Tools that answer out of a recorded run ----


class ReplayingWorkbenchConfig(BaseModel):
    """The declarative form of a replaying workbench."""

    run: str
    """The run's folder."""
    tools: list[str] | None = None
    """Names of the tools that it offers; None for all."""


class ReplayingWorkbench(StaticStreamWorkbench):
    """Offers the tools of a recorded run and gives the results that they gave; nothing is run.

    A call is answered by the record of an equal one, by name and arguments; equal ones in the
    order in which they were made. Tools are listed as they were before the first recorded call
    that is left.

    Stock agents hang where a workbench raises. So a call that the run did not make gets an error
    as its result; `divergence` keeps the first one, and `check`, `stop` and the end of
    `async with` raise it.

    Its component names the run's folder and begins at the tape's beginning.

    Args:
        run: The folder of a run that was recorded with `RecordingWorkbench`, or its records.
        tools: Names of the tools to offer, where the run had several workbenches, or where it had
            none and lists none; None for all.

    Raises:
        TraceError: The run cannot be read.
        ConfigurationError: It lists no such tools, or a result is of a class that is not imported.
    """

    component_provider_override = "coag.compat.ReplayingWorkbench"
    component_config_schema = ReplayingWorkbenchConfig  # pyright: ignore[reportAssignmentType] - our own

    # It is a StaticStreamWorkbench because AssistantAgent streams the events of no other.

    def __init__(self, run: Run, *, tools: Collection[str] | None = None) -> None:
        super().__init__([])
        self._tape = ToolTape(run, tools)
        self._folder = folder_of(run)
        self._names = None if tools is None else list(tools)
        self.divergence: ReplayDivergenceError | None = None
        """The first call that the run did not make; None if there was none."""

    @property
    def unused(self) -> tuple[Intent, ...]:
        """The recorded calls that were not made, in their order."""
        return self._tape.unused

    def check(self) -> None:
        """Raises what went wrong so far, if anything did.

        Raises:
            ReplayDivergenceError: A call was made that the run did not make.
        """
        if self.divergence is not None:
            raise self.divergence

    async def list_tools(self) -> list[ToolSchema]:
        """The tools as they were listed."""
        return self._tape.schemas()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Gives the recorded result, or an error where there is none.

        Raises:
            RecordedToolError: The workbench raised then.
        """
        call = self._take(name, arguments)
        return _diverged(name, call) if isinstance(call, ReplayDivergenceError) else _end(call)

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """As `call_tool`, after what the tool showed.

        Raises:
            RecordedToolError: The workbench raised then.
        """
        call = self._take(name, arguments)
        if isinstance(call, ReplayDivergenceError):
            yield _diverged(name, call)
            return
        for item in call.shown:
            yield item
        yield _end(call)

    async def start(self) -> None:
        """Nothing is started."""

    async def stop(self) -> None:
        """Ends the replay.

        Raises:
            ReplayDivergenceError: A call was made that the run did not make.
        """
        self.check()

    async def reset(self) -> None:
        """Does nothing: the tape goes on, as the recorded run did."""

    async def save_state(self) -> Mapping[str, Any]:
        """Nothing: the states of the recorded tools are in no record."""
        return {}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Does nothing; a state of the recorded tools is taken as well."""

    def dump_component(self) -> ComponentModel:
        """The component of this very class, which names the run's folder.

        Raises:
            ConfigurationError: The run was given as records, which are in no description.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> ReplayingWorkbenchConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        if self._folder is None:
            raise ConfigurationError(
                "A replay of records in RAM cannot be described: give the folder of a run."
            )
        return ReplayingWorkbenchConfig(run=str(self._folder), tools=self._names)

    @classmethod
    def _from_config(cls, config: ReplayingWorkbenchConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return cls(config.run, tools=config.tools)

    def _take(
        self, name: str, arguments: Mapping[str, Any] | None
    ) -> RecordedCall | ReplayDivergenceError:
        try:
            return self._tape.take(name, arguments or {})
        except ReplayDivergenceError as error:
            self.divergence = self.divergence or error
            return error


def _end(call: RecordedCall) -> ToolResult:
    if call.result is None:
        raise RecordedToolError(call.intent.action, call.raised or "an error")
    return call.result


def _diverged(name: str, error: ReplayDivergenceError) -> ToolResult:
    content = TextResultContent(content=f"{name} was not run: {error}")
    return ToolResult(name=name, result=[content], is_error=True)
