"""The parts of an agent, wired from its arguments."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from autogen_core.model_context import ChatCompletionContext
from autogen_core.tools import Workbench

from coag.compat import ToolRunner
from coag.context import CoagContext, state_fields
from coag.cycle import (
    ActionRule,
    CompiledProcedures,
    ConstraintSet,
    CycleSettings,
    Deps,
    GuardedActions,
    ModuleHost,
    approvals_of,
    perceive,
    respond_spec,
    untrusted_texts,
    written_rule,
)
from coag.errors import ConfigurationError, UnknownNameError
from coag.memory import (
    GateSettings,
    MemoryActions,
    MemorySituation,
    compiling_objections,
    place_of,
)
from coag.models import StructuredModel
from coag.schema import (
    Event,
    LazySink,
    Percept,
    Phase,
    TraceRecord,
    TraceSink,
    one_line,
)
from coag.tracing import MemoryTrace

from .arguments import AgentArguments
from .events import EventMapper, Handoffs, LiveEvents
from .memories import modules_of, offers_memory, open_memory, open_procedures
from .model import MODEL_PHASES, ModelGateway, known_window

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

    def write_now(self, *records: TraceRecord) -> None:
        """Appends records and flushes them."""
        for record in records:
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


class Mind:
    """The parts of an agent in working order.

    Args:
        given: What the agent was given.
        remembers: Whether it is offered actions of memory; None for where it was given one.

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """

    def __init__(self, given: AgentArguments, *, remembers: bool | None = None) -> None:
        self.arguments = given
        self.context = context_from(given.model_context)
        self.context.agent_name = given.name
        self.live = LiveEvents(given.name)
        self.trace = TraceRouter()
        self.tools = self._tool_runner()
        handoffs = Handoffs(given.handoffs or (), [tool.name for tool in self.tools.tools])
        settings = given.cycle_settings(has_tools=bool(self.tools.tools or self.tools.workbenches))
        self.context.lean = settings.prompts == "lean"
        self.gateway = self._model_gateway()
        self.context.fit(known_window(self.gateway.askers))
        self._check(settings)
        self.memory = open_memory(
            given.memory,
            scope=given.name,
            clock=self.context.clock,
            dynamics=given.memory_dynamics,
        )
        wanted = given.remembering if remembers is None else remembers
        self.remembering = offers_memory(given.memory) if wanted is None else wanted
        """Whether the agent is offered actions to remember events and facts."""
        self.rewriting = self.remembering if given.rewriting is None else given.rewriting
        """Whether it may change its standing rules."""
        self.deps = self._deps(settings, handoffs)
        self.context.on_added = self._take_in
        self.events = EventMapper(
            given=given,
            context=self.context,
            handoffs=handoffs,
            live=self.live,
            native=settings.proposal == "native",
            actions=self.deps.actions,
        )

    def continue_as(self, configuration: Mapping[str, Any]) -> None:
        """Takes the settings of the run, where this one's are defaults that have changed."""
        recorded = self.arguments.recorded_defaults(configuration)
        settings = self.deps.settings.model_copy(update=recorded)
        self.deps = replace(self.deps, settings=settings)
        self.context.lean = settings.prompts == "lean"

    def random_unused(self) -> bool:
        """Whether nothing was drawn from the random source yet."""
        return self.deps.random.getstate() == random.Random(self.arguments.seed).getstate()

    def forget(self) -> None:
        """Clears the progress detector and the modules.

        Raises:
            StateError: A module could not be cleared; the others are.
        """
        self.deps.detector.load_state({})
        self.deps.modules.reset_state()

    # ---- its parts ----

    def _tool_runner(self) -> ToolRunner:
        given, context = self.arguments, self.context
        if given.tools and given.workbench:
            raise ConfigurationError(
                "Tools cannot be used with a workbench: give tools or a workbench, not both."
            )
        benches = given.workbench or ()
        return ToolRunner(
            given.tools or (),
            [benches] if isinstance(benches, Workbench) else list(benches),
            timeout=given.tool_timeout,
            on_event=self.live.on_tool_event,
            readable=lambda: context.output_characters,
        )

    def _model_gateway(self) -> ModelGateway:
        given, models = self.arguments, self.arguments.models or {}
        for name in models:
            if name not in MODEL_PHASES:
                raise UnknownNameError("phase that asks a model", name, MODEL_PHASES)
        return ModelGateway(
            asker=StructuredModel(given.model_client),
            phases={Phase(name): StructuredModel(client) for name, client in models.items()},
            trace=self.trace,
            clock=self.context.clock,
            ids=self.context.ids,
            prices=given.prices or {},
            begin_text=self.live.begin_text if given.model_client_stream else None,
            system_role=given.system_message is not None,
        )

    def _deps(self, settings: CycleSettings, handoffs: Handoffs) -> Deps:
        given, context, clock, trace = self.arguments, self.context, self.context.clock, self.trace
        procedures = open_procedures(given.memory, given.procedures or {}, clock, given.gate)
        memory_actions = MemoryActions(
            self.memory,
            procedures,
            self._memory_situation,
            narrowed=context.memory_for_now,
            on_written=trace.write_now,
            rewriting=self.rewriting and "rewriting" not in settings.ablations,
            remembering=self.remembering,
        )
        compiled = self._compiled(settings)
        asked = given.approval, given.approve, clock, context.ids
        approvals = approvals_of(*asked, given.constraints)
        own = modules_of(self.memory, given.modules, context.memory_for_now)
        modules = ModuleHost(
            (*given.modules, *own, *(() if compiled is None else (compiled,))),
            seconds=settings.module_seconds,
            action_seconds=given.tool_timeout,
            on_problem=lambda name, problem: self.deps.note(
                context, "module", f"Module {name} was left out: {problem}."
            ),
        )
        return Deps(
            ask=self.gateway,
            offer=self.gateway.offer,
            answer_type=given.output_content_type,
            actions=GuardedActions(
                self.tools,
                [handoffs, memory_actions, modules, context.reading_more()],
                respond=respond_spec(given.output_content_type),
                keep=context.originals.keep,
            ),
            reconcilers=(self.tools.reconcile, context.reconcile),
            announce=self.live.on_calls,
            procedures=procedures,
            trace=trace,
            clock=clock,
            ids=context.ids,
            memory=self.memory,
            compiled=compiled,
            approvals=approvals,
            agent=given.name,
            constraints=ConstraintSet(
                given.constraints,
                [context, modules],
                seconds=settings.rule_seconds,
                developer=self._developer_texts,
                approvals=approvals,
            ),
            modules=modules,
            settings=settings,
            random=random.Random(given.seed),
            run=lambda: trace.run_id,
            system_message=given.system_message or "",
            environment=given.environment,
        )

    def _compiled(self, settings: CycleSettings) -> CompiledProcedures | None:
        """What learns procedures from repeated success, where the depth is to depend on them."""
        if settings.depth != "auto":
            return None
        context, gate = self.context, self.arguments.gate or GateSettings()

        def objection(text: str) -> str:
            untrusted = untrusted_texts(context)
            return " ".join(compiling_objections(text, untrusted=untrusted, gate=gate))

        return CompiledProcedures(
            self.arguments.name,
            after=settings.compile_after,
            objection=objection,
            note=lambda text: self.deps.note(context, "compiled", text),
        )

    def _check(self, settings: CycleSettings) -> None:
        kind, hooks = type(self.context), ("_propose_grounded", "propose_grounded")
        own = any(getattr(kind, hook) is not getattr(CoagContext, hook) for hook in hooks)
        if settings.proposal == "grounded" and not own:
            raise ConfigurationError(
                f"proposal='grounded' takes the candidates from the domain, and {kind.__name__} "
                "has no _propose_grounded. Write one, or let the model propose: proposal='auto'."
            )
        takes = {tool.name: tool.schema.get("parameters", {}) for tool in self.tools.tools}
        for rule in self.arguments.constraints:
            if isinstance(rule, ActionRule):
                rule.check_arguments(cast("Any", takes))
            elif (written := written_rule(rule)) is not None:
                fields = state_fields(self.context.perceptual_state_schema)
                written.check_arguments(cast("Any", takes), fields)
        names = {asker.name for asker in self.gateway.askers}
        unpriced = sorted(names - set(self.gateway.prices))
        if settings.budget.cost is not None and unpriced:
            lacking = f"budget.cost={settings.budget.cost!r} needs the price of every model"
            give = f"prices={{{unpriced[0]!r}: Price(prompt=..., completion=...)}}"
            raise ConfigurationError(f"{lacking}; missing: {', '.join(unpriced)}. Give {give}.")

    # ---- what its parts ask it ----

    def _developer_texts(self) -> list[str]:
        procedures = self.deps.procedures
        texts = [procedures.get(name).text for name in procedures.names()]
        return [self.deps.system_message, *texts]

    async def _take_in(self, added: Sequence[Percept]) -> None:
        """Perceives messages that were added to the context; recorded once a run is open."""
        if self.trace.run_id:
            await perceive(added, self.context, self.deps)
            self.trace.flush()
            return
        for percept in added:  # the first snapshot of the run will show them
            self.context.perceive(percept)

    def _memory_situation(self) -> MemorySituation:
        context, run = self.context, self.trace.run_id
        memory, metadata = context.working_memory, context.memory_metadata()
        reasoning, retrieval = memory.cognitive_state.reasoning, memory.cognitive_state.retrieval
        taint = memory.tainted_by
        past = next((one for one in reversed(memory.deeds) if not one.internal), None)
        action = "" if past is None else f"{past.action} {json.dumps(past.arguments)}"
        event = Event(
            episode=f"{run}/{memory.activity}",
            situation=one_line(reasoning.situation, _EVENT_TEXT) if reasoning else "",
            action=one_line(action, _EVENT_TEXT),
            place=place_of(metadata),
        )
        return MemorySituation(
            run=run,
            activity=memory.activity,
            cycle=memory.cycle,
            agent=self.arguments.name,
            metadata=metadata,
            event=event,
            recalled=tuple(hit.record for hit in retrieval.records) if retrieval else (),
            untrusted=untrusted_texts(context),
            sources=() if taint is None else taint.sources,
            records=() if taint is None else taint.records,
            said=memory.said_by_user(),
            apart=context.keeps_people_apart,
        )


def context_from(context: ChatCompletionContext | None) -> CoagContext[Any]:
    """The given `CoagContext`, or a default one that shows what another context selects."""
    if isinstance(context, CoagContext):
        return cast("CoagContext[Any]", context)
    methods = ("add_message", "get_messages", "clear")
    fits = all(callable(getattr(context, name, None)) for name in methods)
    if context is not None and (isinstance(context, type) or not fits):
        raise ConfigurationError(
            f"model_context takes a context, e.g. CoagContext(), not {context!r}."
        )
    return CoagContext[Any](dialogue=context)
