"""A trace as tables: each column with its type, its meaning and where its value comes from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from coag.schema import (
    Entry,
    EvaluationOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    ProposalOutcome,
    RecalledRecord,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    TraceRecord,
    Written,
    parsed_arguments,
)

from .reader import cycle_of
from .summary import CandidateSummary, CycleSummary, summarize_cycle

Cell = str | int | float | bool | datetime | None
"""What a column can hold; each holds one of these types in every row, or None where it may."""
Row = dict[str, Cell]
"""One row of a table: a plain record with the table's columns, in order."""
CellType = type[str | int | float | bool | datetime]
_MOST = 2**63 - 1
"""The largest integer of a column, as in tables of other programs."""
_WAITING = 1_000
"""Intents that wait for their receipts at once; a whole trace has one at a time."""


class TableName(StrEnum):
    """The tables there are."""

    CYCLES = "cycles"
    PHASES = "phases"
    CALLS = "calls"
    CANDIDATES = "candidates"
    RECALLED = "recalled"
    PERCEPTS = "percepts"
    ACTIONS = "actions"
    WRITTEN = "written"
    NOTES = "notes"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: CellType
    """The type of its values in every row. Integers fit in 64 bits: one that is larger in the
    trace, which no run of ours writes, is given as 2**63 - 1, and a smaller one as -(2**63 - 1).
    """
    optional: bool
    """Whether a value may be None."""
    means: str
    """What it holds, with its unit."""
    value: Callable[[Any], Cell] = field(repr=False, compare=False)
    """Gets it from what a row is made of."""


def rows_of(name: TableName, entries: Iterable[Entry]) -> Iterator[Row]:
    """The rows of a table, one by one."""
    columns = COLUMNS[name]
    for source in _SOURCES[name](_in_cycles(entries)):
        yield {column.name: _in_bounds(column.value(source)) for column in columns}


def _in_bounds(value: Cell) -> Cell:
    """A value with integers in 64 bits; what lies beyond is the largest, or smallest."""
    return max(-_MOST, min(_MOST, value)) if type(value) is int else value


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---- What rows are made of; tables that put records together hold one cycle's at a time ----


class _Placed(NamedTuple):
    """A record with its place."""

    seq: int
    cycle: int
    body: Any


class _Phase(NamedTuple):
    seq: int
    cycle: int
    body: Outcome
    seconds: float | None


class _Recalled(NamedTuple):
    seq: int
    cycle: int
    query: str
    rank: int
    hit: RecalledRecord


class _Considered(NamedTuple):
    seq: int
    cycle: int
    proposal: ProposalOutcome
    summary: CandidateSummary
    selection: SelectionOutcome | None


class _Action(NamedTuple):
    seq: int
    cycle: int
    body: Intent
    receipt: Receipt | None = None
    receipt_seq: int | None = None


def _in_cycles(entries: Iterable[Entry]) -> Iterator[_Placed]:
    """The records with their cycles; a percept belongs to the one before it."""
    cycle = 0
    for entry in entries:
        named = cycle_of(entry.body)
        cycle = cycle if named is None else named
        yield _Placed(entry.seq, cycle, entry.body)


def _of_kind(kind: type[TraceRecord]) -> Callable[[Iterator[_Placed]], Iterator[_Placed]]:
    return lambda records: (one for one in records if isinstance(one.body, kind))


def _phases(records: Iterator[_Placed]) -> Iterator[_Phase]:
    before: tuple[int, datetime] | None = None
    for seq, cycle, body in records:
        if body.record == "outcome":
            known = before is not None and before[0] == cycle
            seconds = (body.at - before[1]).total_seconds() if before and known else None
            yield _Phase(seq, cycle, body, seconds)
            before = cycle, body.at


def _recalled(records: Iterator[_Placed]) -> Iterator[_Recalled]:
    for seq, cycle, body in records:
        if isinstance(body, RetrievalOutcome):
            for rank, hit in enumerate(body.records, 1):
                yield _Recalled(seq, cycle, body.query, rank, hit)


def _actions(records: Iterator[_Placed]) -> Iterator[_Action]:
    """One per intent; given when its receipt is read, or known to be missing."""
    waiting: dict[str, _Action] = {}
    for seq, cycle, body in records:
        if isinstance(body, Intent):
            waiting[body.id] = _Action(seq, cycle, body)
            if len(waiting) > _WAITING:
                yield waiting.pop(next(iter(waiting)))
        elif isinstance(body, Receipt) and body.intent_id in waiting:
            yield waiting.pop(body.intent_id)._replace(receipt=body, receipt_seq=seq)
    yield from waiting.values()


def _candidates(records: Iterator[_Placed]) -> Iterator[_Considered]:
    """One per candidate, given when its cycle is over."""
    place: tuple[int, int] | None = None
    outcomes: list[TraceRecord] = []
    for seq, cycle, body in records:
        if isinstance(body, ProposalOutcome):
            yield from _considered(place, outcomes)
            place, outcomes = (seq, cycle), [body]
        elif isinstance(body, EvaluationOutcome | SelectionOutcome):
            outcomes.append(body)
    yield from _considered(place, outcomes)


def _considered(
    place: tuple[int, int] | None, outcomes: list[TraceRecord]
) -> Iterator[_Considered]:
    summary = summarize_cycle(outcomes)
    if place is not None and summary.proposal is not None:
        for one in summary.candidates:
            yield _Considered(*place, summary.proposal, one, summary.selection)


def _cycles(records: Iterator[_Placed]) -> Iterator[CycleSummary]:
    """One per cycle that anything was done in."""
    number, group = 0, list[TraceRecord]()
    for _, cycle, body in records:
        if cycle < 1 or body.record in ("snapshot", "turn_start", "turn_end", "percept"):
            continue  # they are between cycles, and name the one before them
        if group and cycle != number:
            yield summarize_cycle(group, cycle=number)
            group = []
        number = cycle
        group.append(body)
    if group:
        yield summarize_cycle(group, cycle=number)


def _action_of(one: CycleSummary) -> tuple[str | None, dict[str, Any] | None, str | None]:
    """The first action of a cycle, its arguments, and how Execution ended."""
    first = one.actions[0] if one.actions else None
    status = one.execution.status.value if one.execution else (first and first.status)
    return (first.action, first.arguments, status) if first else (None, None, status)


def _arguments(one: _Considered) -> str:
    candidate, evaluation = one.summary.candidate, one.summary.evaluation
    parsed = candidate.arguments if evaluation is None else evaluation.arguments
    return _as_json(parsed_arguments(candidate.raw_arguments) if parsed is None else parsed)


def _verdicts(one: _Considered) -> str:
    verdicts = one.summary.evaluation.verdicts if one.summary.evaluation else ()
    return _as_json(
        [{"constraint": v.constraint, "allowed": v.allowed, "reason": v.reason} for v in verdicts]
    )


def _decided_by(one: _Considered) -> str | None:
    decided_by = one.selection.decided_by if one.selection and one.summary.chosen else None
    return None if decided_by is None else str(decided_by)


_SOURCES: dict[TableName, Callable[[Iterator[_Placed]], Iterator[Any]]] = {
    TableName.CYCLES: _cycles,
    TableName.PHASES: _phases,
    TableName.CALLS: _of_kind(ModelCall),
    TableName.CANDIDATES: _candidates,
    TableName.RECALLED: _recalled,
    TableName.PERCEPTS: _of_kind(Percept),
    TableName.ACTIONS: _actions,
    TableName.WRITTEN: _of_kind(Written),
    TableName.NOTES: _of_kind(Note),
}


# ---- The columns ----


def _column(
    name: str, kind: CellType, means: str, value: str | Callable[[Any], Cell], *, may: bool = False
) -> Column:
    """A column whose value is a path of attributes, with what is None on the way, or a function."""
    get = _at(value) if isinstance(value, str) else value
    return Column(name, kind, may, means, get)


def _at(path: str) -> Callable[[Any], Cell]:
    names = path.split(".")

    def get(row: Any) -> Cell:
        for name in names:
            row = None if row is None else getattr(row, name)
        return str(row) if isinstance(row, StrEnum) else row

    return get


_must, _may = _column, partial(_column, may=True)


# fmt: off
def _usage(prefix: str) -> tuple[Column, ...]:
    return (
        _must("prompt_tokens", int, "tokens sent", f"{prefix}.prompt_tokens"),
        _must("completion_tokens", int, "tokens answered", f"{prefix}.completion_tokens"),
        _must("cached_tokens", int, "those of the tokens sent that came from the server's cache",
              f"{prefix}.cached_tokens"),
        _must("cost", float, "in the currency of the prices the agent was given; 0 without prices",
              f"{prefix}.cost"),
    )


_SEQ = _must("seq", int, "number of the record in the trace, from 0", "seq")
_CYCLE = _must("cycle", int, "the cycle, from 1; of a plain run the turn; 0 before the first",
               "cycle")
_AT = _must("at", datetime, "when it was recorded, UTC", "body.at")

COLUMNS: dict[TableName, tuple[Column, ...]] = {
    TableName.CYCLES: (
        _CYCLE,
        _must("started_at", datetime, "when its first record was written, UTC", "began"),
        _must("seconds", float, "from its first to its last record, seconds", "seconds"),
        _must("outcomes", int, "phases that came to an outcome; 0 for a plain run",
              lambda r: len(r.outcomes)),
        _must("recalled", int, "records that were recalled", "recalled"),
        _must("candidates", int, "candidates that were proposed", lambda r: len(r.candidates)),
        _must("rejected", int, "candidates that did not survive Evaluation",
              lambda r: len(r.rejected)),
        _must("impasse", bool, "whether no candidate survived", "impasse"),
        _may("decided_by", str, "model, rank or only_survivor; None if nothing was decided",
             "decided_by"),
        _may("action", str, "the action that was executed or begun, of several the first",
             lambda r: _action_of(r)[0]),
        _may("arguments", str, "its arguments, JSON",
             lambda r: None if _action_of(r)[1] is None else _as_json(_action_of(r)[1])),
        _may("status", str, "how it ended: none, done, failed, refused, unknown, cancelled",
             lambda r: _action_of(r)[2]),
        _must("calls", int, "requests to a model", lambda r: len(r.calls)),
        *_usage("call_usage"),
        _must("written", int, "records and versions of procedures that were written",
              lambda r: len(r.written)),
    ),
    TableName.PHASES: (
        _SEQ,
        _CYCLE,
        _must("phase", str, "the phase", "body.phase"),
        _AT,
        _may("seconds", float, "since the outcome before it in its cycle, seconds; None for none",
             "seconds"),
        _must("calls", int, "requests to a model that its usage counts", "body.usage.calls"),
        *_usage("body.usage"),
    ),
    TableName.CALLS: (
        _SEQ,
        _CYCLE,
        _may("phase", str, "the phase that asked; None for a plain agent", "body.phase"),
        _AT,
        _must("id", str, "id of the call", "body.id"),
        _must("model", str, "the model as it was named", "body.model"),
        _may("expected", str, "name of the answer's type, where one was asked for",
             "body.expected"),
        _must("rung", str, "how the answer's form was asked for", "body.rung"),
        _must("attempt", int, "1 for the first request, 2 for the one that repeats it",
              "body.attempt"),
        _must("messages", int, "messages that were sent", lambda r: len(r.body.messages)),
        _must("answer", str, "the answer as it came; empty if none came", "body.raw"),
        _must("tool_calls", int, "tool calls in the answer", lambda r: len(r.body.tool_calls)),
        *_usage("body.usage"),
        _must("usage_estimated", bool, "whether the tokens are estimated from the texts",
              "body.usage_estimated"),
        _may("finish_reason", str, "why the model stopped, where it tells", "body.finish_reason"),
        _must("repaired", bool, "whether the answer was no valid JSON and could be repaired",
              "body.repaired"),
        _may("error", str, "why the answer could not be used", "body.error"),
        _must("seconds", float, "how long the request took, seconds", "body.seconds"),
    ),
    TableName.CANDIDATES: (
        _SEQ,
        _CYCLE,
        _must("id", str, "id of the candidate", "summary.candidate.id"),
        _must("action", str, "name of the action", "summary.candidate.action"),
        _must("arguments", str, "its arguments, JSON", _arguments),
        _must("proposed_by", str, "model, native, grounded, draft or nobody",
              "proposal.proposed_by"),
        _must("reason", str, "why it was proposed", "summary.candidate.reason"),
        _must("expected_effect", str, "what it was expected to bring",
              "summary.candidate.expected_effect"),
        _may("allowed", bool, "whether it survived Evaluation; None if it was not evaluated",
             "summary.survived"),
        _may("died_of", str, "the check or constraint that forbade it; None for a survivor",
             "summary.rejected_by.constraint"),
        _may("died_because", str, "what that said", "summary.rejected_by.reason"),
        _must("verdicts", str, "all that was said of it: JSON list of constraint, allowed, reason",
              _verdicts),
        _may("gain", float, "the predicted gain by the domain's heuristic, -1 to 1; None without",
             "summary.evaluation.gain"),
        _may("score", float, "the model's judgement, 0 to 1; None if it gave none",
             "summary.evaluation.score"),
        _must("judged", str, "the model's judgement in words",
              lambda r: r.summary.evaluation.reason if r.summary.evaluation else ""),
        _must("chosen", bool, "whether it was selected", "summary.chosen"),
        _may("decided_by", str, "of the chosen: model, rank or only_survivor", _decided_by),
    ),
    TableName.RECALLED: (
        _SEQ,
        _CYCLE,
        _must("rank", int, "place among what was recalled in this cycle, from 1", "rank"),
        _must("id", str, "id of the record", "hit.record.id"),
        _must("kind", str, "episodic or semantic", "hit.record.kind"),
        _must("type", str, "the domain's own sort of record", "hit.record.type"),
        _must("text", str, "what it says", "hit.record.text"),
        _must("score", float, "how well it answers the query: the sum of its parts (`why`)",
              "hit.score"),
        _must("query", str, "what memory was asked", "query"),
        _must("created_at", datetime, "when the record was made, UTC", "hit.record.created_at"),
        _must("run", str, "the run it was learned in", "hit.record.provenance.run"),
        _must("source", str, "who or what it was learned from", "hit.record.provenance.source"),
        _must("source_kind", str, "agent, or the kind of percept it is based on",
              "hit.record.provenance.source_kind"),
        _must("trust", str, "developer, user or untrusted", "hit.record.provenance.trust"),
    ),
    TableName.PERCEPTS: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("id", str, "id of the percept", "body.id"),
        _must("kind", str, "message, tool_return, property_change, signal, impasse, ...",
              "body.kind"),
        _must("source", str, "the sender, tool or sensor it comes from", "body.source"),
        _must("trust", str, "developer, user or untrusted", "body.trust"),
        _must("content", str, "the text as the model may see it", "body.content"),
        _may("caused_by", str, "id of the intent that brought it about", "body.caused_by"),
        _must("is_error", bool, "whether a tool reported a failure", "body.is_error"),
        _may("failure", str, "deterministic or transient, of a failure", "body.failure"),
        _must("sets_goal", bool, "whether it opened a new goal", "body.sets_goal"),
        _may("state_patch", str, "its change of the perceptual state: JSON merge patch",
             lambda r: None if r.body.state_patch is None else _as_json(r.body.state_patch)),
        _may("hook_problem", str, "why the domain's hook could not read it", "body.hook_problem"),
    ),
    TableName.ACTIONS: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("id", str, "id of the intent", "body.id"),
        _may("candidate_id", str, "the selected candidate; None for a plain agent",
             "body.candidate_id"),
        _must("action", str, "name of the action", "body.action"),
        _must("arguments", str, "its arguments, JSON", lambda r: _as_json(r.body.arguments)),
        _must("internal", bool, "whether it is a module's own action", "body.internal"),
        _may("status", str, "done, failed, unknown or cancelled; None: there is no receipt",
             "receipt.status"),
        _may("result", str, "what it returned", "receipt.content"),
        _may("failure", str, "deterministic or transient, of a failure", "receipt.failure"),
        _may("seconds", float, "how long it took, seconds", "receipt.seconds"),
        _may("receipt_seq", int, "number of the receipt's record", "receipt_seq"),
    ),
    TableName.WRITTEN: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("what", str, "record or procedure", "body.what"),
        _must("id", str, "the record's id, or NAME@VERSION of a procedure", "body.id"),
        _must("content", str, "what was written, JSON", lambda r: _as_json(r.body.content)),
    ),
    TableName.NOTES: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("about", str, "one word for the sort of note", "body.about"),
        _must("text", str, "what happened", "body.text"),
        _must("details", str, "more about it, JSON", lambda r: _as_json(r.body.details)),
    ),
}
"""Every table's columns, in order."""
# fmt: on
