"""The tables that a trace can be read as: their columns, with types and units."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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
