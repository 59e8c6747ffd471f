"""`ConstrainedWorkbench`: any tools behind hard rules, for any agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast

from autogen_core import CancellationToken, ComponentModel
from autogen_core.tools import StaticStreamWorkbench, ToolResult, ToolSchema, Workbench
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag._util.validation import first_error
from coag.context import (
    CoagContext,
    check_public,
    from_part,
    load_context,
    nested_component,
    to_part,
)
from coag.cycle import RESPOND, ApprovalPolicy, ApproveFunction
from coag.errors import ConfigurationError, StateError
from coag.schema import ActionCall, Constraint, Intent, TraceRecord, UnsettledAction

from .components import (
    ConstraintConfig,
    NamedComponent,
    Part,
    constraint_config,
    from_constraint_config,
    load_tool,
    load_workbench,
    tool_component,
    workbench_component,
)
from .guard import Guard
from .guarded_calls import (
    NOTHING_DONE,
    GuardedResult,
    Show,
    end_call,
    result_when_cancelled,
    show_event,
    text_result,
)
from .tool_runner import OUTPUT_CHARACTERS, ToolRunner
from .tools import Tool


class ConstrainedWorkbenchConfig(BaseModel):
    """The declarative form of a `ConstrainedWorkbench`: its arguments."""

    model_config = ConfigDict(extra="forbid")

    tools: list[ComponentModel] = []
    workbenches: list[ComponentModel] = []
    constraints: list[ConstraintConfig | Part] = []
    """The rules by import name."""
    context: ComponentModel | None = None
    approval: Any = None
    """The policy of approval, as `coag.context.to_part` writes it."""
    approve: Any = None
    """Who is asked, in the same form."""
    logs: str | None = None
    name: str = "workbench"
    timeout: float = 60.0
    output_characters: int = OUTPUT_CHARACTERS
    parallel: bool = False


_PLAIN = ("logs", "name", "timeout", "output_characters", "parallel")
"""Arguments that a component holds as they are."""


class WorkbenchState(BaseModel):
    """The saved state of a `ConstrainedWorkbench`."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["ConstrainedWorkbenchState"] = "ConstrainedWorkbenchState"
    version: Literal[1] = 1
    inner: list[dict[str, Any]]
    """States of the workbenches within, the one of plain tools first."""
    context: dict[str, Any]
    """State of the context."""
    detector: dict[str, Any]
    """Calls that failed."""
    ids: dict[str, int]
    """How far ids were counted."""
    pending: list[ActionCall] = Field(default_factory=list[ActionCall])
    """Calls that had begun and not ended when it was saved."""
    heard: list[str] = Field(default_factory=list[str])
    """Digests of what is known of the dialogue."""


def _read_state(state: Mapping[str, Any], workbenches: int) -> WorkbenchState:
    try:
        saved = WorkbenchState.model_validate(dict(state))
    except ValidationError as error:
        problem = f"This is no saved state of a ConstrainedWorkbench: {first_error(error)}"
        raise StateError(f"{problem}. Give what its save_state() gave.") from error
    if len(saved.inner) != workbenches:
        of = f"This state is of {len(saved.inner)} workbench(es), and there are {workbenches} here"
        raise StateError(f"{of}. Make the workbench as it was when it was saved.")
    return saved


_END = object()


class ConstrainedWorkbench(NamedComponent, StaticStreamWorkbench):
    """Tools or workbenches behind the guard through which `CoagAgent` runs its actions.

    Each call is judged by code (does the tool exist, do the arguments fit, would it fail again,
    what do the constraints say of the state and the projection), approved where the policy wants
    it, run between an intent and a receipt, timed and cut; what it brings back changes the
    context's state. What is refused is an error that names the rule and its reason. A call never
    raises, since `AssistantAgent` hangs where a workbench does.

    Calls of one batch are judged one after the other where constraints or approvals are in force,
    so that each is judged by the state after the one before. It serves one event loop at a time:
    a call from another thread while one is under way is refused, nothing is done.

    With `logs=`, a call that a crash interrupted is found when the next run begins: it is in
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
        ConfigurationError: Tools or constraints have the same name, a tool is named `respond`,
            something is no tool, or a policy has nobody to ask.
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
        parts = [inner] if isinstance(inner, Workbench) else list(inner)
        runner = ToolRunner(
            [each for each in parts if not isinstance(each, Workbench)],
            [each for each in parts if isinstance(each, Workbench)],
            timeout=timeout,
            output_characters=output_characters,
            on_event=show_event,
            reserved=(RESPOND.name,),
        )
        given: dict[str, Any] = {
            "constraints": tuple(constraints),
            "approval": approval,
            "approve": approve,
            "logs": None if logs is None else str(logs),
            "name": name,
            "parallel": parallel,
        }
        settings = {"timeout": timeout, "output_characters": output_characters}
        self._arguments: dict[str, Any] = {**given, **settings, "context": context}
        self._guard = Guard(
            context=CoagContext[Any]() if context is None else context,
            runner=runner,
            settings={**settings, "parallel": parallel},
            **given,
        )

    @property
    def guard(self) -> Guard:
        """What judges the calls; a `ConstrainedClient` has it judge the answers, too."""
        return self._guard

    @property
    def context(self) -> CoagContext[Any]:
        """What keeps the state that rules judge by."""
        return self._guard.context

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What the run has written so far, oldest first."""
        return self._guard.trace.records

    @property
    def folder(self) -> Path:
        """The run's folder.

        Raises:
            ConfigurationError: There is none: without `logs=`, and before the first call.
        """
        return self._guard.trace.folder.path

    @property
    def unfinished(self) -> tuple[Intent, ...]:
        """Calls that earlier runs in the same folder of logs had begun and never ended."""
        return self._guard.unfinished

    @property
    def unsettled(self) -> tuple[UnsettledAction, ...]:
        """Calls of which it is not known whether they had their effect; see `settle`."""
        return self.context.working_memory.unsettled

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Says what became of a call of unknown outcome; from then on it may be made again.

        Whether it then may run twice is for your rules: `at_most` counts a call that happened; a
        rule on the state sees what the context's `_update_state_from_settlement` makes of it.

        Args:
            intent_id: The intent of the call, as in `unsettled`.
            happened: Whether it had its effect.

        Raises:
            UnknownNameError: No call with this intent is of unknown outcome.
            TraceError: It cannot be written down.
        """
        await self._guard.settle(intent_id, happened=happened)

    async def list_tools(self) -> list[ToolSchema]:
        """What is offered now. A workbench that cannot list its tools any more keeps the last.

        Raises:
            Exception: What a workbench raises that has never listed its tools.
        """
        return await self._runner.schemas(lambda text: self._guard.note("tools", text))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> GuardedResult:
        """Calls a tool under guard; only a cancellation of this task is raised."""
        return await self._call(name, arguments, cancellation_token, call_id)

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """As `call_tool`; what the tool shows while it runs comes first, the result last."""
        items: asyncio.Queue[object] = asyncio.Queue()
        calling = asyncio.create_task(
            self._call(name, arguments, cancellation_token, call_id, items.put_nowait)
        )
        calling.add_done_callback(lambda done: items.put_nowait(_END))
        try:
            while (item := await items.get()) is not _END:
                yield item
        finally:
            await end_call(calling)
        yield calling.result()

    async def start(self) -> None:
        """Starts the workbenches and begins the run.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        for workbench in self._workbenches:
            await workbench.start()
        await self._guard.open()

    async def stop(self) -> None:
        """Stops the workbenches and ends the run; a later call begins another."""
        try:
            for workbench in self._workbenches:
                await workbench.stop()
        finally:
            self._guard.trace.close()

    async def reset(self) -> None:
        """Resets the workbenches and forgets the state and what failed; the run stays open."""
        for workbench in self._workbenches:
            await workbench.reset()
        await self._guard.reset()

    async def save_state(self) -> Mapping[str, Any]:
        """The states of the workbenches, and what the guard knows, as JSON."""
        inner = [dict(await each.save_state()) for each in self._workbenches]
        return WorkbenchState(inner=inner, **await self._guard.save_state()).model_dump(mode="json")

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state.

        Raises:
            StateError: It is none of a workbench like this one.
        """
        saved = _read_state(state, len(self._workbenches))
        for workbench, inner in zip(self._workbenches, saved.inner, strict=True):
            await workbench.load_state(inner)
        await self._guard.load_state(saved.model_dump())

    def _to_config(self) -> ConstrainedWorkbenchConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        settings, runner = self._arguments, self._runner
        context: CoagContext[Any] | None = settings["context"]
        config = ConstrainedWorkbenchConfig(
            tools=[tool_component(tool) for tool in runner.tools],
            workbenches=[workbench_component(workbench) for workbench in runner.workbenches],
            constraints=[constraint_config(rule) for rule in settings["constraints"]],
            context=None if context is None else nested_component(context, "context="),
            approval=to_part(settings["approval"], "approval="),
            approve=to_part(settings["approve"], "approve="),
            **{name: settings[name] for name in _PLAIN},
        )
        fields = config.model_dump(mode="json", exclude={"tools", "workbenches"})
        check_public(fields, f"The component of workbench {config.name!r}")
        return config

    @classmethod
    def _from_config(cls, config: ConstrainedWorkbenchConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        inner = [*map(load_tool, config.tools), *map(load_workbench, config.workbenches)]
        context = None if config.context is None else load_context(config.context)
        try:
            return cls(
                inner,
                constraints=[from_constraint_config(rule) for rule in config.constraints],
                context=cast("CoagContext[Any] | None", context),
                approval=from_part(config.approval),
                approve=from_part(config.approve),
                **{name: getattr(config, name) for name in _PLAIN},
            )
        except TypeError as error:
            raise ConfigurationError(
                f"{cls.__name__} does not take what ConstrainedWorkbench takes: {error}"
            ) from error

    @property
    def _runner(self) -> ToolRunner:
        return self._guard.runner

    @property
    def _workbenches(self) -> Sequence[Workbench]:
        """All that are started and stopped: the one of plain tools, and the given ones."""
        own = (self._runner.own,) if self._runner.tools else ()
        return (*own, *self._runner.workbenches)

    async def _call(
        self,
        name: str,
        arguments: object,
        token: CancellationToken | None,
        call_id: str | None,
        show: Show = lambda event: None,
    ) -> GuardedResult:
        cancelled = f"{name} was cancelled before it"
        result = await result_when_cancelled(
            self._guard.call(name, arguments, call_id, show),
            token,
            before=text_result(name, f"{cancelled} began. {NOTHING_DONE}"),
            during=text_result(name, f"{cancelled} ran. {NOTHING_DONE}"),
        )
        self._guard.know_result(result)
        return result
