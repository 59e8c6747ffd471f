"""What a trace consists of."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, cast

from pydantic import Field, TypeAdapter

from coag._util.secrets import SecretRedactor

from .actions import ActionSpec, Intent, Receipt
from .model_calls import ModelCall
from .outcomes import Outcome
from .percepts import Percept
from .values import Moment, Value

TRACE_VERSION = 2
"""Version of the trace format; a reader refuses a higher one."""


class SnapshotReason(StrEnum):
    """Why a snapshot was written."""

    OPENED = "opened"
    """The run begins with this state."""
    CYCLE = "cycle"
    """A cycle begins. What was recorded before leads to exactly this state."""
    LOADED = "loaded"
    """A saved state took the place of the one before; no percept or outcome led to it."""
    FORKED = "forked"
    """The run begins at the state of another one, which its `run.json` names."""


class Snapshot(Value):
    """The whole state of a mind, from which its run can be resumed, replayed and forked."""

    record: Literal["snapshot"] = "snapshot"
    at: Moment
    cycle: int
    reason: SnapshotReason = SnapshotReason.CYCLE
    working_memory: dict[str, Any]
    procedures: dict[str, Any] = Field(default_factory=dict)
    """`versions` in force by name and, where they have changed, the whole `state`."""
    modules: dict[str, Any] = Field(default_factory=dict)
    detector: dict[str, Any] = Field(default_factory=dict)
    ids: dict[str, int] = Field(default_factory=dict)
    """Counts of the id source, so that a resumed run continues the numbers."""
    random: Any = None
    """State of the run's random source, where it has changed since the snapshot before."""
    environment: Any = None
    """What the agent's environment gave as its state (JSON), where it gives one and it has
    changed since the snapshot before; the agent itself never sees it."""


class ActionsListed(Value):
    """The external actions there are: when they are first listed, and when that changes."""

    record: Literal["actions"] = "actions"
    at: Moment
    cycle: int
    specs: tuple[ActionSpec, ...]


RESUMED = "resume"
"""The subject of the note with which another process continues a run."""


class Note(Value):
    """Something the run did that is neither percept nor outcome: a fallback, a repair, a cut."""

    record: Literal["note"] = "note"
    at: Moment
    cycle: int
    about: str
    """One word for the sort of note: `repair`, `fallback`, `module`, `memory`, `bound`, ..."""
    text: str
    details: dict[str, Any] = Field(default_factory=dict)


class TurnStart(Value):
    """A turn begins: messages have arrived, the agent is to act."""

    record: Literal["turn_start"] = "turn_start"
    at: Moment
    turn: int
    cycle: int


class TurnEnd(Value):
    """A turn ended, with the reason."""

    record: Literal["turn_end"] = "turn_end"
    at: Moment
    turn: int
    cycle: int
    reason: str
    """`respond`, the name of a bound, `cancelled`, or `error`."""
    response: str
    error_type: str | None = None
    """For `error`: the class of what was raised."""


class Written(Value):
    """A record of long-term memory or a version of a procedure was committed, or taken back."""

    record: Literal["written"] = "written"
    at: Moment
    cycle: int
    what: Literal["record", "procedure", "revoked"]
    id: str
    """The record's id, or `NAME@VERSION` of a procedure."""
    content: dict[str, Any]
    """The record or the version; with `revoked`, all that was revoked with it and why."""
    decision: str = ""
    """What the write policy said of it; empty where it was not asked."""


TraceRecord = Annotated[
    Outcome
    | Percept
    | ModelCall
    | Intent
    | Receipt
    | Snapshot
    | ActionsListed
    | Note
    | TurnStart
    | TurnEnd
    | Written,
    Field(discriminator="record"),
]
"""Every kind of record in a trace, tagged by `record`."""


class Entry(Value):
    """One line of `trace.jsonl`."""

    v: int = TRACE_VERSION
    seq: int
    """Position in the trace, from 0, without gaps."""
    hash: str = ""
    """SHA-256 (hex) over the hash before, the number and the body as written, so that the lines
    are a chain; empty in RAM, and in files of version 1."""
    body: TraceRecord


ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)
"""Reads and writes one line of a trace."""


class Redactor(SecretRedactor):
    """Takes secrets out of what is logged, and leaves the words of the trace's own format.

    A field name, tag or enumeration is never replaced where it is the whole text, even if someone's
    password is one of them: the trace would become unreadable.
    """

    def clean_text(self, text: str) -> str:
        """A plain text without the secrets in it."""
        return text if text in _format_words() else super().clean_text(text)


@cache
def _format_words() -> frozenset[str]:
    return frozenset(_words(ENTRY.json_schema()))


def _words(schema: Any) -> Iterable[str]:
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _words(item)
    if not isinstance(schema, dict):
        return
    node = cast("dict[str, Any]", schema)
    yield from node.get("properties", {})
    yield from (word for word in node.get("enum", ()) if isinstance(word, str))
    if isinstance(node.get("const"), str):
        yield node["const"]
    for item in node.values():
        yield from _words(item)
