"""Correcting a memory by hand: changing a record, and finding those that depend on it.

A text never changes: another text is another record in the old one's place, with the person who
corrects it as its origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from coag.schema import Fact, Provenance, Record, Scalar
from coag.store import RecordStore, check_metadata

from .facts import derived_levels, origins
from .long_term import LongTermMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRecords:
    """A record and those that it is linked to."""

    record: Record
    chain: tuple[Record, ...]
    """Those in its place before and since, oldest first, with the record itself."""
    sources: tuple[Record, ...]
    """What it was concluded from, as far as it is there."""
    lost: tuple[str, ...]
    """Ids of what it was concluded from and is gone."""
    derived: tuple[Record, ...]
    """What was concluded from it, directly."""
    contradicts: tuple[Record, ...]
    origins: tuple[Provenance, ...]
    """Where its text came from, the best trusted one first."""


async def related_to(store: RecordStore, record: Record) -> RelatedRecords:
    """A record and those that it is linked to; reads the whole store once."""
    lineage = record.lineage
    sources = await store.get(list(lineage.derived_from))
    there = {source.id for source in sources}
    scan = (one async for records in store.scan() for one in records)
    derived = [one async for one in scan if record.id in one.lineage.derived_from]
    return RelatedRecords(
        record=record,
        chain=await LongTermMemory(store, scope=record.scope).history(record.id),
        sources=tuple(sources),
        lost=tuple(name for name in lineage.derived_from if name not in there),
        derived=tuple(derived),
        contradicts=tuple(await store.get(list(lineage.contradicts))),
        origins=origins(record),
    )


async def dependents_of(
    store: RecordStore, name: str, *, scopes: Sequence[str] | None = None
) -> tuple[Record, ...]:
    """All that was concluded from a record, directly or not: what goes if it is revoked.

    The record is not part of the answer. Reads the records of these scopes once (None for
    everyone's), and keeps the links of what was concluded from something.
    """
    sources: dict[str, tuple[str, ...]] = {}
    async for records in store.scan(scopes=scopes):
        concluded = (record for record in records if record.lineage.derived_from)
        sources.update({record.id: record.lineage.derived_from for record in concluded})
    _, *levels = derived_levels([name], sources)
    return tuple(await store.get([one for level in levels for one in level]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is to be changed of a record; None leaves it as it is."""

    text: str | None = None
    """Another text: another record, which takes the place of this one."""
    type: str | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """Values to set; the others stay."""
    without: Sequence[str] = ()
    """Keys of metadata to take away."""
    importance: float | None = None
    """From 0 to 1."""
    value: str | None = None
    """The value of the fact."""
    until: datetime | None = None
    """When the fact ceased to hold."""
    holds: bool = False
    """Whether the fact is to have no end."""
    no_fact: bool = False
    """Whether the fact in parts goes; the text stays."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is to be changed."""
        return self == Correction()


def amended(record: Record, correction: Correction) -> Record:
    """The record with everything changed but its text.

    Raises:
        ValueError: If it has no fact to be changed, or a value cannot be kept.
    """
    without = set(correction.without)
    unknown = sorted(without - record.metadata.keys())
    if unknown:
        known = ", ".join(sorted(record.metadata)) or "none"
        raise ValueError(f"The record has no metadata {unknown[0]!r} to take away. Known: {known}.")
    check_metadata(correction.metadata)
    metadata = {k: v for k, v in record.metadata.items() if k not in without}
    if correction.type is not None and not correction.type.strip():
        raise ValueError("The type is empty; every record has one, `note` if nothing else.")
    dynamics = record.dynamics
    if correction.importance is not None:
        if not 0.0 <= correction.importance <= 1.0:
            raise ValueError(f"The importance must be from 0 to 1, not {correction.importance!r}.")
        dynamics = dynamics.model_copy(update={"importance": correction.importance})
    return record.model_copy(
        update={
            "type": record.type if correction.type is None else correction.type.strip(),
            "metadata": {**metadata, **correction.metadata},
            "dynamics": dynamics,
            "fact": _fact(record.fact, correction),
        }
    )


async def corrected(
    memory: LongTermMemory, record: Record, correction: Correction, *, by: Provenance
) -> Record:
    """Changes a record; gives it as it is stored, or the one that took its place.

    A new text is a new record, whose origin is the person alone. It is not derived from the old
    one's sources, so that revoking those does not take it back. The rest is overwritten and keeps
    its origins.

    Args:
        memory: Where the record is; it writes the record's scope.
        record: The record as it is stored.
        correction: What is to be changed.
        by: Who corrects it, e.g. `said_by_person("eve")`.

    Raises:
        ValueError: If something cannot be kept.
        RecordStoreError: If the record was superseded before, or the store refuses.
    """
    wanted = amended(record, correction)
    if correction.text is None or correction.text == record.text:
        return (await memory.store.update([wanted]))[0]
    result = await memory.remember(
        record.kind,
        correction.text,
        provenance=by,
        type=wanted.type,
        metadata=wanted.metadata,
        supersedes=record.id,
        event=wanted.event,
        fact=wanted.fact,
        scope=record.scope,
    )
    importance = {"importance": wanted.dynamics.importance}
    dynamics = result.record.dynamics.model_copy(update=importance)
    changes = {"type": wanted.type, "metadata": wanted.metadata, "dynamics": dynamics}
    return (await memory.store.update([result.record.model_copy(update=changes)]))[0]


def _fact(fact: Fact | None, correction: Correction) -> Fact | None:
    if correction.no_fact:
        return None
    changes: dict[str, object] = {}
    if correction.value is not None:
        changes["value"] = correction.value
    if correction.until is not None or correction.holds:
        changes["valid_until"] = None if correction.holds else correction.until
    if not changes:
        return fact
    if fact is None:
        raise ValueError(
            "The record holds no fact in parts (subject, attribute, value), so that it has neither "
            "a value nor an end to change. Change its text."
        )
    return Fact.model_validate({**fact.model_dump(), **changes})
