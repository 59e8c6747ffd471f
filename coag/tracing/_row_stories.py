"""The rows of tables that put several records together; each holds one cycle's at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from coag.schema import (
    Candidate,
    Entry,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    ProposalOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    Written,
    parsed_arguments,
)

from ._columns import Row
from ._rows import as_json, in_cycles, usage_cells

_WAITING = 1_000
"""Intents that wait for their receipts at once; a whole trace has one at a time."""


def actions(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per intent, with its receipt; given when that is read, or known to be missing."""
    waiting: dict[str, Row] = {}
    for seq, cycle, record in in_cycles(entries):
        if isinstance(record, Intent):
            waiting[record.id] = _begun(seq, cycle, record)
            if len(waiting) > _WAITING:
                yield waiting.pop(next(iter(waiting)))
        elif isinstance(record, Receipt) and record.intent_id in waiting:
            yield waiting.pop(record.intent_id) | _received(seq, record)
    yield from waiting.values()


def _begun(seq: int, cycle: int, intent: Intent) -> Row:
    return {
        "seq": seq,
        "cycle": cycle,
        "at": intent.at,
        "id": intent.id,
        "candidate_id": intent.candidate_id,
        "action": intent.action,
        "arguments": as_json(intent.arguments),
        "internal": intent.internal,
        "status": None,
        "result": None,
        "failure": None,
        "seconds": None,
        "receipt_seq": None,
    }


def _received(seq: int, receipt: Receipt) -> Row:
    return {
        "status": str(receipt.status),
        "result": receipt.content,
        "failure": None if receipt.failure is None else str(receipt.failure),
        "seconds": receipt.seconds,
        "receipt_seq": seq,
    }


def candidates(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per candidate, given when its cycle is over."""
    now: _Considered | None = None
    for seq, cycle, record in in_cycles(entries):
        match record:
            case ProposalOutcome():
                yield from now.rows() if now else ()
                now = _Considered(seq, cycle, record)
            case EvaluationOutcome() if now:
                now.evaluations = {one.candidate_id: one for one in record.evaluations}
            case SelectionOutcome() if now:
                now.selection = record
            case _:
                pass
    yield from now.rows() if now else ()


class _Considered:
    """The candidates of one cycle and what was found out about them."""

    def __init__(self, seq: int, cycle: int, proposal: ProposalOutcome) -> None:
        self._seq = seq
        self._cycle = cycle
        self._proposal = proposal
        self.evaluations: dict[str, Evaluation] = {}
        self.selection: SelectionOutcome | None = None

    def rows(self) -> Iterator[Row]:
        """One row per candidate."""
        for candidate in self._proposal.candidates:
            yield {
                "seq": self._seq,
                "cycle": self._cycle,
                "id": candidate.id,
                "action": candidate.action,
                "arguments": _arguments(candidate, self.evaluations.get(candidate.id)),
                "proposed_by": self._proposal.proposed_by,
                "reason": candidate.reason,
                "expected_effect": candidate.expected_effect,
                **_evaluated(self.evaluations.get(candidate.id)),
                **self._selected(candidate.id),
            }

    def _selected(self, candidate: str) -> Row:
        selection = self.selection
        chosen = selection is not None and candidate in selection.chosen
        by = selection.decided_by if selection is not None and chosen else None
        return {"chosen": chosen, "decided_by": None if by is None else str(by)}


def _arguments(candidate: Candidate, evaluation: Evaluation | None) -> str:
    parsed = evaluation.arguments if evaluation is not None else candidate.arguments
    return as_json(parsed_arguments(candidate.raw_arguments) if parsed is None else parsed)


def _evaluated(evaluation: Evaluation | None) -> Row:
    dead = None if evaluation is None else evaluation.died_of
    verdicts = () if evaluation is None else evaluation.verdicts
    told = [
        {"constraint": v.constraint, "allowed": v.allowed, "reason": v.reason} for v in verdicts
    ]
    return {
        "allowed": None if evaluation is None else evaluation.survived,
        "died_of": None if dead is None else dead.constraint,
        "died_because": None if dead is None else dead.reason,
        "verdicts": as_json(told),
        "gain": None if evaluation is None else evaluation.gain,
        "score": None if evaluation is None else evaluation.score,
        "judged": "" if evaluation is None else evaluation.reason,
    }


def cycles(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per cycle that anything was done in."""
    now: _Cycle | None = None
    for _, cycle, record in in_cycles(entries):
        if cycle < 1 or record.record in ("snapshot", "turn_start", "turn_end", "percept"):
            continue  # they stand between cycles, and name the one before them
        if now is None or now.cycle != cycle:
            if now is not None:
                yield now.row()
            now = _Cycle(cycle, record.at)
        now.take(record)
    if now is not None:
        yield now.row()


class _Cycle:
    """What is counted of one cycle."""

    def __init__(self, cycle: int, at: datetime) -> None:
        self.cycle = cycle
        self._first = self._last = at
        self._counts = dict.fromkeys(("outcomes", "recalled", "candidates", "rejected"), 0)
        self._calls = self._written = 0
        self._usage = TokenUsage()
        self._selection: SelectionOutcome | None = None
        self._action: Row = {"action": None, "arguments": None, "status": None}

    def take(self, record: TraceRecord) -> None:
        """Takes in a record of this cycle."""
        self._last = max(self._last, record.at)
        match record:
            case ModelCall():
                self._calls += 1
                self._usage += record.usage
            case Written():
                self._written += 1
            case Intent() if self._action["action"] is None:
                arguments = as_json(record.arguments)
                self._action = {"action": record.action, "arguments": arguments, "status": None}
            case Receipt() if self._action["status"] is None:
                self._action["status"] = str(record.status)
            case _ if record.record == "outcome":
                self._outcome(record)
            case _:
                pass

    def _outcome(self, record: TraceRecord) -> None:
        self._counts["outcomes"] += 1
        match record:
            case RetrievalOutcome():
                self._counts["recalled"] += len(record.records)
            case ProposalOutcome():
                self._counts["candidates"] += len(record.candidates)
            case EvaluationOutcome():
                self._counts["rejected"] += sum(not one.survived for one in record.evaluations)
            case SelectionOutcome():
                self._selection = record
            case ExecutionOutcome():
                arguments = None if record.arguments is None else as_json(record.arguments)
                status = str(record.status)
                self._action = {"action": record.action, "arguments": arguments, "status": status}
            case _:
                pass

    def row(self) -> Row:
        """All of it."""
        selection = self._selection
        by = None if selection is None else selection.decided_by
        return {
            "cycle": self.cycle,
            "started_at": self._first,
            "seconds": (self._last - self._first).total_seconds(),
            **self._counts,
            "impasse": selection is not None and selection.impasse,
            "decided_by": None if by is None else str(by),
            **self._action,
            "calls": self._calls,
            **usage_cells(self._usage),
            "written": self._written,
        }
