"""The open spans of a run: run, turn, cycle, phase, one within the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from opentelemetry.context import Context
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from coag.schema import Phase

from . import _names as names
from ._meters import Meters
from ._subject import Subject
from ._values import Attributes, count, name, present


@dataclass(slots=True)
class Open:
    """A span that has begun."""

    span: Span
    start: int
    """When it began, in nanoseconds since 1970."""
    number: int = 0
    """Of a turn or a cycle: which one."""
    phase: Phase | None = None


@dataclass(slots=True, kw_only=True)
class Tree:
    """The spans that are open now, and how they are opened and closed.

    Nobody says when a cycle or a phase begins: it begins where the one before ended, `edge`.
    """

    tracer: Tracer
    meters: Meters | None
    subject: Subject
    surrounded: bool
    """True if a turn belongs to the span that its caller is in, where there is one."""
    now: int = 0
    """The latest time that was seen."""
    edge: int = 0
    """When what goes on now began."""
    run: Open | None = None
    turn: Open | None = None
    cycle: Open | None = None
    phase: Open | None = None
    actions: dict[str, Open] = field(default_factory=dict[str, Open])
    """External actions that were begun, by the id of their intent."""

    @property
    def inner(self) -> Open | None:
        """The innermost open span."""
        return self.phase or self.cycle or self.turn or self.run

    def see(self, at: int) -> None:
        """Notes that it is this late."""
        self.now = max(self.now, at)

    def child(
        self, label: str, parent: Open | None, start: int, attributes: Attributes, *, client: bool
    ) -> Open:
        """Begins a span within another."""
        context = Context() if parent is None else set_span_in_context(parent.span, Context())
        return self._begin(label, context, start, attributes, client=client)

    def open_turn(self, number: int) -> Open:
        """Begins a turn within the caller's span, or else within the run's."""
        self.close_turn()
        context = self._surroundings()
        if context is None:
            context = set_span_in_context(self._open_run().span, Context())
        attributes = present(
            {
                names.OPERATION: names.INVOKE_AGENT,
                names.PROVIDER: self.subject.provider,
                names.AGENT_NAME: name(self.subject.agent),
                names.CONVERSATION_ID: name(self.subject.run) or None,
                names.RUN_ID: name(self.subject.run) or None,
                names.TURN: count(number) or None,
            }
        )
        label = f"{names.INVOKE_AGENT} {name(self.subject.agent)}"
        self.turn = self._begin(label, context, self.now, attributes, client=False)
        self.turn.number, self.edge = number, self.now
        return self.turn

    def in_turn(self) -> Open:
        """The turn; one that a resumed run goes on with begins where it is taken up."""
        return self.turn or self.open_turn(0)

    def in_cycle(self, number: int) -> Open:
        """This cycle, begun if it is another than the one before."""
        if self.cycle is None or self.cycle.number != number:
            self.close_cycle()
            turn = self.in_turn()
            attributes: Attributes = {
                names.SPAN_KIND: names.CHAIN,
                names.CYCLE: count(number),
            }
            label = f"cycle {count(number)}"
            self.cycle = self.child(label, turn, self.edge, attributes, client=False)
            self.cycle.number = number
        return self.cycle

    def in_phase(self, number: int, phase: Phase) -> Open:
        """This phase of this cycle, begun if it is another than the one before."""
        cycle = self.in_cycle(number)
        if self.phase is None or self.phase.phase is not phase:
            self.close_phase()
            attributes: Attributes = {
                names.SPAN_KIND: names.CHAIN,
                names.CYCLE: count(number),
                names.PHASE: phase.value,
            }
            self.phase = self.child(phase.value, cycle, self.edge, attributes, client=False)
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
        """Ends the turn, if one is open, and all in it.

        Args:
            reason: How it ended; None where that is not known.
            error_type: Class of what broke it off.
        """
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
            failed(self.turn.span, name(error_type) if error_type else names.OTHER)
        self._end(self.turn, reason is not None, names.TURN_DURATION, attributes)
        self.turn = None

    def close(self) -> None:
        """Ends all that is open."""
        self.close_turn()
        if self.run is not None:
            self.end(self.run, finished=True)
            self.run = None

    def end(self, opened: Open, *, finished: bool, at: int | None = None) -> int:
        """Ends a span, not before it began; how long it was, in nanoseconds."""
        if not finished:
            opened.span.set_attribute(names.UNFINISHED, True)
        end = max(self.now if at is None else at, opened.start)
        opened.span.end(end)
        return end - opened.start

    def _end(self, opened: Open, finished: bool, metric: str, attributes: Attributes) -> None:
        took = self.end(opened, finished=finished)
        if finished and self.meters is not None:
            self.meters.took(metric, took, self.of_agent(attributes))

    def of_agent(self, attributes: Attributes) -> Attributes:
        """The attributes of a metric of ours, with whose it is."""
        return {names.AGENT_NAME: name(self.subject.agent), **attributes}

    def _open_run(self) -> Open:
        """The span of the run, where nothing else holds its turns together."""
        if self.run is None:
            attributes = present(
                {
                    names.SPAN_KIND: names.CHAIN,
                    names.AGENT_NAME: name(self.subject.agent),
                    names.CONVERSATION_ID: name(self.subject.run) or None,
                    names.RUN_ID: name(self.subject.run) or None,
                    names.RUN_KIND: self.subject.kind,
                    names.RUN_PARENT: self.subject.parent,
                }
            )
            label = f"run {name(self.subject.agent)}"
            self.run = self._begin(label, Context(), self.now, attributes, client=False)
        return self.run

    def _surroundings(self) -> Context | None:
        """Where the caller stands, if it is in a span of its own."""
        span = get_current_span() if self.surrounded else None
        if span is None or not span.get_span_context().is_valid:
            return None
        return set_span_in_context(span)

    def _begin(
        self, label: str, context: Context, start: int, attributes: Attributes, *, client: bool
    ) -> Open:
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        span = self.tracer.start_span(
            label, context=context, kind=kind, attributes=attributes, start_time=start
        )
        return Open(span, start)


def failed(span: Span, error_type: str) -> None:
    """Says on a span that what it stands for failed; with which words, is content."""
    span.set_attribute(names.ERROR_TYPE, error_type)
    span.set_status(Status(StatusCode.ERROR))
