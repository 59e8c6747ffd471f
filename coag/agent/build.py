"""An agent from its arguments: the one place of wiring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast

from autogen_agentchat.base import Handoff
from autogen_core import FunctionCall
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient, FunctionExecutionResult
from autogen_core.tools import Workbench
from pydantic import BaseModel

from coag.compat import Tool, ToolRunner
from coag.context import CoagContext
from coag.cycle import ActionRule, ApprovalPolicy, ApproveFunction, CycleSettings, approvals_of
from coag.memory import GateSettings, LongTermMemory, Procedure
from coag.models import Price, StructuredModel
from coag.schema import CognitiveModule, Constraint, Environment
from coag.tracing import Recipe

from .events import AnswerForm, Handoffs, Live, SummaryForm, Teller, Voice
from .memories import offers_memory, open_memory, open_procedures
from .mind import MindParts
from .model import known_window
from .settings import (
    SUMMARY,
    Deliberation,
    MemoryArgument,
    check,
    check_grounded,
    check_prices,
    context_from,
    cycle_settings,
    phase_askers,
    tool_rounds,
    tool_runner,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What a `CoagAgent` was given and thinks with; see there for what each means."""

    name: str
    model_client: ChatCompletionClient
    description: str
    metadata: Mapping[str, str] | None
    logs: Path | str | None
    recipe: Recipe | None
    tools: Sequence[Tool] | None
    workbench: Workbench | Sequence[Workbench] | None
    handoffs: Sequence[Handoff | str] | None
    model_context: ChatCompletionContext | None
    system_message: str | None
    model_client_stream: bool
    reflect_on_tool_use: bool | None
    max_tool_iterations: int | None
    tool_call_summary_format: str
    tool_call_summary_formatter: Callable[[FunctionCall, FunctionExecutionResult], str] | None
    output_content_type: type[BaseModel] | None
    output_content_type_format: str | None
    memory: MemoryArgument | None
    modules: Sequence[CognitiveModule]
    constraints: Sequence[Constraint]
    procedures: Mapping[str, Procedure] | None
    seed: int
    tool_timeout: float
    models: Mapping[str, ChatCompletionClient] | None
    prices: Mapping[str, Price] | None
    approval: ApprovalPolicy | None
    approve: ApproveFunction | None
    environment: Environment | None
    gate: GateSettings | None
    rewriting: bool | None
    events: Literal["stock", "phases"]
    deliberation: Deliberation

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Arguments:
        """From the names and values of a constructor's arguments; further names are left out.

        Raises:
            ConfigurationError: One of them is nothing that it could be.
        """
        check(given)
        return cls(**{field.name: given[field.name] for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Made:
    """The parts of an agent."""

    parts: MindParts
    context: CoagContext[Any]
    memory: LongTermMemory
    live: Live
    voice: Voice
    teller: Teller


def _check_rules(rules: Sequence[Constraint], tools: ToolRunner) -> None:
    takes = {tool.name: cast("Any", tool.schema.get("parameters", {})) for tool in tools.tools}
    for rule in rules:
        if isinstance(rule, ActionRule):
            rule.check_arguments(takes)


def make(given: Arguments, *, remembers: bool | None = None) -> Made:
    """Makes the parts of an agent.

    Args:
        given: What the agent was given.
        remembers: Whether it is offered actions of memory; None for where it was given one.

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """
    context, live = context_from(given.model_context), Live(given.name)
    tools = tool_runner(
        given.tools,
        given.workbench,
        given.tool_timeout,
        live.on_tool_event,
        lambda: context.output_characters,
    )
    handoffs = Handoffs(given.handoffs or (), [tool.name for tool in tools.tools])
    settings = _settings(given, tools)
    check_grounded(settings.proposal, context)
    asker, phases = StructuredModel(given.model_client), phase_askers(given.models or {})
    context.agent_name = given.name
    context.fit(known_window([asker, *phases.values()]))
    check_prices(settings, given.prices or {}, [asker, *phases.values()])
    _check_rules(given.constraints, tools)
    remembers = offers_memory(given.memory) if remembers is None else remembers
    memory = open_memory(given.memory, scope=given.name, clock=context.clock)
    parts = MindParts(
        name=given.name,
        asker=asker,
        tools=tools,
        context=context,
        memory=memory,
        procedures=open_procedures(given.memory, given.procedures or {}, context.clock, given.gate),
        modules=given.modules,
        action_seconds=given.tool_timeout,
        constraints=given.constraints,
        settings=settings,
        system_message=given.system_message,
        seed=given.seed,
        handoffs=handoffs,
        live=live,
        streams=given.model_client_stream,
        answer_type=given.output_content_type,
        phases=phases,
        prices=given.prices or {},
        approvals=approvals_of(given.approval, given.approve, context.clock, context.ids),
        environment=given.environment,
        rewriting=remembers if given.rewriting is None else given.rewriting,
        remembering=remembers,
    )
    return Made(
        parts,
        context,
        memory,
        live,
        _voice(given, context, handoffs, live),
        _teller(parts, given.events),
    )


def _settings(given: Arguments, tools: ToolRunner) -> CycleSettings:
    rounds, reflect = tool_rounds(
        given.max_tool_iterations,
        reflect_on_tool_use=given.reflect_on_tool_use,
        summarises=given.tool_call_summary_format != SUMMARY
        or given.tool_call_summary_formatter is not None,
        structured=given.output_content_type is not None,
    )
    return cycle_settings(
        given.deliberation,
        rounds=rounds,
        reflect=reflect,
        info=given.model_client.model_info,
        tools=bool(tools.tools or tools.workbenches),
    )


def _voice(given: Arguments, context: CoagContext[Any], handoffs: Handoffs, live: Live) -> Voice:
    summary = SummaryForm(given.tool_call_summary_format, given.tool_call_summary_formatter)
    form = AnswerForm(given.output_content_type, given.output_content_type_format)
    return Voice(given.name, context, summary, form, handoffs, live)


def _teller(parts: MindParts, events: str) -> Teller:
    return Teller(
        source=parts.name,
        native=parts.settings.proposal == "native",
        handoffs=set(parts.handoffs.by_name),
        phases=events == "phases",
        live=parts.live,
    )
