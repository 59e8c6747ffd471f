"""The flat fields of a record: what filters can ask for, the same in every store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from coag.errors import RecordStoreError
from coag.schema import Record, Scalar, folded

FIXED_FIELDS = (
    "type",
    "scope",
    "source",
    "source_kind",
    "trust",
    "run",
    "activity",
    "cycle",
    "created_at",
    "short_id",
    "subject",
    "attribute",
)
"""Names that a filter reads from the record itself; every other name is a metadata key."""

FOLDED_FIELDS = frozenset({"subject", "attribute"})
"""Those of which the folded form is kept, of facts only; filters fold what they compare with."""

SHORT_ID_LENGTH = 8
"""Length of the short form of an id that models are shown."""

CURRENT = "current"
"""Field that is true while no other record superseded this one."""

_METADATA_PREFIX = "m."
_LARGEST_EXACT = 2**53


def short_id(record_id: str) -> str:
    """The short form of a record's id, as models are shown it."""
    return record_id[:SHORT_ID_LENGTH]


def field_name(name: str) -> str:
    """Under which name the flat fields hold what a filter calls `name`."""
    return name if name in FIXED_FIELDS else _METADATA_PREFIX + name


def exact(value: object, *, what: str) -> str | float | bool:
    """The value as stores compare it: numbers as floats, so that 1 and 1.0 are equal.

    Args:
        value: A value of metadata or of a filter.
        what: Names the value in the error.

    Raises:
        ValueError: If no store could keep the value exactly.
    """
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


def flat_fields(record: Record) -> dict[str, str | float | bool]:
    """What filters see of a record.

    Raises:
        ValueError: If a metadata value or a text cannot be kept exactly.
    """
    origin = record.provenance
    for name, text in _texts(record):
        _encodable(text, what=name)
    fixed: dict[str, object] = {
        "type": record.type,
        "scope": record.scope,
        "source": origin.source,
        "source_kind": origin.source_kind,
        "trust": origin.trust.value,
        "run": origin.run,
        "activity": origin.activity,
        "cycle": origin.cycle,
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
        flat[_METADATA_PREFIX + key] = exact(value, what=f"Metadata {key!r}")
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


def to_json(record: Record) -> str:
    """Everything of a record but its text."""
    return record.model_dump_json(exclude={"text"})


class Row(NamedTuple):
    """A record as stores write it: made once, written to every index."""

    record: Record
    flat: dict[str, str | float | bool]
    """See `flat_fields`."""
    rest: str
    """See `to_json`."""


def row_of(record: Record) -> Row:
    """A record as it is to be written.

    Raises:
        ValueError: If it holds what no store could keep exactly.
    """
    return Row(record, flat_fields(record), to_json(record))


def from_json(text: str, rest: str) -> Record:
    """The record of which `to_json` gave `rest`.

    Raises:
        RecordStoreError: If it gave no such thing.
    """
    try:
        # as one JSON text, which pydantic reads in half the time of a dict
        return Record.model_validate_json(f'{{"text":{json.dumps(text)},{rest[1:]}')
    except ValueError as error:
        raise RecordStoreError(
            f"The record with text {text[:60]!r} cannot be read: {error}. Another program or "
            "version wrote it; remove it by its id (`RecordStore.delete`)."
        ) from error


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    """What a record says in words besides its fields, with a name for it."""
    yield "The text of a record", record.text
    if (event := record.event) is not None:
        said = (event.episode, event.situation, event.action, event.outcome, event.place)
        yield "What a record tells of an event", "\n".join(said)
    if (fact := record.fact) is not None:
        yield "What a record tells of a fact", f"{fact.subject}\n{fact.attribute}\n{fact.value}"


def _encodable(text: str, *, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is {text!r}, which is no valid Unicode text.") from None
    return text
