"""One cycle of a run on one row, from as few of its records as that needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from coag.inspector.views import CycleRow, Rejected
from coag.schema import (
    PHASES,
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
)
from coag.tracing import RecordKind, TraceIndex

from ._clip import LINE, call_in_a_line, in_a_line, told_in_a_line
from ._timeline import Span

_OF_CYCLES = frozenset({RecordKind.OUTCOME, RecordKind.TURN_END})
_OF_TURNS = frozenset(
    {
        RecordKind.MODEL_CALL,
        RecordKind.INTENT,
        RecordKind.RECEIPT,
        RecordKind.NOTE,
        RecordKind.TURN_END,
    }
)
_PLAIN_STATUS = {ReceiptStatus.DONE: "done", ReceiptStatus.FAILED: "failed"}
_TURN_STATUS = {"error": "failed", "cancelled": "cancelled"}
"""Of a plain run's turn in which nothing was called, by the reason of its end; else it is done."""
_DEEDS = 8
"""Actions of one batch or turn that are named in a row."""


def row_of(index: TraceIndex, span: Span, *, plain: bool) -> CycleRow:
    """The row of a cycle, or of a plain run's turn.

    Raises:
        TraceError: The trace cannot be read.
    """
    kinds = _OF_TURNS if plain else _OF_CYCLES
    positions = range(span.first, span.end)
    wanted = [at for at in positions if index.kind(at) in kinds]
    records = [line.entry.body for line in index.read(wanted) if line.entry is not None]
    began, ended = index.times([span.first, span.end - 1])
    notes = sum(index.kind(at) is RecordKind.NOTE for at in positions)
    return row_from(records, cycle=span.cycle, began=began, ended=ended, notes=notes, plain=plain)


def row_from(
    records: Sequence[TraceRecord],
    *,
    cycle: int,
    began: datetime | None,
    ended: datetime | None,
    notes: int,
    plain: bool,
) -> CycleRow:
    """The row that records of a cycle, or of a plain run's turn, give.

    Args:
        records: Outcomes and ends of turns, of a plain run requests, intents and receipts too;
            others are passed over.
        cycle: Its number.
        began: When its first record was written; None where that is not known.
        ended: When its last one was.
        notes: How many notes it has.
        plain: True for a plain run.
    """
    ends = [record.reason for record in records if isinstance(record, TurnEnd)]
    seconds = (ended - began).total_seconds() if began is not None and ended is not None else None
    told = _of_turn(records) if plain else _of_cycle(outcomes_in(records))
    return CycleRow(
        number=cycle,
        at=began,
        seconds=seconds,
        notes=notes,
        ended=in_a_line(ends[-1]) if ends else "",
        **told,
    )


def outcomes_in(records: Iterable[TraceRecord]) -> dict[Phase, Outcome]:
    """The outcomes among records by phase; of a phase that was begun anew the last."""
    return {record.phase: record for record in records if record.record == "outcome"}


def deaths(
    candidates: Iterable[Candidate], evaluation: EvaluationOutcome | None
) -> tuple[Rejected, ...]:
    """The candidates that did not live, and what each died of."""
    by_id = {candidate.id: candidate for candidate in candidates}
    found: list[Rejected] = []
    for judged in evaluation.evaluations if evaluation else ():
        verdict = judged.died_of
        if verdict is None:
            continue
        candidate = by_id.get(judged.candidate_id)
        found.append(
            Rejected(
                action=in_a_line(judged.candidate_id) if candidate is None else named(candidate),
                constraint=in_a_line(verdict.constraint),
                reason=in_a_line(verdict.reason),
            )
        )
    return tuple(found)


def named(candidate: Candidate) -> str:
    """A candidate on one line, its arguments as the model wrote them."""
    arguments = in_a_line(candidate.raw_arguments)
    name = in_a_line(candidate.action)
    return name if arguments in ("", "{}") else f"{name} {arguments}"


def _of_cycle(outcomes: dict[Phase, Outcome]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "phases": tuple(phase for phase in PHASES if phase in outcomes),
        "usage": sum((each.usage for each in outcomes.values()), TokenUsage()),
    }
    evaluation, candidates = outcomes.get(Phase.EVALUATION), _candidates(outcomes)
    if isinstance(evaluation, EvaluationOutcome):
        told["rejected"] = deaths(candidates, evaluation)
    told["candidates"] = len(candidates)
    for outcome in outcomes.values():
        match outcome:
            case RetrievalOutcome():
                told["recalled"] = len(outcome.records)
            case ReasoningOutcome():
                told["situation"] = in_a_line(outcome.situation)
            case SelectionOutcome():
                told |= _selected(outcome, candidates)
            case ExecutionOutcome():
                told |= _executed(outcome)
            case _:
                pass
    return told


def _candidates(outcomes: dict[Phase, Outcome]) -> tuple[Candidate, ...]:
    proposal = outcomes.get(Phase.PROPOSAL)
    return proposal.candidates if isinstance(proposal, ProposalOutcome) else ()


def _selected(outcome: SelectionOutcome, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Until it is run, what was chosen stands for what was done."""
    chosen = [named(each) for each in candidates if each.id in outcome.chosen]
    return {
        "impasse": outcome.impasse,
        "decided_by": outcome.decided_by.value if outcome.decided_by else "",
        "action": _joined(chosen),
    }


def _executed(outcome: ExecutionOutcome) -> dict[str, Any]:
    done = outcome.executed
    return {
        "action": _joined([call_in_a_line(each.action, each.arguments) for each in done]),
        "internal": bool(done) and all(each.internal for each in done),
        "status": outcome.status.value,
        "result": _joined([told_in_a_line(each.result) for each in done if each.result])
        or told_in_a_line(outcome.result),
    }


def _joined(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _DEEDS} more" if len(texts) > _DEEDS else ""
    return in_a_line("; ".join(texts[:_DEEDS]) + more, 2 * LINE)


def _of_turn(records: Sequence[TraceRecord]) -> dict[str, Any]:
    """A plain run's turn: what it called, and what came back or was answered; else its notes."""
    intents = [record for record in records if isinstance(record, Intent)]
    receipts = [record for record in records if isinstance(record, Receipt)]
    answers = [record.response for record in records if isinstance(record, TurnEnd)]
    calls = [record.usage for record in records if isinstance(record, ModelCall)]
    noted = [record.text for record in records if isinstance(record, Note)]
    results = [receipt.content for receipt in receipts] if intents else answers or noted
    statuses = [_PLAIN_STATUS.get(receipt.status, "failed") for receipt in receipts]
    reasons = [record.reason for record in records if isinstance(record, TurnEnd)]
    ended = _TURN_STATUS.get(reasons[-1], "done") if reasons else ""
    return {
        "usage": sum(calls, TokenUsage()),
        "action": _joined([call_in_a_line(each.action, each.arguments) for each in intents]),
        "status": ("failed" if "failed" in statuses else "done") if statuses else ended,
        "result": _joined([told_in_a_line(result) for result in results]),
    }
