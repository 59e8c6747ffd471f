"""The parts of an agent, wired from its arguments."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from autogen_agentchat.messages import BaseAgentEvent
from autogen_core.model_context import ChatCompletionContext
from autogen_core.tools import Workbench

from coag.compat import ToolRunner
from coag.context import CoagContext, WorkingMemory
from coag.cycle import (
    ActionRule,
    ConstraintSet,
    CycleSettings,
    Deps,
    GuardedActions,
    ModuleHost,
    approvals_of,
    perceive,
    respond_spec,
    untrusted_texts,
)
from coag.errors import ConfigurationError, UnknownNameError
from coag.memory import (
    LongTermMemory,
    MemoryActions,
    MemorySituation,
    ProceduralMemory,
    place_of,
)
from coag.models import StructuredModel
from coag.schema import (
    Event,
    Executed,
    ExecutionOutcome,
    LazySink,
    Note,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    TraceRecord,
    TraceSink,
    one_line,
)
from coag.tracing import MemoryTrace

from .arguments import AgentArguments
from .events import EventMapper, Handoffs, LiveEvents, ResponseBuilder, external_calls
from .memories import offers_memory, open_memory, open_procedures
from .model import MODEL_PHASES, ModelGateway, ModelWindow, known_window

_EVENT_TEXT = 200
"""Characters kept of how the agent saw the moment in which it remembered something."""


class TraceRouter:
    """A trace sink whose target can be set after the parts were wired: RAM, or a run's folder."""

    def __init__(self) -> None:
        self.sink: TraceSink = MemoryTrace()
        self.watchers: tuple[TraceSink, ...] = ()
        """Get every record once the sink has it."""
        self.run_id = ""
        """The current run's id; empty before the first turn."""

    def write(self, record: TraceRecord) -> None:
        """Appends to the current sink."""
        self.sink.write(record)
        for watcher in self.watchers:
            watcher.write(record)

    def write_now(self, record: TraceRecord) -> None:
        """Appends a record and flushes it."""
        self.write(record)
        self.flush()

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Appends a record, made now only if somebody wants it now."""
        for sink in (self.sink, *self.watchers):
            if isinstance(sink, LazySink):
                sink.write_later(make)
            else:
                sink.write(make())

    def watch(self, watcher: TraceSink) -> Callable[[], None]:
        """Sends every record from now on to a further sink; calling the result ends it."""
        self.watchers = (*self.watchers, watcher)

        def stop() -> None:
            self.watchers = tuple(one for one in self.watchers if one is not watcher)

        return stop

    def flush(self) -> None:
        """Flushes the current sink."""
        self.sink.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """The parts of an agent in working order."""

    arguments: AgentArguments
    context: CoagContext[Any]
    deps: Deps
    memory: LongTermMemory
    trace: TraceRouter
    gateway: ModelGateway
    window: ModelWindow
    tools: ToolRunner
    handoffs: Handoffs
    live: LiveEvents
    responses: ResponseBuilder
    events: EventMapper
    remembering: bool
    """Whether the agent is offered actions to remember events and facts."""
    rewriting: bool
    """Whether it may change its standing rules."""

    def random_unused(self) -> bool:
        """Whether nothing was drawn from the random source yet."""
        return self.deps.random.getstate() == _initial_random(self.arguments.seed)

    def forget(self) -> None:
        """Clears the progress detector and the modules.

        Raises:
            StateError: A module could not be cleared; the others are.
        """
        self.deps.detector.load_state({})
        self.deps.modules.reset_state()

    async def events_of(self, outcome: Outcome, calls: list[Executed]) -> list[BaseAgentEvent]:
        """The events of an outcome; the tool calls that it ran are added to `calls`."""
        outputs = self.deps.actions.outputs
        if isinstance(outcome, ExecutionOutcome):
            calls += external_calls(outcome)
            await self.responses.pass_on_calls(outcome, outputs)
        if isinstance(outcome, ProposalOutcome):
            self.handoffs.warn_of_several([one.action for one in outcome.candidates])
        known = await self.deps.actions.specs()
        return self.events.events_of(outcome, self.context.working_memory, known, outputs)


@cache
def _initial_random(seed: int) -> object:
    return random.Random(seed).getstate()


def build_agent(given: AgentArguments, *, remembers: bool | None = None) -> Mind:
    """Wires the parts of an agent.

    Args:
        given: What the agent was given.
        remembers: Whether it is offered actions of memory; None for where it was given one.

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """
    context, live, trace = context_from(given.model_context), LiveEvents(given.name), TraceRouter()
    context.agent_name = given.name
    tools = _tool_runner(given, live, context)
    handoffs = Handoffs(given.handoffs or (), [tool.name for tool in tools.tools])
    settings = given.cycle_settings(has_tools=bool(tools.tools or tools.workbenches))
    _check_grounded(settings, context)
    _check_rules(given, tools)
    gateway = ModelGateway(
        asker=StructuredModel(given.model_client),
        phases=_phase_models(given),
        trace=trace,
        clock=context.clock,
        ids=context.ids,
        prices=given.prices or {},
        on_text=live.on_text if given.model_client_stream else None,
        system_role=given.system_message is not None,
    )
    context.fit(known_window(gateway.askers))
    _check_prices(settings, gateway)
    remembering = offers_memory(given.memory) if remembers is None else remembers
    rewriting = remembering if given.rewriting is None else given.rewriting
    resolved = replace(given, rewriting=rewriting)
    memory = open_memory(given.memory, scope=given.name, clock=context.clock)
    deps = _deps(
        resolved, settings, gateway, tools, handoffs, live, trace, context, memory, remembering
    )
    context.on_added = _message_taker(context, deps, trace)
    return Mind(
        arguments=given,
        context=context,
        deps=deps,
        memory=memory,
        trace=trace,
        gateway=gateway,
        window=ModelWindow(gateway.askers),
        tools=tools,
        handoffs=handoffs,
        live=live,
        responses=ResponseBuilder(given, context, handoffs, live),
        events=EventMapper(
            source=given.name,
            native=settings.proposal == "native",
            handoffs=set(handoffs.by_name),
            phases=given.events == "phases",
            live=live,
        ),
        remembering=remembering,
        rewriting=rewriting,
    )


def _deps(  # noqa: PLR0913, PLR0917 - the parts that were made before it
    given: AgentArguments,
    settings: CycleSettings,
    gateway: ModelGateway,
    tools: ToolRunner,
    handoffs: Handoffs,
    live: LiveEvents,
    trace: TraceRouter,
    context: CoagContext[Any],
    memory: LongTermMemory,
    remembering: bool,
) -> Deps:
    own = given.procedures or {}
    procedures = open_procedures(given.memory, own, context.clock, given.gate)

    memory_actions = MemoryActions(
        memory,
        procedures,
        lambda: _memory_situation(context, given.name, trace.run_id),
        narrowed=context.memory_for_now,
        on_written=trace.write_now,
        rewriting=bool(given.rewriting) and "rewriting" not in settings.ablations,
        remembering=remembering,
    )
    modules = _module_host(given, settings, context, trace)
    return Deps(
        ask=gateway,
        offer=gateway.offer,
        answer_type=given.output_content_type,
        actions=GuardedActions(
            tools,
            [handoffs, memory_actions, modules, context.reading_more()],
            respond=respond_spec(given.output_content_type),
            keep=context.originals.keep,
        ),
        reconcilers=(tools.reconcile, context.reconcile),
        announce=live.on_calls,
        procedures=procedures,
        trace=trace,
        clock=context.clock,
        ids=context.ids,
        memory=memory,
        approvals=approvals_of(given.approval, given.approve, context.clock, context.ids),
        agent=given.name,
        constraints=ConstraintSet(
            given.constraints,
            [context, modules],
            seconds=settings.rule_seconds,
            developer=lambda: _developer_texts(given, procedures),
        ),
        modules=modules,
        settings=settings,
        random=random.Random(given.seed),
        run=lambda: trace.run_id,
        system_message=given.system_message or "",
        environment=given.environment,
    )


def _module_host(
    given: AgentArguments, settings: CycleSettings, context: CoagContext[Any], trace: TraceRouter
) -> ModuleHost:
    def note(name: str, problem: str) -> None:
        at, cycle = context.clock.now(), context.working_memory.cycle
        text = f"Module {name} was left out: {problem}."
        trace.write(Note(at=at, cycle=cycle, about="module", text=text))

    return ModuleHost(
        given.modules,
        seconds=settings.module_seconds,
        action_seconds=given.tool_timeout,
        on_problem=note,
    )


def _developer_texts(given: AgentArguments, procedures: ProceduralMemory) -> list[str]:
    """What the developer wrote, and what the gate let into procedures."""
    texts = (procedures.get(name).text for name in procedures.names())
    return [given.system_message or "", *texts]


def _message_taker(context: CoagContext[Any], deps: Deps, trace: TraceRouter) -> Any:
    """Perceives messages that were added to the context; with trace records once a run is open."""

    async def take_in(added: Sequence[Percept]) -> None:
        if trace.run_id:
            await perceive(added, context, deps)
            trace.flush()
            return
        for percept in added:  # the first snapshot of the run will show them
            context.perceive(percept)

    return take_in


def _memory_situation(context: CoagContext[Any], agent: str, run: str) -> MemorySituation:
    """What a memory action may know of the moment."""
    memory, metadata = context.working_memory, context.memory_metadata()
    retrieval, taint = memory.cognitive_state.retrieval, memory.tainted_by
    return MemorySituation(
        run=run,
        activity=memory.activity,
        cycle=memory.cycle,
        agent=agent,
        metadata=metadata,
        event=_event(memory, run, place_of(metadata)),
        recalled=() if retrieval is None else tuple(hit.record for hit in retrieval.records),
        untrusted=untrusted_texts(context),
        sources=() if taint is None else taint.sources,
        records=() if taint is None else taint.records,
        said=memory.said_by_user(),
        apart=context.keeps_people_apart,
    )


def _event(memory: WorkingMemory, run: str, place: str) -> Event:
    """What happens now: how the agent sees it, and what it did last."""
    reasoning = memory.cognitive_state.reasoning
    past = next((one for one in reversed(memory.deeds) if not one.internal), None)
    action = "" if past is None else f"{past.action} {json.dumps(past.arguments)}"
    return Event(
        episode=f"{run}/{memory.activity}",
        situation="" if reasoning is None else one_line(reasoning.situation, _EVENT_TEXT),
        action=one_line(action, _EVENT_TEXT),
        place=place,
    )


# ---- Parts that one argument becomes, and arguments that do not fit each other ----


def context_from(given: ChatCompletionContext | None) -> CoagContext[Any]:
    """The given `CoagContext`, or a default one that shows what another context selects.

    Raises:
        ConfigurationError: It is no context.
    """
    if isinstance(given, CoagContext):
        return cast("CoagContext[Any]", given)
    methods = ("add_message", "get_messages", "clear")
    fits = all(callable(getattr(given, name, None)) for name in methods)
    if given is not None and (isinstance(given, type) or not fits):
        raise ConfigurationError(
            f"model_context takes a context, e.g. CoagContext(), not {given!r}."
        )
    return CoagContext[Any](dialogue=given)


def _tool_runner(given: AgentArguments, live: LiveEvents, context: CoagContext[Any]) -> ToolRunner:
    if given.tools and given.workbench:
        raise ConfigurationError(
            "Tools cannot be used with a workbench: give tools or a workbench, not both."
        )
    benches = given.workbench or ()
    return ToolRunner(
        given.tools or (),
        [benches] if isinstance(benches, Workbench) else list(benches),
        timeout=given.tool_timeout,
        on_event=live.on_tool_event,
        readable=lambda: context.output_characters,
    )


def _phase_models(given: AgentArguments) -> dict[Phase, StructuredModel]:
    models = given.models or {}
    unknown = next((name for name in models if name not in MODEL_PHASES), None)
    if unknown is not None:
        raise UnknownNameError("phase that asks a model", unknown, MODEL_PHASES)
    return {Phase(name): StructuredModel(client) for name, client in models.items()}


def _check_grounded(settings: CycleSettings, context: CoagContext[Any]) -> None:
    """Refuses to take candidates from a domain that proposes none."""
    kind, hooks = type(context), ("_propose_grounded", "propose_grounded")
    own = any(getattr(kind, hook) is not getattr(CoagContext, hook) for hook in hooks)
    if settings.proposal == "grounded" and not own:
        raise ConfigurationError(
            f"proposal='grounded' takes the candidates from the domain, and {kind.__name__} has no "
            "_propose_grounded. Write one in your CoagContext and give it as model_context, or "
            "let the model propose: proposal='auto'."
        )


def _check_rules(given: AgentArguments, tools: ToolRunner) -> None:
    takes = {tool.name: cast("Any", tool.schema.get("parameters", {})) for tool in tools.tools}
    for rule in given.constraints:
        if isinstance(rule, ActionRule):
            rule.check_arguments(takes)


def _check_prices(settings: CycleSettings, gateway: ModelGateway) -> None:
    """Refuses a budget in money that cannot be kept."""
    unpriced = sorted({asker.name for asker in gateway.askers} - set(gateway.prices))
    if settings.budget.cost is not None and unpriced:
        raise ConfigurationError(
            f"budget.cost={settings.budget.cost!r} needs the price of every model; missing: "
            f"{', '.join(unpriced)}. Give prices={{{unpriced[0]!r}: Price(prompt=..., "
            "completion=...)}."
        )
