"""What a trace consists of."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from ._effects import Intent, Receipt
from ._model_calls import ModelCall
from ._outcomes import Outcome
from ._percepts import Percept
from ._value import Value

TRACE_VERSION = 1
"""Version of the trace format; a reader refuses a higher one."""


class Snapshot(Value):
    """The state of everything beside working memory, at a cycle's start or a turn's end."""

    record: Literal["snapshot"] = "snapshot"
    at: datetime
    cycle: int
    working_memory: dict[str, Any]
    procedures: dict[str, Any] = Field(default_factory=dict)
    """`versions` in force by name and, where they have changed, the whole `state`."""
    modules: dict[str, Any] = Field(default_factory=dict)
    detector: dict[str, Any] = Field(default_factory=dict)
    ids: dict[str, int] = Field(default_factory=dict)
    """Counts of the id source, so that a resumed run goes on numbering."""
    random: Any = None
    """State of the run's random source."""


class Note(Value):
    """Something the run did that is neither percept nor outcome: a fallback, a repair, a cut."""

    record: Literal["note"] = "note"
    at: datetime
    cycle: int
    about: str
    """One word for the sort of note: `repair`, `fallback`, `module`, `memory`, `bound`, ..."""
    text: str
    details: dict[str, Any] = Field(default_factory=dict)


class TurnStart(Value):
    """A turn begins: messages have arrived, the agent is to act."""

    record: Literal["turn_start"] = "turn_start"
    at: datetime
    turn: int
    cycle: int


class TurnEnd(Value):
    """A turn ended, with the reason."""

    record: Literal["turn_end"] = "turn_end"
    at: datetime
    turn: int
    cycle: int
    reason: str
    """`respond`, the name of a bound, `cancelled`, or `error`."""
    response: str


class Written(Value):
    """A record of long-term memory or a version of a procedure was committed."""

    record: Literal["written"] = "written"
    at: datetime
    cycle: int
    what: Literal["record", "procedure"]
    id: str
    """The record's id, or `NAME@VERSION` of a procedure."""
    content: dict[str, Any]


TraceRecord = Annotated[
    Outcome
    | Percept
    | ModelCall
    | Intent
    | Receipt
    | Snapshot
    | Note
    | TurnStart
    | TurnEnd
    | Written,
    Field(discriminator="record"),
]
"""Everything that can stand in a trace, tagged by `record`."""


class Entry(Value):
    """One line of `trace.jsonl`."""

    v: int = TRACE_VERSION
    seq: int
    """Position in the trace, from 0, without gaps."""
    body: TraceRecord


ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)
"""Reads and writes one line of a trace."""
