"""From the records of a trace to spans and metrics, one record at a time."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider, get_tracer_provider

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

from . import _names as names
from ._content import Content
from ._decisions import Decisions
from ._meters import Meters
from ._subject import Subject, model_name
from ._tree import Tree, failed
from ._values import Attributes, count, duration, later, name, nanoseconds, present


class Teller:
    """Makes spans, and where asked metrics, from the records of one agent's runs.

    Args:
        subject: Whose runs they are.
        tracer_provider: Where spans go; None for the global one.
        meters: What is measured with; None to measure nothing.
        content: Makes texts fit to be sent; None to send no texts.
        surrounded: Whether turns belong to the span that their caller is in.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        tracer_provider: TracerProvider | None,
        meters: Meters | None,
        content: Content | None,
        surrounded: bool,
    ) -> None:
        tracer = (tracer_provider or get_tracer_provider()).get_tracer("coag", version("coag"))
        self._tree = Tree(tracer=tracer, meters=meters, subject=subject, surrounded=surrounded)
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

    def take(self, record: TraceRecord) -> None:
        """Tells of one record."""
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
            turn.span.set_attribute(names.OUTPUT_MESSAGES, self._content.said(end.response))
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
                for verdict in (one.died_of for one in outcome.evaluations):
                    if verdict is not None:
                        told: Attributes = {names.CONSTRAINT: name(verdict.constraint)}
                        self._meters.add(names.VETOES, self._tree.of_agent(told))
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
        opened = tree.child(label, parent, start, shared | _of_call(call), client=True)
        if self._content is not None:
            opened.span.set_attribute(names.INPUT_MESSAGES, self._content.sent(call))
            opened.span.set_attribute(names.OUTPUT_MESSAGES, self._content.answered(call))
        if call.error is not None:
            failed(opened.span, error_type(call) or names.OTHER)
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
        attributes = present(
            {
                names.OPERATION: names.EXECUTE_TOOL,
                names.TOOL_NAME: name(intent.action),
                names.TOOL_TYPE: "function",
                names.TOOL_CALL_ID: name(intent.id),
                names.AGENT_NAME: name(tree.subject.agent),
                names.ACTION_INTERNAL: True if intent.internal else None,
                names.TOOL_ARGUMENTS: self._content and self._content.json(intent.arguments),
            }
        )
        label = f"{names.EXECUTE_TOOL} {name(intent.action)}"
        start = nanoseconds(intent.at)
        opened = tree.child(label, parent, start, attributes, client=False)
        before = tree.actions.pop(intent.id, None)
        if before is not None:
            tree.end(before, finished=False)
        tree.actions[intent.id] = opened

    def _receipt(self, receipt: Receipt) -> None:
        opened = self._tree.actions.pop(receipt.intent_id, None)
        if opened is None:
            return
        told: Attributes = {names.ACTION_STATUS: receipt.status.value}
        opened.span.set_attributes(told)
        if self._content is not None:
            opened.span.set_attribute(names.TOOL_RESULT, self._content.text(receipt.content))
        if receipt.status is not ReceiptStatus.DONE:
            failed(opened.span, receipt.status.value)
        took = self._tree.end(opened, finished=True, at=nanoseconds(receipt.at))
        if self._meters is not None:
            self._meters.took(names.ACTION_DURATION, took, self._tree.of_agent(told))

    def _happened(self, record: Percept | Note | Written) -> None:
        """An event on the span that is open; between turns there is none to tell it on."""
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
    """Of what sort an error was; None where there was none."""
    if call.error is None:
        return None
    if call.given is not None and call.given.fault:
        return name(call.given.fault)
    if call.error_type:
        return name(call.error_type)
    return "unusable_answer" if call.raw or call.tool_calls else names.OTHER


def _of_call(call: ModelCall) -> Attributes:
    """What only the span of a call tells, not its metrics."""
    usage = call.usage
    return present(
        {
            names.INPUT_TOKENS: count(usage.prompt_tokens),
            names.OUTPUT_TOKENS: count(usage.completion_tokens),
            names.CACHED_TOKENS: count(usage.cached_tokens) or None,
            names.USAGE_ESTIMATED: True if call.usage_estimated else None,
            names.COST: usage.cost or None,
            names.FINISH_REASONS: [name(call.finish_reason)] if call.finish_reason else None,
            names.OUTPUT_TYPE: "json" if call.expected else "text",
            names.CALL_ID: name(call.id),
            names.CALL_ATTEMPT: count(call.attempt),
            names.CALL_RUNG: call.rung.value,
            names.CALL_EXPECTED: name(call.expected) if call.expected else None,
            names.CALL_REPAIRED: True if call.repaired else None,
        }
    )


def _event_of(record: Percept | Note | Written) -> tuple[str, Attributes, str]:
    """Name, attributes and words of an event."""
    match record:
        case Percept():
            told: Attributes = {
                names.PERCEPT_KIND: record.kind.value,
                names.PERCEPT_TRUST: record.trust.value,
            }
            told |= {names.PERCEPT_ERROR: True} if record.is_error else {}
            return names.PERCEPT_EVENT, told, record.content
        case Note():
            return names.NOTE_EVENT, {names.NOTE_ABOUT: name(record.about)}, record.text
        case Written():
            told = {names.WRITTEN_WHAT: record.what, names.WRITTEN_ID: name(record.id)}
            return names.WRITTEN_EVENT, told, ""


def meters_for(provider: MeterProvider | None) -> Meters:
    """The instruments of this version of the package; None for the global provider."""
    return Meters(provider, version("coag"))
