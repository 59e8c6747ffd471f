"""What may be changed of records on their way: their scope, and how far they are trusted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coag.schema import Record, record_id

from ._lines import LineError, parse_record
from ._outcome import TransferError


@dataclass(frozen=True, slots=True)
class Renaming:
    """Records as they are in another scope."""

    scope: str | None = None
    """None leaves everything as it is."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The new ids by the old ones."""

    def of(self, record: Record) -> Record:
        """The record in its new scope, with links to others by their new ids.

        A link to a record that is not in the file stays as it is.
        """
        if self.scope is None:
            return record
        lineage = record.lineage
        links = {
            "derived_from": tuple(map(self._renamed, lineage.derived_from)),
            "contradicts": tuple(map(self._renamed, lineage.contradicts)),
        }
        return record.model_copy(
            update={
                "id": self._renamed(record.id),
                "scope": self.scope,
                "supersedes": self._link(record.supersedes),
                "superseded_by": self._link(record.superseded_by),
                "lineage": lineage.model_copy(update=links),
            }
        )

    def _renamed(self, name: str) -> str:
        return self.ids.get(name, name)

    def _link(self, name: str | None) -> str | None:
        return None if name is None else self._renamed(name)


def renaming_of(file: Path, lines: Iterable[tuple[int, bytes]], scope: str) -> Renaming:
    """How the records of a file are renamed; lines that hold none are passed over.

    Raises:
        TransferError: If they are of several scopes, which would become one.
    """
    ids: dict[str, str] = {}
    of: str | None = None
    for number, line in lines:
        try:
            record = parse_record(line)
        except LineError:
            continue
        if of is not None and record.scope != of:
            raise TransferError(
                file,
                number,
                f"it is of scope {record.scope!r}, those before of {of!r}. What belongs to several "
                f"cannot all become {scope!r}; nothing was imported. Export one scope by `coag "
                "memory export --scope NAME`, or import without --scope.",
            )
        of = record.scope
        plain = record.id == record_id(record.kind, record.scope, record.text)
        about = None if plain else record.fact
        ids[record.id] = record_id(record.kind, scope, record.text, about)
    return Renaming(scope, ids)
