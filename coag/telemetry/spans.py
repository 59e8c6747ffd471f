"""`SpanBuilder`: spans and metrics of a run, from the records of its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from opentelemetry.context import Context
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    get_current_span,
    get_tracer_provider,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    Receipt,
    ReceiptStatus,
    SelectionOutcome,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
)

from . import names
from .attributes import (
    Attributes,
    Content,
    Decisions,
    Meters,
    Subject,
    count,
    duration,
    later,
    model_name,
    name,
    nanoseconds,
    present,
)


@dataclass(slots=True)
class OpenSpan:
    """A span that has begun."""

    span: Span
    start: int
    """When it began, in nanoseconds since 1970."""
    number: int = 0
    """Of a turn or a cycle: which one."""
    phase: Phase | None = None


@dataclass(slots=True, kw_only=True)
class SpanTree:
    """The open spans of a run: run, turn, cycle, phase, one within the other.

    No record says when a cycle or a phase begins: it begins where the one before ended, `edge`.
    """

    tracer: Tracer
    meters: Meters | None
    subject: Subject
    in_caller_span: bool
    """True if a turn belongs to the span that its caller is in, where there is one."""
    now: int = 0
    """The latest time that was seen."""
    edge: int = 0
    """When the current phase or cycle began."""
    run: OpenSpan | None = None
    turn: OpenSpan | None = None
    cycle: OpenSpan | None = None
    phase: OpenSpan | None = None
    actions: dict[str, OpenSpan] = field(default_factory=dict[str, OpenSpan])
    """External actions that were begun, by the id of their intent."""

    @property
    def inner(self) -> OpenSpan | None:
        """The innermost open span."""
        return self.phase or self.cycle or self.turn or self.run

    def see(self, at: int) -> None:
        """Notes that it is this late."""
        self.now = max(self.now, at)

    def begin(
        self,
        label: str,
        parent: OpenSpan | Context,
        start: int,
        attributes: Mapping[str, AttributeValue | None],
        *,
        client: bool = False,
    ) -> OpenSpan:
        """Begins a span within another, or within a context; attributes of None are left out."""
        if isinstance(parent, OpenSpan):
            parent = set_span_in_context(parent.span, Context())
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        span = self.tracer.start_span(
            label, context=parent, kind=kind, attributes=present(attributes), start_time=start
        )
        return OpenSpan(span, start)

    def open_turn(self, number: int) -> OpenSpan:
        """Begins a turn within the caller's span, or else within the run's."""
        self.close_turn()
        agent, run = name(self.subject.agent), name(self.subject.run) or None
        caller = get_current_span() if self.in_caller_span else None
        if caller is not None and caller.get_span_context().is_valid:
            parent: OpenSpan | Context = set_span_in_context(caller)
        elif self.run is not None:
            parent = self.run
        else:
            run_attributes = {
                names.SPAN_KIND: names.CHAIN,
                names.AGENT_NAME: agent,
                names.CONVERSATION_ID: run,
                names.RUN_ID: run,
                names.RUN_KIND: self.subject.kind,
                names.RUN_PARENT: self.subject.parent,
            }
            parent = self.run = self.begin(f"run {agent}", Context(), self.now, run_attributes)
        attributes = {
            names.OPERATION: names.INVOKE_AGENT,
            names.PROVIDER: self.subject.provider,
            names.AGENT_NAME: agent,
            names.CONVERSATION_ID: run,
            names.RUN_ID: run,
            names.TURN: count(number) or None,
        }
        self.turn = self.begin(f"{names.INVOKE_AGENT} {agent}", parent, self.now, attributes)
        self.turn.number, self.edge = number, self.now
        return self.turn

    def in_turn(self) -> OpenSpan:
        """The open turn; that of a resumed run begins where it is resumed."""
        return self.turn or self.open_turn(0)

    def in_cycle(self, number: int) -> OpenSpan:
        """This cycle, begun if it is another than the one before."""
        if self.cycle is None or self.cycle.number != number:
            self.close_cycle()
            attributes = {names.SPAN_KIND: names.CHAIN, names.CYCLE: count(number)}
            self.cycle = self.begin(f"cycle {count(number)}", self.in_turn(), self.edge, attributes)
            self.cycle.number = number
        return self.cycle

    def in_phase(self, number: int, phase: Phase) -> OpenSpan:
        """This phase of this cycle, begun if it is another than the one before."""
        cycle = self.in_cycle(number)
        if self.phase is None or self.phase.phase is not phase:
            self.close_phase()
            attributes = {
                names.SPAN_KIND: names.CHAIN,
                names.CYCLE: count(number),
                names.PHASE: phase.value,
            }
            self.phase = self.begin(phase.value, cycle, self.edge, attributes)
            self.phase.phase = phase
        return self.phase

    def close_phase(self, *, finished: bool = False) -> None:
        """Ends the phase, if one is open; `finished` if its outcome was committed."""
        if self.phase is None or self.phase.phase is None:
            return
        attributes: Attributes = {names.PHASE: self.phase.phase.value}
        self._end(self.phase, finished, names.PHASE_DURATION, attributes)
        self.phase, self.edge = None, self.now

    def close_cycle(self, *, finished: bool = False) -> None:
        """Ends the cycle, if one is open, and the phase in it."""
        self.close_phase()
        if self.cycle is not None:
            self._end(self.cycle, finished, names.CYCLE_DURATION, {})
            self.cycle, self.edge = None, self.now

    def close_turn(self, reason: str | None = None, error_type: str | None = None) -> None:
        """Ends the turn, if one is open, and all in it."""
        for action in self.actions.values():
            self.end(action, finished=False)
        self.actions.clear()
        self.close_cycle()
        if self.turn is None:
            return
        attributes: Attributes = {}
        if reason is not None:
            attributes[names.TURN_REASON] = name(reason)
            self.turn.span.set_attribute(names.TURN_REASON, name(reason))
        if reason == "error":
            mark_failed(self.turn.span, name(error_type) if error_type else names.OTHER)
        self._end(self.turn, reason is not None, names.TURN_DURATION, attributes)
        self.turn = None

    def close(self) -> None:
        """Ends all that is open."""
        self.close_turn()
        if self.run is not None:
            self.end(self.run, finished=True)
            self.run = None

    def end(self, opened: OpenSpan, *, finished: bool, at: int | None = None) -> int:
        """Ends a span, not before it began; how long it was, in nanoseconds."""
        if not finished:
            opened.span.set_attribute(names.UNFINISHED, True)
        end = max(self.now if at is None else at, opened.start)
        opened.span.end(end)
        return end - opened.start

    def _end(self, opened: OpenSpan, finished: bool, metric: str, attributes: Attributes) -> None:
        took = self.end(opened, finished=finished)
        if finished and self.meters is not None:
            self.meters.took(metric, took, self.of_agent(attributes))

    def of_agent(self, attributes: Attributes) -> Attributes:
        """The attributes of a metric of ours, with whose it is."""
        return {names.AGENT_NAME: name(self.subject.agent), **attributes}


def mark_failed(span: Span, error_type: str) -> None:
    """Marks a span as failed; the error's text is content and not sent here."""
    span.set_attribute(names.ERROR_TYPE, error_type)
    span.set_status(Status(StatusCode.ERROR))


class SpanBuilder:
    """Makes spans, and where asked metrics, from the records of one agent's runs."""

    def __init__(
        self,
        subject: Subject,
        *,
        tracer_provider: TracerProvider | None,
        meters: Meters | None,
        content: Content | None,
        in_caller_span: bool,
    ) -> None:
        tracer = (tracer_provider or get_tracer_provider()).get_tracer("coag", version("coag"))
        self._tree = SpanTree(
            tracer=tracer, meters=meters, subject=subject, in_caller_span=in_caller_span
        )
        self._meters = meters
        self._content = content
        self._decisions = Decisions(content)

    def begin_run(self, run: str) -> None:
        """The records that follow are of this run; what is open of another one is ended."""
        if run != self._tree.subject.run:
            self._tree.close()
            self._tree.subject = replace(self._tree.subject, run=run)

    def close(self) -> None:
        """Ends all spans that are open."""
        self._tree.close()

    def add(self, record: TraceRecord) -> None:
        """Adds one record."""
        self._tree.see(nanoseconds(record.at))
        match record:
            case TurnStart():
                self._tree.open_turn(record.turn)
            case TurnEnd():
                self._end_turn(record)
            case ModelCall():
                self._model_call(record)
            case Intent():
                self._intent(record)
            case Receipt():
                self._receipt(record)
            case Percept() | Note() | Written():
                self._happened(record)
            case _:
                if record.record == "outcome":
                    self._outcome(record)

    def _end_turn(self, end: TurnEnd) -> None:
        turn = self._tree.turn
        if turn is not None and self._content is not None:
            turn.span.set_attribute(names.OUTPUT_MESSAGES, self._content.response(end.response))
        self._tree.close_turn(end.reason, end.error_type)

    def _outcome(self, outcome: Outcome) -> None:
        tree = self._tree
        span = tree.in_phase(outcome.cycle, outcome.phase).span
        span.set_attributes(self._decisions.attributes(outcome))
        at = nanoseconds(outcome.at)
        for event in self._decisions.events(outcome):
            span.add_event(event.name, event.attributes, at)
        self._count(outcome)
        tree.close_phase(finished=True)
        if isinstance(outcome, ExecutionOutcome):
            tree.close_cycle(finished=True)

    def _count(self, outcome: Outcome) -> None:
        """Counts what was vetoed, and impasses."""
        if self._meters is None:
            return
        match outcome:
            case EvaluationOutcome():
                for verdict in (one.rejected_by for one in outcome.evaluations):
                    if verdict is not None:
                        by: Attributes = {names.CONSTRAINT: name(verdict.constraint)}
                        self._meters.add(names.VETOES, self._tree.of_agent(by))
            case SelectionOutcome(impasse=True):
                self._meters.add(names.IMPASSES, self._tree.of_agent({}))
            case _:
                return

    def _model_call(self, call: ModelCall) -> None:
        tree, start = self._tree, nanoseconds(call.at)
        deliberates = call.phase is not None and call.cycle > 0
        parent = tree.in_phase(call.cycle, call.phase) if deliberates and call.phase else None
        parent = parent or tree.cycle or tree.in_turn()
        shared = present(
            {
                names.OPERATION: names.CHAT,
                names.PROVIDER: tree.subject.provider,
                names.REQUEST_MODEL: name(model_name(call.model)),
                names.ERROR_TYPE: error_type(call),
            }
        )
        label = f"{names.CHAT} {name(model_name(call.model))}"
        opened = tree.begin(label, parent, start, {**shared, **_of_call(call)}, client=True)
        if self._content is not None:
            opened.span.set_attribute(names.INPUT_MESSAGES, self._content.sent(call))
            opened.span.set_attribute(names.OUTPUT_MESSAGES, self._content.answered(call))
        if call.error is not None:
            mark_failed(opened.span, error_type(call) or names.OTHER)
        end = later(start, duration(call.seconds))
        tree.see(end)
        took = tree.end(opened, finished=True, at=end)
        if self._meters is not None:
            self._meters.took(names.OPERATION_DURATION, took, shared)
            self._meters.used(call, shared)

    def _intent(self, intent: Intent) -> None:
        tree = self._tree
        decided = intent.candidate_id is not None and intent.cycle > 0
        parent = tree.in_phase(intent.cycle, Phase.EXECUTION) if decided else tree.in_turn()
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: name(intent.action),
            names.TOOL_TYPE: "function",
            names.TOOL_CALL_ID: name(intent.id),
            names.AGENT_NAME: name(tree.subject.agent),
            names.ACTION_INTERNAL: intent.internal or None,
            names.TOOL_ARGUMENTS: self._content and self._content.json(intent.arguments),
        }
        label = f"{names.EXECUTE_TOOL} {name(intent.action)}"
        start = nanoseconds(intent.at)
        opened = tree.begin(label, parent, start, attributes)
        before = tree.actions.pop(intent.id, None)
        if before is not None:
            tree.end(before, finished=False)
        tree.actions[intent.id] = opened

    def _receipt(self, receipt: Receipt) -> None:
        opened = self._tree.actions.pop(receipt.intent_id, None)
        if opened is None:
            return
        status: Attributes = {names.ACTION_STATUS: receipt.status.value}
        opened.span.set_attributes(status)
        if self._content is not None:
            opened.span.set_attribute(names.TOOL_RESULT, self._content.text(receipt.content))
        if receipt.status is not ReceiptStatus.DONE:
            mark_failed(opened.span, receipt.status.value)
        took = self._tree.end(opened, finished=True, at=nanoseconds(receipt.at))
        if self._meters is not None:
            self._meters.took(names.ACTION_DURATION, took, self._tree.of_agent(status))

    def _happened(self, record: Percept | Note | Written) -> None:
        """Adds an event to the open span; between turns there is none."""
        opened = self._tree.inner
        if isinstance(record, Note) and self._meters is not None:
            about: Attributes = {names.NOTE_ABOUT: name(record.about)}
            self._meters.add(names.NOTES, self._tree.of_agent(about))
        if opened is None:
            return
        label, attributes, text = _event_of(record)
        if self._content is not None:
            attributes[names.CONTENT] = self._content.text(text)
        opened.span.add_event(label, attributes, nanoseconds(record.at))


def error_type(call: ModelCall) -> str | None:
    """The class of a call's error; None where there was none."""
    if call.error is None:
        return None
    if call.given is not None and call.given.fault:
        return name(call.given.fault)
    if call.error_type:
        return name(call.error_type)
    return "unusable_answer" if call.raw or call.tool_calls else names.OTHER


def _of_call(call: ModelCall) -> Mapping[str, AttributeValue | None]:
    """Attributes of the span of a call that its metrics do not have."""
    usage = call.usage
    return {
        names.INPUT_TOKENS: count(usage.prompt_tokens),
        names.OUTPUT_TOKENS: count(usage.completion_tokens),
        names.CACHED_TOKENS: count(usage.cached_tokens) or None,
        names.USAGE_ESTIMATED: call.usage_estimated or None,
        names.COST: usage.cost or None,
        names.FINISH_REASONS: [name(call.finish_reason)] if call.finish_reason else None,
        names.OUTPUT_TYPE: "json" if call.expected else "text",
        names.CALL_ID: name(call.id),
        names.CALL_ATTEMPT: count(call.attempt),
        names.CALL_RUNG: call.rung.value,
        names.CALL_EXPECTED: name(call.expected) if call.expected else None,
        names.CALL_REPAIRED: call.repaired or None,
    }


def _event_of(record: Percept | Note | Written) -> tuple[str, Attributes, str]:
    """Name, attributes and text of an event."""
    match record:
        case Percept():
            attributes = present(
                {
                    names.PERCEPT_KIND: record.kind.value,
                    names.PERCEPT_TRUST: record.trust.value,
                    names.PERCEPT_ERROR: record.is_error or None,
                }
            )
            return names.PERCEPT_EVENT, attributes, record.content
        case Note():
            return names.NOTE_EVENT, {names.NOTE_ABOUT: name(record.about)}, record.text
        case Written():
            written: Attributes = {
                names.WRITTEN_WHAT: record.what,
                names.WRITTEN_ID: name(record.id),
            }
            return names.WRITTEN_EVENT, written, ""
