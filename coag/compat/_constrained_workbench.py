"""`ConstrainedWorkbench`: the guard of `CoagAgent` around any tools, for any agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from autogen_core import CancellationToken, ComponentModel
from autogen_core.tools import StaticStreamWorkbench, ToolResult, ToolSchema, Workbench

from coag.context import CoagContext
from coag.cycle import ApprovalPolicy, ApproveFunction, ConstraintSet, approvals_of
from coag.errors import ConfigurationError
from coag.schema import Constraint, Intent, TraceRecord, UnsettledAction, provider_name

from ._constrained_config import (
    ConstrainedWorkbenchConfig,
    WorkbenchState,
    from_config,
    read_state,
    to_config,
)
from ._constraint_components import asks_what_was_said
from ._guarded_answers import GuardedResult
from ._guarded_calls import GuardedCalls, Wanted, show_event
from ._guarded_run import GuardedRun
from ._offered_tools import OfferedTools
from ._plain_run import PlainRun
from ._results import OUTPUT_CHARACTERS
from ._tool_runner import Tool, ToolRunner
from ._until_cancelled import until_cancelled

_END = object()


class ConstrainedWorkbench(StaticStreamWorkbench):
    """Tools or workbenches behind the guard through which `CoagAgent` runs its actions.

    Each call is judged by code (does the tool exist, do the arguments fit, would it fail again,
    what do the constraints say of the state and the projection), approved where the policy wants
    it, run between an intent and a receipt, timed and cut; what it brings back changes the
    context's state. What is refused is an error that names the rule and its reason. A call never
    raises, since `AssistantAgent` hangs where a workbench does.

    Calls of one batch are judged one after the other where constraints or approvals are in force,
    so that each is judged by the state after the one before. It serves one event loop at a time:
    a call from another thread while one is under way is refused, nothing is done.

    With `logs=`, a call that a crash broke off is found when the next run begins: it stands in
    `unfinished`. One of unknown outcome is not made again with the same arguments before it is
    known what became of it: the tool's or the context's `reconcile` says so, or `settle`.

    Example:
        `AssistantAgent("a", client, workbench=ConstrainedWorkbench(tools, constraints=[rule]))`

    Args:
        inner: Tools and functions, a workbench, or several of either.
        constraints: Hard rules; the context's own are asked as well.
        context: Keeps the state that rules judge; a general assistant's by default. Subclass
            `CoagContext` to read it out of what your tools return.
        approval: What a person has to agree to; everything, if there is only `approve`.
        approve: Who is asked.
        logs: The folder for run folders, which `coag log` shows; None keeps the trace in RAM.
        name: Who acts, for approvers and in the trace.
        timeout: Seconds that one call may take.
        output_characters: Characters of output that are kept.
        parallel: Run calls of tools that are declared read-only beside others, where rules judge
            them. All else still runs one after the other.

    Raises:
        ConfigurationError: Tools or constraints have the same name, something is no tool, or a
            policy has nobody to ask.
    """

    component_provider_override = "coag.compat.ConstrainedWorkbench"
    component_config_schema = ConstrainedWorkbenchConfig  # pyright: ignore[reportAssignmentType] - our own

    # It is a StaticStreamWorkbench because AssistantAgent streams the events of no other.

    def __init__(  # noqa: PLR0913 - one line around a workbench: all but it have defaults
        self,
        inner: Workbench | Sequence[Tool | Workbench],
        *,
        constraints: Sequence[Constraint] = (),
        context: CoagContext[Any] | None = None,
        approval: ApprovalPolicy | None = None,
        approve: ApproveFunction | None = None,
        logs: Path | str | None = None,
        name: str = "workbench",
        timeout: float = 60.0,
        output_characters: int = OUTPUT_CHARACTERS,
        parallel: bool = False,
    ) -> None:
        super().__init__([])
        if context is None and any(asks_what_was_said(rule) for rule in constraints):
            raise ConfigurationError(
                "only_trusted judges by what the user said, which a workbench does not hear. Give "
                "it to a CoagAgent, or give context= and add the user's messages to it."
            )
        given = [inner] if isinstance(inner, Workbench) else list(inner)
        runner = ToolRunner(
            [each for each in given if not isinstance(each, Workbench)],
            [each for each in given if isinstance(each, Workbench)],
            timeout=timeout,
            output_characters=output_characters,
            on_event=show_event,
            reserved=(),
        )
        settings = {"timeout": timeout, "output_characters": output_characters}
        self._given: dict[str, Any] = {
            **settings,
            "constraints": tuple(constraints),
            "context": context,
            "approval": approval,
            "approve": approve,
            "logs": None if logs is None else str(logs),
            "name": name,
            "parallel": parallel,
        }
        own = CoagContext[Any]() if context is None else context
        self._run = GuardedRun(
            name,
            own,
            ConstraintSet(constraints, [own]),
            approvals_of(approval, approve, own.clock, own.ids),
            PlainRun(
                None if logs is None else Path(logs),
                name,
                own.clock,
                {**settings, "parallel": parallel},
            ),
        )
        self._calls = GuardedCalls(self._run, runner, parallel=parallel)
        self._offered = OfferedTools(
            runner.tools, runner.workbenches, runner.names, timeout, self._run.note
        )

    @property
    def context(self) -> CoagContext[Any]:
        """What keeps the state that rules judge by."""
        return self._run.context

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What the run has written so far, oldest first."""
        return self._run.trace.records

    @property
    def folder(self) -> Path:
        """The run's folder.

        Raises:
            ConfigurationError: There is none: without `logs=`, and before the first call.
        """
        return self._run.trace.folder.path

    @property
    def unfinished(self) -> tuple[Intent, ...]:
        """Calls that earlier runs in the same folder of logs had begun and never ended."""
        return self._run.unfinished

    @property
    def unsettled(self) -> tuple[UnsettledAction, ...]:
        """Calls of which it is not known whether they had their effect; see `settle`."""
        return self.context.working_memory.unsettled

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Says what became of a call of unknown outcome; from then on it may be made again.

        Args:
            intent_id: The intent of the call, as in `unsettled`.
            happened: Whether it had its effect.

        Raises:
            UnknownNameError: No call with this intent is of unknown outcome.
            TraceError: It cannot be written down.
        """
        await self._run.open()
        await self._run.settle(intent_id, happened=happened)

    async def list_tools(self) -> list[ToolSchema]:
        """What is offered now. A workbench that cannot list its tools any more keeps the last.

        Raises:
            Exception: What a workbench raises that has never listed its tools.
        """
        return await self._offered.schemas()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> GuardedResult:
        """Calls a tool under guard; only a cancellation of this task is raised."""
        call = self._calls.call(Wanted(name=name, arguments=arguments, call_id=call_id))
        return await until_cancelled(name, call, cancellation_token)

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """As `call_tool`; what the tool shows while it runs comes first, the result last."""
        shown: asyncio.Queue[object] = asyncio.Queue()
        wanted = Wanted(name=name, arguments=arguments, call_id=call_id, show=shown.put_nowait)
        call = self._calls.call(wanted)
        calling = asyncio.create_task(until_cancelled(name, call, cancellation_token))
        calling.add_done_callback(lambda done: shown.put_nowait(_END))
        try:
            while (item := await shown.get()) is not _END:
                yield item
        finally:
            if not calling.done():
                calling.cancel()
                await asyncio.wait({calling})
        yield calling.result()

    async def start(self) -> None:
        """Starts the workbenches and begins the run.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        for workbench in self._offered.workbenches:
            await workbench.start()
        await self._run.open()

    async def stop(self) -> None:
        """Stops the workbenches and ends the run; a later call begins another."""
        try:
            for workbench in self._offered.workbenches:
                await workbench.stop()
        finally:
            self._run.trace.close()

    async def reset(self) -> None:
        """Resets the workbenches and forgets the state and what failed; the run goes on."""
        for workbench in self._offered.workbenches:
            await workbench.reset()
        await self._run.reset()

    async def save_state(self) -> Mapping[str, Any]:
        """The states of the workbenches, and what the guard knows, as JSON."""
        inner = [dict(await each.save_state()) for each in self._offered.workbenches]
        return WorkbenchState(inner=inner, **await self._run.save_state()).model_dump(mode="json")

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state.

        Raises:
            StateError: It is none of a workbench like this one.
        """
        saved = read_state(state, len(self._offered.workbenches))
        for workbench, inner in zip(self._offered.workbenches, saved.inner, strict=True):
            await workbench.load_state(inner)
        await self._run.load_state(saved.model_dump())

    def dump_component(self) -> ComponentModel:
        """How to make this workbench again: no state, no dialogue, no secrets.

        Raises:
            ConfigurationError: A part cannot be written down; the message says which.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> ConstrainedWorkbenchConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return to_config(self._offered, self._given)

    @classmethod
    def _from_config(cls, config: ConstrainedWorkbenchConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        try:
            return cls(**from_config(config))
        except TypeError as error:
            raise ConfigurationError(
                f"{cls.__name__} does not take what ConstrainedWorkbench takes: {error}"
            ) from error
