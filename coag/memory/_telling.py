"""What somebody wants remembered, and the record that is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coag.schema import Clock, Event, Fact, MemoryKind, Provenance, Record, Scalar, record_id
from coag.store import check_metadata

from ._lineage import lineage_from, lowest, trust_of
from ._policy import fit_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRemember:
    """All there is to say of something that is to be remembered."""

    kind: MemoryKind
    """Episodic for what happened, semantic for what holds."""
    text: str
    provenance: Provenance
    """Where it comes from."""
    type: str = "note"
    """The domain's own sort of record; a filter can ask for it."""
    metadata: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """Values that a filter can ask for."""
    sensed: bool = False
    """Whether the metadata were read off a perceptual state; see `Record.sensed`."""
    supersedes: str | None = None
    """Id of the record whose place this one takes."""
    event: Event | None = None
    """What happened, and its place in its episode."""
    fact: Fact | None = None
    """What is so, and of what."""
    derived_from: Sequence[str] = ()
    """Ids of the records from which it was concluded."""


def record_of(given: ToRemember, scope: str, clock: Clock) -> Record:
    """The record of something, as it is if nothing else is known.

    Raises:
        ValueError: If the kind is none, the text is empty, too long or shows nothing, or the
            metadata cannot be kept.
    """
    if given.kind not in tuple(MemoryKind):
        raise ValueError(
            f"kind must be MemoryKind.EPISODIC or MemoryKind.SEMANTIC, not {given.kind!r}."
        )
    text = fit_text(given.text)
    check_metadata(given.metadata)
    return Record(
        id=record_id(given.kind, scope, text),
        kind=given.kind,
        text=text,
        scope=scope,
        created_at=clock.now(),
        provenance=given.provenance,
        type=given.type,
        metadata=dict(given.metadata),
        sensed=given.sensed and bool(given.metadata),
        event=given.event,
        fact=given.fact,
    )


def derived(record: Record, names: Sequence[str], found: Sequence[Record]) -> Record:
    """The record as one that was concluded from others: trusted no more than the least of them.

    Args:
        record: The record by itself.
        names: Ids of what it was concluded from.
        found: Those of them that there are and that may be read.

    Raises:
        ValueError: If one of them is not there.
    """
    known = {source.id for source in found}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"Nothing can be derived from {unknown[0]!r}: scope {record.scope!r} has no such "
            "record, nor has any other that is read here."
        )
    trust = lowest(record.provenance.trust, map(trust_of, found))
    return record.model_copy(
        update={
            "provenance": record.provenance.model_copy(update={"trust": trust}),
            "lineage": lineage_from(record.id, found),
        }
    )
