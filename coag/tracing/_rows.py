"""The rows of tables whose records stand alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from coag.schema import (
    Entry,
    ModelCall,
    Note,
    Percept,
    RetrievalOutcome,
    TokenUsage,
    TraceRecord,
    Written,
)

from ._columns import Row
from ._reader import cycle_of

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
