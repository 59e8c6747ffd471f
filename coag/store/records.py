"""What stores keep of a record, and which changes of stored records are allowed: pure rules."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from coag._util.text import ellipsis
from coag.errors import RecordStoreError
from coag.schema import Record, Scalar, folded

_T = TypeVar("_T")
Scalars = str | float | bool
Fields = Mapping[str, Scalars]
"""The flat fields of a record: what filters can ask for, the same in every store."""

_OF_ORIGIN = ("source", "source_kind", "trust", "run", "activity", "cycle")
FIXED_FIELDS = ("type", "scope", *_OF_ORIGIN, "created_at", "short_id", "subject", "attribute")
"""Names that a filter reads from the record itself; every other name is a metadata key."""
CURRENT = "current"
"""Field that is true while no other record superseded this one."""
METADATA_PREFIX = "m."
"""Prefix of the names of metadata in flat fields."""
SHORT_ID_LENGTH = 8
"""Length of the short form of an id that models are shown."""
_LARGEST_EXACT = 2**53
_IDENTITY = ("kind", "scope", "text")
"""Fields that an update must leave as they are."""


def short_id(record_id: str) -> str:
    """The short form of a record's id, as models are shown it."""
    return record_id[:SHORT_ID_LENGTH]


def exact(value: object, *, what: str) -> Scalars:
    """The value as stores compare it: numbers as floats, so that 1 and 1.0 are equal."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(value, what=what)
    if isinstance(value, datetime):
        return value.timestamp()
    if not isinstance(value, int | float):
        raise ValueError(f"{what} must be text, a number or a truth value, not {value!r}.")
    if abs(value) > _LARGEST_EXACT or math.isnan(value):
        raise ValueError(f"{what} is {value!r}; give numbers beyond 2**53 and NaN as text.")
    return float(value)


def flat_fields(record: Record) -> dict[str, Scalars]:
    """What filters see of a record."""
    for name, text in _texts(record):
        _encodable(text, what=name)
    origin = record.provenance
    fixed: dict[str, object] = {
        "type": record.type,
        "scope": record.scope,
        **{name: getattr(origin, name) for name in _OF_ORIGIN},
        "trust": origin.trust.value,
        "created_at": record.created_at,
        "short_id": short_id(record.id),
        CURRENT: record.superseded_by is None,
    }
    if record.fact is not None:
        fixed["subject"] = folded(record.fact.subject)
        fixed["attribute"] = folded(record.fact.attribute)
    flat = {name: exact(value, what=f"Field {name!r}") for name, value in fixed.items()}
    for key, value in record.metadata.items():
        _encodable(key, what="A metadata key")
        flat[METADATA_PREFIX + key] = exact(value, what=f"Metadata {key!r}")
    return flat


def check_metadata(metadata: Mapping[str, Scalar]) -> None:
    """Refuses metadata that a store could not keep, or that a filter could not reach.

    Raises:
        ValueError: Naming the key.
    """
    for key, value in metadata.items():
        if key in FIXED_FIELDS:
            raise ValueError(
                f"Metadata key {key!r} is the name of a field of every record; "
                f"choose another than: {', '.join(FIXED_FIELDS)}."
            )
        exact(value, what=f"Metadata {key!r}")


@dataclass(frozen=True)
class StoredRow:
    """A record as stores write it: made once, written to every index."""

    record: Record
    flat: Fields
    """See `flat_fields`."""

    @cached_property
    def rest(self) -> str:
        """Everything of it but its text, as JSON; a store in RAM needs none."""
        return self.record.model_dump_json(exclude={"text"})


def row_of(record: Record) -> StoredRow:
    """A record as it is to be written."""
    return StoredRow(record, flat_fields(record))


def from_json(text: str, rest: str) -> Record:
    """The record of a text and the rest of its row."""
    try:
        # as one JSON text, which pydantic reads in half the time of a dict
        return Record.model_validate_json(f'{{"text":{json.dumps(text)},{rest[1:]}')
    except ValueError as error:
        raise RecordStoreError(
            f"The record with text {text[:60]!r} cannot be read: {error}. Another program or "
            "version wrote it; remove it by its id (`RecordStore.delete`)."
        ) from error


def superseded_pair(
    old_id: str, old: Record | None, new: Record, known: Record | None
) -> tuple[Record, Record]:
    """Both records as they are once `new` has superseded `old`; equal to them if it is done.

    What is stored under the new record's id (`known`) is kept, not overwritten, and becomes
    current again if it had been superseded.

    Raises:
        RecordStoreError: If this may not be.
    """
    if old is None:
        raise RecordStoreError(f"There is no record {old_id!r} to supersede.")
    if old.id == new.id:
        raise RecordStoreError(f"Record {old_id!r} cannot supersede itself: the text is the same.")
    if (old.kind, old.scope) != (new.kind, new.scope):
        raise RecordStoreError(
            f"Record {old_id!r} is {old.kind.value} in scope {old.scope!r}; a {new.kind.value} "
            f"record in scope {new.scope!r} cannot supersede it."
        )
    if old.superseded_by == new.id and known is not None:
        return old, known
    if old.superseded_by is not None:
        raise RecordStoreError(
            f"Record {old_id!r} was superseded by {old.superseded_by!r} before; "
            "supersede that one instead."
        )
    marked = old.model_copy(update={"superseded_by": new.id})
    current = (known or new).model_copy(update={"supersedes": old_id, "superseded_by": None})
    return marked, current


def checked_update(records: Sequence[Record], stored: Mapping[str, Record]) -> dict[str, Record]:
    """The records to be written over those that are stored, by id."""
    for record in records:
        flat_fields(record)
        old = stored.get(record.id)
        if old is None:
            raise RecordStoreError(
                f"There is no record {record.id!r} to update; none was written. Add it instead."
            )
        for name in _IDENTITY:
            before, after = getattr(old, name), getattr(record, name)
            if after != before:
                raise RecordStoreError(
                    f"Field {name!r} of record {record.id!r} cannot be changed from "
                    f"{ellipsis(repr(str(before)), 80)} to {ellipsis(repr(str(after)), 80)}; none "
                    "was written. Supersede it by another record instead."
                )
    return {record.id: record for record in records}


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    """What a record says in words besides its fields, with a name for it."""
    yield "The text of a record", record.text
    if (event := record.event) is not None:
        texts = (event.episode, event.situation, event.action, event.outcome, event.place)
        yield "What a record tells of an event", "\n".join(texts)
    if (fact := record.fact) is not None:
        yield "What a record tells of a fact", f"{fact.subject}\n{fact.attribute}\n{fact.value}"


def _encodable(text: str, *, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is {text!r}, which is no valid Unicode text.") from None
    return text


def slices(some: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Ids or other values, each once, so many at a time."""
    unique = list(dict.fromkeys(some))
    for start in range(0, len(unique), size):
        yield unique[start : start + size]


def portions(
    some: Iterable[_T], size: Callable[[_T], int], *, most: int, room: int
) -> Iterator[list[_T]]:
    """Values in lists of so many at most, whose sizes fill the room at most; each has one value."""
    portion, filled = list[_T](), 0
    for one in some:
        own = size(one)
        if portion and (len(portion) == most or filled + own > room):
            yield portion
            portion, filled = [], 0
        portion.append(one)
        filled += own
    if portion:
        yield portion
