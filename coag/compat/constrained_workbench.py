"""`ConstrainedWorkbench`: any tools behind hard rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, cast

from autogen_core import CancellationToken, ComponentLoader, ComponentModel
from autogen_core.tools import StaticStreamWorkbench, ToolResult, ToolSchema, Workbench
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag.context import (
    CoagContext,
    check_public,
    from_part,
    load_context,
    nested_component,
    to_part,
)
from coag.cycle import (
    ApprovalPolicy,
    ApproveFunction,
    BoundRule,
    ConstraintSet,
    JudgedBy,
    NamedConstraint,
    approvals_of,
    check_rule,
)
from coag.errors import ConfigurationError, StateError
from coag.schema import (
    ActionCall,
    Candidate,
    Constraint,
    Imported,
    Intent,
    TraceRecord,
    UnsettledAction,
    Verdict,
    check_own_code,
    from_import_name,
    provider_name,
)

from .guarded_calls import (
    GuardedCalls,
    GuardedResult,
    GuardedRun,
    PlainRun,
    Wanted,
    show_event,
    until_cancelled,
)
from .tool_components import load_tool, load_workbench, tool_component, workbench_component
from .tool_listing import OfferedTools
from .tool_runner import OUTPUT_CHARACTERS, Tool, ToolRunner

# ---- Constraints, and what else goes by import name, within a component ----


Part = str | Imported | ComponentModel
"""An import name, a class with arguments, or an AutoGen component."""


class ConstraintConfig(BaseModel):
    """A constraint under a name that is not its own."""

    model_config = ConfigDict(extra="forbid")

    name: str
    """The name by which logs and errors call it."""
    rule: Part


@dataclass(frozen=True, slots=True)
class RuleUnderName:
    """A loaded constraint under a name that is not its own."""

    name: str
    rule: Constraint

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """The rule's verdict."""
        return self.rule(candidate, state, projection)

    def within(self, known: JudgedBy) -> Constraint:
        """The rule as it judges by what was said, where it asks for that."""
        return self.rule.within(known) if isinstance(self.rule, BoundRule) else self


def part_of(value: object, where: str) -> Part:
    """How to get a value again.

    Raises:
        ConfigurationError: It cannot be had again; names where it was given.
    """
    if hasattr(value, "dump_component") and not isinstance(value, type):
        return nested_component(value, where)
    try:
        found = Imported.of(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    check_public(found.arguments, f"{where}: {found.name}")
    return found.name if found.arguments is None else found


def get_part(part: Part) -> Any:
    """The value that `part_of` was given.

    Raises:
        ConfigurationError: There is no such thing any more.
    """
    if isinstance(part, str):
        found = from_import_name(part)
        check_own_code(found, part)
        return found
    if isinstance(part, Imported):
        return part.get()
    return ComponentLoader.load_component(part, expected=object)


def constraint_config(rule: object) -> ConstraintConfig | Part:
    """How to get a constraint again, under its own name or the one that it was given."""
    if isinstance(rule, RuleUnderName):
        return ConstraintConfig(name=rule.name, rule=part_of(rule.rule, "constraints="))
    if not isinstance(rule, NamedConstraint):
        return part_of(rule, "constraints=")
    own = constraint_config(rule.judge)
    if isinstance(own, ConstraintConfig):
        return own.model_copy(update={"name": rule.name})
    if _own_name(rule.judge) == rule.name:
        return own
    return ConstraintConfig(name=rule.name, rule=own)


def asks_what_was_said(rule: object) -> bool:
    """Whether a constraint judges by the dialogue."""
    return isinstance(rule.rule if isinstance(rule, RuleUnderName) else rule, BoundRule)


def _own_name(rule: Constraint) -> str:
    constraints = ConstraintSet()
    return constraints.add(rule)


def from_constraint_config(config: ConstraintConfig | Part) -> Any:
    """The constraint that `constraint_config` was given.

    Raises:
        ConfigurationError: There is no such thing any more, or it is no rule.
    """
    if isinstance(config, ConstraintConfig):
        return RuleUnderName(config.name, from_constraint_config(config.rule))
    rule = get_part(config)
    check_rule(rule)
    return rule


# ---- A `ConstrainedWorkbench` as a component, and its state ----


class ConstrainedWorkbenchConfig(BaseModel):
    """The declarative form of a `ConstrainedWorkbench`."""

    model_config = ConfigDict(extra="forbid")

    tools: list[ComponentModel] = []
    """Tools that were given without a workbench."""
    workbenches: list[ComponentModel] = []
    """Workbenches that were given."""
    constraints: list[ConstraintConfig | Part] = []
    """The rules by import name."""
    context: ComponentModel | None = None
    """The context, if one was given."""
    approval: Any = None
    """The policy of approval, as `coag.context.to_part` writes it."""
    approve: Any = None
    """Who is asked, in the same form."""
    logs: str | None = None
    """The folder for run folders, as it was given."""
    name: str = "workbench"
    """Who acts."""
    timeout: float = 60.0
    """Seconds that one call may take."""
    output_characters: int = OUTPUT_CHARACTERS
    """Characters of output that are kept."""
    parallel: bool = False
    """Whether the calls of a batch run together."""


_PLAIN = ("logs", "name", "timeout", "output_characters", "parallel")


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


def to_config(offered: OfferedTools, given: Mapping[str, Any]) -> ConstrainedWorkbenchConfig:
    """The declarative form of a workbench.

    Args:
        offered: What it offers.
        given: What else its constructor was given, by name.

    Raises:
        ConfigurationError: A part cannot be written down, or holds a secret.
    """
    context = given["context"]
    config = ConstrainedWorkbenchConfig(
        tools=[tool_component(tool) for tool in offered.tools],
        workbenches=[workbench_component(workbench) for workbench in offered.given],
        constraints=[constraint_config(rule) for rule in given["constraints"]],
        context=None if context is None else nested_component(context, "context="),
        approval=to_part(given["approval"], "approval="),
        approve=to_part(given["approve"], "approve="),
        **{name: given[name] for name in _PLAIN},
    )
    shown = config.model_dump(mode="json", exclude={"tools", "workbenches"})
    check_public(shown, f"The component of workbench {config.name!r}")
    return config


def from_config(config: ConstrainedWorkbenchConfig) -> dict[str, Any]:
    """The constructor's arguments.

    Raises:
        ConfigurationError: Something that the component names does not exist any more.
    """
    context = None if config.context is None else load_context(config.context)
    return {
        "inner": [
            *(load_tool(tool) for tool in config.tools),
            *(load_workbench(workbench) for workbench in config.workbenches),
        ],
        "constraints": [from_constraint_config(rule) for rule in config.constraints],
        "context": cast("CoagContext[Any] | None", context),
        "approval": from_part(config.approval),
        "approve": from_part(config.approve),
        **{name: getattr(config, name) for name in _PLAIN},
    }


def read_state(state: Mapping[str, Any], workbenches: int) -> WorkbenchState:
    """A saved state.

    Raises:
        StateError: It is none, or of a workbench with another number of workbenches within.
    """
    try:
        saved = WorkbenchState.model_validate(dict(state))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StateError(
            f"This is no saved state of a ConstrainedWorkbench: {where}: {first['msg']}. Give "
            "what its save_state() gave."
        ) from error
    if len(saved.inner) != workbenches:
        raise StateError(
            f"This state is of {len(saved.inner)} workbench(es), and there are {workbenches} "
            "here. Make the workbench as it was when it was saved."
        )
    return saved


# ---- `ConstrainedWorkbench`: the guard of `CoagAgent` around any tools, for any agent ----


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
