"""Records: units of long-term memory."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from ._ids import content_id
from ._moment import Moment
from ._percepts import Trust
from ._value import Value

Scalar = str | int | float | bool
"""What metadata may hold: values that every store can filter on."""


class MemoryKind(StrEnum):
    """Which long-term memory a record belongs to (CoALA §4.1)."""

    EPISODIC = "episodic"
    """What happened: events, with their time and place."""
    SEMANTIC = "semantic"
    """What holds: facts and generalisations."""


class Provenance(Value):
    """Where a record comes from."""

    run: str
    activity: str
    cycle: int
    source: str
    """Who or what the content was learned from: the agent's name, a tool, a sender."""
    source_kind: str
    """`agent` for the agent's own conclusion, otherwise the kind of percept it rests on."""
    trust: Trust


class Record(Value):
    """One unit of long-term memory; superseded, never overwritten."""

    id: str
    kind: MemoryKind
    text: str = Field(min_length=1)
    scope: str
    """Whose memory it is; equal text in another scope is another record."""
    created_at: Moment
    provenance: Provenance
    type: str = "note"
    """The domain's own sort of record, e.g. `obstacle`; a filter can ask for it."""
    metadata: dict[str, Scalar] = Field(default_factory=dict)
    supersedes: str | None = None
    superseded_by: str | None = None


def record_id(kind: MemoryKind, scope: str, text: str) -> str:
    """The id of a record: the same text in the same scope is the same record."""
    return content_id(kind, scope, " ".join(text.split()))


class RecalledRecord(Value):
    """A record that a query brought back."""

    record: Record
    score: float = Field(ge=0.0, le=1.0)
    """Similarity to the query: cosine, clamped to 0..1."""
