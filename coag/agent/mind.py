"""What an agent thinks with: context, models, memory, procedures, rules and trace, wired."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from coag.compat import ToolRunner
from coag.context import CoagContext, WorkingMemory
from coag.cycle import (
    Approvals,
    ConstraintSet,
    CycleSettings,
    Deps,
    GuardedActions,
    ModuleSeam,
    perceive,
    respond_spec,
    untrusted_texts,
)
from coag.memory import LongTermMemory, MemoryActions, MemorySituation, ProceduralMemory, place_of
from coag.models import Price, StructuredModel
from coag.schema import (
    CognitiveModule,
    Constraint,
    Environment,
    Event,
    LazySink,
    Note,
    Percept,
    Phase,
    TraceRecord,
    TraceSink,
    Written,
    one_line,
)
from coag.tracing import MemoryTrace

from .events import Handoffs, Live
from .model import MAX_TOKENS, ModelFace, ModelWindow

_EVENT_TEXT = 200
"""Characters kept of how the agent saw the moment in which it remembered something."""


class SwitchableTrace:
    """A trace sink whose goal can be set after the mind was wired: RAM, or a run's folder."""

    def __init__(self) -> None:
        self.sink: TraceSink = MemoryTrace()
        self.watchers: tuple[TraceSink, ...] = ()
        """Told of every record once the sink has it."""

    def write(self, record: TraceRecord) -> None:
        """Appends to the current sink."""
        self.sink.write(record)
        for watcher in self.watchers:
            watcher.write(record)

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Appends a record, made now only if somebody wants it now."""
        for sink in (self.sink, *self.watchers):
            if isinstance(sink, LazySink):
                sink.write_later(make)
            else:
                sink.write(make())

    def watch(self, watcher: TraceSink) -> Callable[[], None]:
        """Tells a further sink of every record from now on; calling the result ends it."""
        self.watchers = (*self.watchers, watcher)

        def leave() -> None:
            self.watchers = tuple(one for one in self.watchers if one is not watcher)

        return leave

    def flush(self) -> None:
        """Flushes the current sink."""
        self.sink.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class MindParts:
    """What a mind is made from."""

    name: str
    asker: StructuredModel
    tools: ToolRunner
    context: CoagContext[Any]
    memory: LongTermMemory
    procedures: ProceduralMemory
    modules: Sequence[CognitiveModule]
    action_seconds: float
    """Time that one action of a module may take."""
    constraints: Sequence[Constraint]
    settings: CycleSettings
    system_message: str | None
    seed: int
    handoffs: Handoffs
    live: Live
    streams: bool
    """True if pieces of an answer are shown while it is written."""
    answer_type: type[BaseModel] | None
    phases: Mapping[Phase, StructuredModel]
    """Models of their own for some phases."""
    prices: Mapping[str, Price]
    approvals: Approvals | None
    environment: Environment | None
    rewriting: bool = True
    """Whether the agent may change its standing rules."""
    remembering: bool = True
    """Whether it is offered actions to remember events and facts."""


@dataclass(frozen=True, slots=True)
class Mind:
    """The parts in working order."""

    context: CoagContext[Any]
    deps: Deps
    trace: SwitchableTrace
    window: ModelWindow
    seed: int = 0
    """Of the run's random source."""

    def fresh_random(self) -> bool:
        """Whether nothing was drawn from the random source yet."""
        return self.deps.random.getstate() == _begun_with(self.seed)

    def forget(self) -> None:
        """Has the detector and the modules forget what happened.

        Raises:
            StateError: A module could not; the others have.
        """
        self.deps.detector.load_state({})
        self.deps.modules.reset_state()


def build_mind(parts: MindParts, run_id: RunName) -> Mind:
    """Wires the parts: what each phase may call, and how what is written reaches the trace."""
    context, trace, clock = parts.context, SwitchableTrace(), parts.context.clock

    def note_written(written: Written) -> None:
        trace.write(written)
        trace.flush()

    def note_problem(name: str, problem: str) -> None:
        text = f"Module {name} was left out: {problem}."
        cycle = context.working_memory.cycle
        trace.write(Note(at=clock.now(), cycle=cycle, about="module", text=text))

    memory_actions = MemoryActions(
        parts.memory,
        parts.procedures,
        lambda: _situation(parts, run_id.value),
        narrowed=context.memory_for_now,
        on_written=note_written,
        rewriting=parts.rewriting and "rewriting" not in parts.settings.without,
        remembering=parts.remembering,
    )
    modules = _modules(parts, note_problem)
    face = _model_face(parts, trace)
    deps = Deps(
        ask=face,
        offer=face.offer,
        answer_type=parts.answer_type,
        actions=GuardedActions(
            parts.tools,
            [parts.handoffs, memory_actions, modules, context.reading_more()],
            respond=respond_spec(parts.answer_type),
            keep=context.originals.keep,
        ),
        reconcilers=(parts.tools.reconcile, context.reconcile),
        announce=parts.live.on_calls,
        procedures=parts.procedures,
        trace=trace,
        clock=clock,
        ids=context.ids,
        memory=parts.memory,
        approvals=parts.approvals,
        agent=parts.name,
        constraints=ConstraintSet(
            parts.constraints,
            [context, modules],
            seconds=parts.settings.rule_seconds,
            developer=lambda: _developer_texts(parts),
        ),
        modules=modules,
        settings=parts.settings,
        random=random.Random(parts.seed),
        run=lambda: run_id.value,
        system_message=parts.system_message or "",
        environment=parts.environment,
    )
    context.on_added = _taking_in(context, deps, run_id)
    return Mind(
        context, deps, trace, ModelWindow([parts.asker, *parts.phases.values()]), parts.seed
    )


def _modules(parts: MindParts, on_problem: Callable[[str, str], None]) -> ModuleSeam:
    return ModuleSeam(
        parts.modules,
        seconds=parts.settings.module_seconds,
        action_seconds=parts.action_seconds,
        on_problem=on_problem,
    )


def _taking_in(
    context: CoagContext[Any], deps: Deps, run_id: RunName
) -> Callable[[Sequence[Percept]], Awaitable[None]]:
    """Has messages perceived that were added to the context, with lines in the run's trace."""

    async def take_in(added: Sequence[Percept]) -> None:
        if run_id.value:
            await perceive(added, context, deps)
            deps.trace.flush()
            return
        for percept in added:  # the first snapshot of the run will show them
            context.perceive(percept)

    return take_in


def _developer_texts(parts: MindParts) -> list[str]:
    """What the developer wrote, and what the gate let into procedures."""
    procedures = (parts.procedures.get(name).text for name in parts.procedures.names())
    return [parts.system_message or "", *procedures]


def _situation(parts: MindParts, run: str) -> MemorySituation:
    """What a memory action is told of the moment."""
    memory = parts.context.working_memory
    metadata = parts.context.memory_metadata()
    retrieval, taint = memory.cognitive_state.retrieval, memory.tainted_by
    return MemorySituation(
        run=run,
        activity=memory.activity,
        cycle=memory.cycle,
        agent=parts.name,
        metadata=metadata,
        event=_event(memory, run, place_of(metadata)),
        recalled=() if retrieval is None else tuple(hit.record for hit in retrieval.records),
        untrusted=untrusted_texts(parts.context),
        sources=() if taint is None else taint.sources,
        records=() if taint is None else taint.records,
        said=memory.said_by_user(),
        apart=parts.context.keeps_people_apart,
    )


def _event(memory: WorkingMemory, run: str, place: str) -> Event:
    """What happens now: how the agent sees it, and what it did last."""
    reasoning = memory.cognitive_state.reasoning
    deed = next((deed for deed in reversed(memory.deeds) if not deed.internal), None)
    action = "" if deed is None else f"{deed.action} {json.dumps(deed.arguments)}"
    return Event(
        episode=f"{run}/{memory.activity}",
        situation="" if reasoning is None else one_line(reasoning.situation, _EVENT_TEXT),
        action=one_line(action, _EVENT_TEXT),
        place=place,
    )


def _model_face(parts: MindParts, trace: TraceSink) -> ModelFace:
    return ModelFace(
        asker=parts.asker,
        trace=trace,
        clock=parts.context.clock,
        ids=parts.context.ids,
        max_tokens=MAX_TOKENS,
        prices=parts.prices,
        phases=parts.phases,
        on_text=parts.live.on_text if parts.streams else None,
        system_role=parts.system_message is not None,
    )


@cache
def _begun_with(seed: int) -> object:
    return random.Random(seed).getstate()


@dataclass(slots=True)
class RunName:
    """The current run's id, known once the first turn starts."""

    value: str = ""
