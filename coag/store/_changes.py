"""Which changes of stored records are allowed, and how all are gone through: pure rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record

from ._fields import flat_fields
from ._filters import AllOf, Condition, OneOf

_FIXED = ("kind", "scope", "text")
"""What makes a record the one it is."""


def checked_update(records: Sequence[Record], stored: Mapping[str, Record]) -> dict[str, Record]:
    """The records to be written over those that are stored, by id.

    Raises:
        RecordStoreError: If one is not stored, or is another one than what is stored.
        ValueError: If its metadata cannot be stored exactly.
    """
    for record in records:
        flat_fields(record)
        old = stored.get(record.id)
        if old is None:
            raise RecordStoreError(
                f"There is no record {record.id!r} to update; none was written. Add it instead."
            )
        for name in _FIXED:
            if getattr(record, name) != getattr(old, name):
                raise RecordStoreError(
                    f"Field {name!r} of record {record.id!r} cannot be changed from "
                    f"{_short(getattr(old, name))} to {_short(getattr(record, name))}; none was "
                    "written. Supersede it by another record instead."
                )
    return {record.id: record for record in records}


def scanned(
    kind: MemoryKind | None, scopes: Sequence[str] | None, batch: int
) -> tuple[tuple[MemoryKind, ...], Condition]:
    """The kinds that a scan goes through, and what it asks of their records.

    Raises:
        ValueError: If `batch` is below 1, or `scopes` is empty.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}.")
    if scopes is not None and not scopes:
        raise ValueError("scopes is empty and would match nothing; give None for all scopes.")
    kinds = tuple(MemoryKind) if kind is None else (kind,)
    if scopes is None:
        return kinds, AllOf(parts=())
    return kinds, OneOf(field="scope", values=tuple(scopes))


def _short(value: object) -> str:
    shown = repr(str(value))
    return shown if len(shown) <= 80 else shown[:77] + "...'"
