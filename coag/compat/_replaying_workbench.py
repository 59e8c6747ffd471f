"""Tools that answer out of a recorded run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any, Self

from autogen_core import CancellationToken, ComponentModel
from autogen_core.tools import StaticStreamWorkbench, TextResultContent, ToolResult, ToolSchema
from pydantic import BaseModel

from coag.errors import ConfigurationError, RecordedToolError, ReplayDivergenceError
from coag.schema import Intent, provider_name

from ._tape import Run, folder_of
from ._tool_tape import RecordedCall, ToolTape


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
