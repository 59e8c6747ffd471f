"""Constraints in a replay: the agent's own, and stand-ins for those that came from outside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from coag.context import WorkingMemory
from coag.cycle import NOT_OFFERED, OFFER, ConstraintSet
from coag.schema import (
    ActionSpec,
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    RetrievalOutcome,
    Verdict,
)

from ._sink import CheckingSink
from ._tape import Tape


class RecordedRule:
    """A constraint that nobody has any more: it says what it said.

    Args:
        name: Its name.
        tape: The tape.
    """

    def __init__(self, name: str, tape: Tape) -> None:
        self.name = name
        self._tape = tape

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """The recorded verdict."""
        if candidate.id == OFFER:
            return self._offered(candidate)
        for record in self._tape.in_cycle():
            if isinstance(record, EvaluationOutcome):
                return self._evaluated(candidate, record)
            if isinstance(record, ExecutionOutcome):
                return self._refused(candidate, record)
        return Verdict.allow()

    def _offered(self, candidate: Candidate) -> Verdict:
        """Before a call is offered, a verdict is only told where it forbids."""
        note = next(iter(self._tape.notes(NOT_OFFERED)), None)
        told: Any = None if note is None else note.details.get("forbidden")
        sought = {
            "action": candidate.action,
            "arguments": candidate.raw_arguments,
            "constraint": self.name,
        }
        for each in cast("list[Any]", told) if isinstance(told, list) else []:
            found = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
            if sought.items() <= found.items():
                return Verdict.forbid(str(found.get("reason")))
        return Verdict.allow()

    def _evaluated(self, candidate: Candidate, outcome: EvaluationOutcome) -> Verdict:
        verdicts = (
            verdict
            for evaluation in outcome.evaluations
            if evaluation.candidate_id == candidate.id
            for verdict in evaluation.verdicts
            if verdict.constraint == self.name
        )
        return next(verdicts, Verdict.allow())

    def _refused(self, candidate: Candidate, outcome: ExecutionOutcome) -> Verdict:
        """Right before an action runs, a verdict is only told where it forbids."""
        for done in outcome.executed:
            refused = done.status is ExecutionStatus.REFUSED and done.candidate_id == candidate.id
            _, found, reason = done.result.partition(f" {self.name}: ")
            if refused and found:
                return Verdict.forbid(reason)
        return Verdict.allow()


class TapeRules(ConstraintSet):
    """The agent's constraints; what was put in or out of force from outside is, too.

    Args:
        rules: The agent's own.
        sink: Knows what is next on the tape.
        from_outside: Whether constraints of the first cycle may have come from outside.
        left_out: Names of those that a fork goes on without.
    """

    def __init__(
        self,
        rules: ConstraintSet,
        sink: CheckingSink,
        *,
        from_outside: bool,
        left_out: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self._rules = rules
        self._gone = frozenset(left_out)
        for name in self._gone:
            rules.leave_out(name)
        self._sink = sink
        self._from_outside = from_outside

    def names(self) -> tuple[str, ...]:
        """Names of the agent's own constraints."""
        return self._rules.names()

    def pin(self) -> tuple[str, ...]:
        """Fixes what is in force, as it was in force then."""
        pinned = self._rules.pin()
        ahead = (r for r in self._sink.tape.in_cycle() if isinstance(r, RetrievalOutcome))
        was = next(ahead, None)
        adapts, self._from_outside = self._from_outside, True
        if was is None or not adapts or not (was.query or was.constraints):
            return pinned
        return self._adapted(pinned, was)

    def go_on(self, retrieval: RetrievalOutcome | None) -> None:
        """Fixes what is in force where a fork begins, in the middle of a cycle or before one."""
        if retrieval is None:
            self._rules.pin()
        else:
            self._adapted(self._rules.pin(), retrieval)

    def _adapted(self, pinned: tuple[str, ...], was: RetrievalOutcome) -> tuple[str, ...]:
        lacking = [name for name in was.constraints if name not in pinned]
        own = [name for name in self._rules.names() if name not in self._gone]
        gone = [name for name in own if name not in was.constraints]
        for name in lacking:
            self._rules.add(RecordedRule(name, self._sink.tape), name=name)
            self._sink.remark(
                f"The constraint {name} was put in force from outside before cycle {was.cycle}; "
                "its recorded verdicts stand for it."
            )
        for name in gone:
            self._rules.remove(name)
            self._sink.remark(
                f"The constraint {name} was taken out of force from outside before cycle "
                f"{was.cycle}."
            )
        return self._rules.pin() if lacking or gone else pinned

    @property
    def pinned(self) -> tuple[str, ...]:
        """Names of what is in force in this cycle."""
        return self._rules.pinned

    def judge(
        self,
        candidate: Candidate,
        state: Any,
        projection: Any | None,
        memory: WorkingMemory | None = None,
        spec: ActionSpec | None = None,
    ) -> tuple[Verdict, ...]:
        """Verdicts of what is in force in this cycle."""
        return self._rules.judge(candidate, state, projection, memory, spec)
