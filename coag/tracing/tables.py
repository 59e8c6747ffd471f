"""A trace as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from coag.schema import (
    Candidate,
    Entry,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Percept,
    ProposalOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    Written,
    parsed_arguments,
)

from .reader import cycle_of

# ---- The tables that a trace can be read as: their columns, with types and units ----


Cell = str | int | float | bool | datetime | None
"""What a column can hold; each holds one of these types in every row, or None where it may."""
Row = dict[str, Cell]
"""One row of a table: a plain record with the table's columns, in order."""


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
    type: type[str | int | float | bool | datetime]
    """The type of its values in every row. Integers fit in 64 bits: one that is larger in the
    trace, which no run of ours writes, is given as 2**63 - 1, and a smaller one as -(2**63 - 1).
    """
    optional: bool
    """Whether a value may be None."""
    means: str
    """What it holds, with its unit."""


def _must(name: str, kind: type[str | int | float | bool | datetime], means: str) -> Column:
    return Column(name, kind, False, means)


def _may(name: str, kind: type[str | int | float | bool | datetime], means: str) -> Column:
    return Column(name, kind, True, means)


_SEQ = _must("seq", int, "number of the record in the trace, from 0")
_CYCLE = _must("cycle", int, "the cycle, from 1; of a plain run the turn; 0 before the first")
_AT = _must("at", datetime, "when it was recorded, UTC")
_USAGE = (
    _must("prompt_tokens", int, "tokens sent"),
    _must("completion_tokens", int, "tokens answered"),
    _must("cached_tokens", int, "those of the tokens sent that came from the server's cache"),
    _must("cost", float, "in the currency of the prices the agent was given; 0 without prices"),
)
_ACTION = (
    _must("action", str, "name of the action"),
    _must("arguments", str, "its arguments, JSON"),
)

COLUMNS: dict[TableName, tuple[Column, ...]] = {
    TableName.CYCLES: (
        _CYCLE,
        _must("started_at", datetime, "when its first record was written, UTC"),
        _must("seconds", float, "from its first to its last record, seconds"),
        _must("outcomes", int, "phases that came to an outcome; 0 for a plain run"),
        _must("recalled", int, "records that were recalled"),
        _must("candidates", int, "candidates that were proposed"),
        _must("rejected", int, "candidates that did not survive Evaluation"),
        _must("impasse", bool, "whether no candidate survived"),
        _may("decided_by", str, "model, rank or only_survivor; None if nothing was decided"),
        _may("action", str, "the action that was executed or begun, of several the first"),
        _may("arguments", str, "its arguments, JSON"),
        _may("status", str, "how it ended: none, done, failed, refused, unknown, cancelled"),
        _must("calls", int, "requests to a model"),
        *_USAGE,
        _must("written", int, "records and versions of procedures that were written"),
    ),
    TableName.PHASES: (
        _SEQ,
        _CYCLE,
        _must("phase", str, "the phase"),
        _AT,
        _may("seconds", float, "since the outcome before it in its cycle, seconds; None for none"),
        _must("calls", int, "requests to a model that its usage counts"),
        *_USAGE,
    ),
    TableName.CALLS: (
        _SEQ,
        _CYCLE,
        _may("phase", str, "the phase that asked; None for a plain agent"),
        _AT,
        _must("id", str, "id of the call"),
        _must("model", str, "the model as it was named"),
        _may("expected", str, "name of the answer's type, where one was asked for"),
        _must("rung", str, "how the answer's form was asked for"),
        _must("attempt", int, "1 for the first request, 2 for the one that repeats it"),
        _must("messages", int, "messages that were sent"),
        _must("answer", str, "the answer as it came; empty if none came"),
        _must("tool_calls", int, "tool calls in the answer"),
        *_USAGE,
        _must("usage_estimated", bool, "whether the tokens are estimated from the texts"),
        _may("finish_reason", str, "why the model stopped, where it tells"),
        _must("repaired", bool, "whether the answer was no valid JSON and could be repaired"),
        _may("error", str, "why the answer could not be used"),
        _must("seconds", float, "how long the request took, seconds"),
    ),
    TableName.CANDIDATES: (
        _SEQ,
        _CYCLE,
        _must("id", str, "id of the candidate"),
        *_ACTION,
        _must("proposed_by", str, "model, native, grounded, draft or nobody"),
        _must("reason", str, "why it was proposed"),
        _must("expected_effect", str, "what it was expected to bring"),
        _may("allowed", bool, "whether it survived Evaluation; None if it was not evaluated"),
        _may("died_of", str, "the check or constraint that forbade it; None for a survivor"),
        _may("died_because", str, "what that said"),
        _must("verdicts", str, "all that was said of it: JSON list of constraint, allowed, reason"),
        _may("gain", float, "the predicted gain by the domain's heuristic, -1 to 1; None without"),
        _may("score", float, "the model's judgement, 0 to 1; None if it gave none"),
        _must("judged", str, "the model's judgement in words"),
        _must("chosen", bool, "whether it was selected"),
        _may("decided_by", str, "of the chosen: model, rank or only_survivor"),
    ),
    TableName.RECALLED: (
        _SEQ,
        _CYCLE,
        _must("rank", int, "place among what was recalled in this cycle, from 1"),
        _must("id", str, "id of the record"),
        _must("kind", str, "episodic or semantic"),
        _must("type", str, "the domain's own sort of record"),
        _must("text", str, "what it says"),
        _must("score", float, "similarity to the query: cosine, 0 to 1; it has no other part"),
        _must("query", str, "what memory was asked"),
        _must("created_at", datetime, "when the record was made, UTC"),
        _must("run", str, "the run it was learned in"),
        _must("source", str, "who or what it was learned from"),
        _must("source_kind", str, "agent, or the kind of percept it rests on"),
        _must("trust", str, "developer, user or untrusted"),
    ),
    TableName.PERCEPTS: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("id", str, "id of the percept"),
        _must("kind", str, "message, tool_return, property_change, signal, impasse, ..."),
        _must("source", str, "the sender, tool or sensor it comes from"),
        _must("trust", str, "developer, user or untrusted"),
        _must("content", str, "the text as the model may see it"),
        _may("caused_by", str, "id of the intent that brought it about"),
        _must("is_error", bool, "whether a tool reported a failure"),
        _may("failure", str, "deterministic or transient, of a failure"),
        _must("sets_goal", bool, "whether it opened a new goal"),
        _may("state_patch", str, "its change of the perceptual state: JSON merge patch"),
        _may("hook_problem", str, "why the domain's hook could not read it"),
    ),
    TableName.ACTIONS: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("id", str, "id of the intent"),
        _may("candidate_id", str, "the selected candidate; None for a plain agent"),
        *_ACTION,
        _must("internal", bool, "whether it is a module's own action"),
        _may("status", str, "done, failed, unknown or cancelled; None: there is no receipt"),
        _may("result", str, "what it returned"),
        _may("failure", str, "deterministic or transient, of a failure"),
        _may("seconds", float, "how long it took, seconds"),
        _may("receipt_seq", int, "number of the receipt's record"),
    ),
    TableName.WRITTEN: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("what", str, "record or procedure"),
        _must("id", str, "the record's id, or NAME@VERSION of a procedure"),
        _must("content", str, "what was written, JSON"),
    ),
    TableName.NOTES: (
        _SEQ,
        _CYCLE,
        _AT,
        _must("about", str, "one word for the sort of note"),
        _must("text", str, "what happened"),
        _must("details", str, "more about it, JSON"),
    ),
}
"""Every table's columns, in order."""


# ---- The rows of tables whose records stand alone ----


Numbered = Iterator[tuple[int, int, TraceRecord]]
"""Number, cycle and record."""


_MOST = 2**63 - 1
"""The largest integer of a column, as in tables of other programs."""


def in_bounds(row: Row) -> Row:
    """The row with its integers in 64 bits; what lies beyond is the largest, or smallest."""
    return {
        name: max(-_MOST, min(_MOST, value)) if type(value) is int else value
        for name, value in row.items()
    }


def as_json(value: object) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def in_cycles(entries: Iterable[Entry]) -> Numbered:
    """The records with their cycles; a percept belongs to the one before it."""
    cycle = 0
    for entry in entries:
        named = cycle_of(entry.body)
        cycle = cycle if named is None else named
        yield entry.seq, cycle, entry.body


def usage_cells(usage: TokenUsage) -> Row:
    """Tokens and money, as columns."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": usage.cost,
    }


def phases(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per outcome."""
    before: tuple[int, datetime] | None = None
    for seq, cycle, record in in_cycles(entries):
        if record.record != "outcome":
            continue
        same = before is not None and before[0] == cycle
        yield {
            "seq": seq,
            "cycle": cycle,
            "phase": str(record.phase),
            "at": record.at,
            "seconds": (record.at - before[1]).total_seconds() if before and same else None,
            "calls": record.usage.calls,
            **usage_cells(record.usage),
        }
        before = cycle, record.at


def calls(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per request to a model."""
    for seq, cycle, call in in_cycles(entries):
        if not isinstance(call, ModelCall):
            continue
        yield {
            "seq": seq,
            "cycle": cycle,
            "phase": None if call.phase is None else str(call.phase),
            "at": call.at,
            "id": call.id,
            "model": call.model,
            "expected": call.expected,
            "rung": str(call.rung),
            "attempt": call.attempt,
            "messages": len(call.messages),
            "answer": call.raw,
            "tool_calls": len(call.tool_calls),
            **usage_cells(call.usage),
            "usage_estimated": call.usage_estimated,
            "finish_reason": call.finish_reason,
            "repaired": call.repaired,
            "error": call.error,
            "seconds": call.seconds,
        }


def recalled(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per record that a query brought back."""
    for seq, cycle, outcome in in_cycles(entries):
        if not isinstance(outcome, RetrievalOutcome):
            continue
        for rank, found in enumerate(outcome.records, 1):
            record, origin = found.record, found.record.provenance
            yield {
                "seq": seq,
                "cycle": cycle,
                "rank": rank,
                "id": record.id,
                "kind": str(record.kind),
                "type": record.type,
                "text": record.text,
                "score": found.score,
                "query": outcome.query,
                "created_at": record.created_at,
                "run": origin.run,
                "source": origin.source,
                "source_kind": origin.source_kind,
                "trust": str(origin.trust),
            }


def percepts(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per percept."""
    for seq, cycle, percept in in_cycles(entries):
        if not isinstance(percept, Percept):
            continue
        patch = percept.state_patch
        yield {
            "seq": seq,
            "cycle": cycle,
            "at": percept.at,
            "id": percept.id,
            "kind": str(percept.kind),
            "source": percept.source,
            "trust": str(percept.trust),
            "content": percept.content,
            "caused_by": percept.caused_by,
            "is_error": percept.is_error,
            "failure": None if percept.failure is None else str(percept.failure),
            "sets_goal": percept.sets_goal,
            "state_patch": None if patch is None else as_json(patch),
            "hook_problem": percept.hook_problem,
        }


def written(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per record or version that was committed."""
    for seq, cycle, record in in_cycles(entries):
        if isinstance(record, Written):
            yield {
                "seq": seq,
                "cycle": cycle,
                "at": record.at,
                "what": record.what,
                "id": record.id,
                "content": as_json(record.content),
            }


def notes(entries: Iterable[Entry]) -> Iterator[Row]:
    """One row per note."""
    for seq, cycle, note in in_cycles(entries):
        if isinstance(note, Note):
            yield {
                "seq": seq,
                "cycle": cycle,
                "at": note.at,
                "about": note.about,
                "text": note.text,
                "details": as_json(note.details),
            }


# ---- The rows of tables that put several records together; each holds one cycle's at a time ----


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
