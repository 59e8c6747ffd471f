"""Importing records, also under other ids and scopes."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path

from coag.errors import ConfigurationError
from coag.memory.facts import trusted_at_most
from coag.schema import Record, Trust, record_id
from coag.store import RecordStore

from .export import Progress
from .lines import (
    CUT_OFF,
    LONGEST_HEADER,
    Header,
    Imported,
    LineError,
    Refused,
    TransferError,
    numbered,
    parse_record,
    read_header,
)


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


# ---- Bringing the records of an exported file into a memory ----


_BATCH = 500
_REFUSED_KEPT = 1_000
"""Refused lines of which the reasons are kept; all are counted."""

_Numbered = tuple[int, Record]


class OnConflict(StrEnum):
    """What to do where a record is there already, but with other fields."""

    KEEP = "keep"
    """What is there stays."""
    TAKE = "take"
    """The fields of the file take the place of those that are there."""


async def import_records(
    store: RecordStore,
    file: Path,
    *,
    scope: str | None = None,
    trust: Trust | None = None,
    on_conflict: OnConflict = OnConflict.KEEP,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Stores every record of an exported file as it was, in the order of the file.

    Nothing is decided anew: neither the write policy nor the rules of facts are applied between
    what comes and what is there. Broken off and repeated, it completes.

    Args:
        store: Where to; its own embedder makes the vectors.
        file: What `export_records` wrote.
        scope: Whose memory all of it becomes, for a file of one scope; ids and links change with
            it. None leaves every record its own scope.
        trust: No origin of what comes is trusted more than this; None leaves it as it is told.
        on_conflict: What to do with records that are there with other fields.
        skip_bad: Leave out lines that are no records; else the first one ends the import.
        progress: Is told how many lines were read.

    Raises:
        TransferError: If the file cannot be read, is no export, or has a line that holds no
            record. What stands before it is stored, and the message says how much that is.
        RecordStoreError: If the store cannot be reached.
    """
    importing = _Importing(store, file, on_conflict, skip_bad=skip_bad)
    renaming = Renaming() if scope is None else await asyncio.to_thread(_renamed, file, scope)
    reading = await asyncio.to_thread(_Reading, file)
    try:
        while some := await asyncio.to_thread(reading.some):
            parsed, problem = await asyncio.to_thread(importing.parsed, some)
            changed = [(n, _changed(one, renaming, trust)) for n, one in parsed]
            await importing.store_all(changed)
            if problem is not None:
                raise importing.broken_off(problem)
            if progress is not None:
                progress(importing.done.lines)
    finally:
        reading.close()
    return importing.ended(reading.header)


def _changed(record: Record, renaming: Renaming, trust: Trust | None) -> Record:
    renamed = renaming.of(record)
    if trust is None:
        return renamed
    return trusted_at_most(renamed, trust).model_copy(update={"sensed": False})


class _Reading:
    """A file that is read some lines at a time. Everything blocks.

    Raises:
        TransferError: If it cannot be read, or is no export.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with _read_errors(file):
            self._source = file.open("rb")
            try:
                self.header = read_header(file, self._source.readline(LONGEST_HEADER))
            except BaseException:
                self._source.close()
                raise
        self.lines = numbered(self._source)

    def some(self) -> list[tuple[int, bytes]]:
        with _read_errors(self._file):
            return list(islice(self.lines, _BATCH))

    def close(self) -> None:
        self._source.close()


class _Importing:
    """An import as far as it has come."""

    def __init__(
        self, store: RecordStore, file: Path, on_conflict: OnConflict, *, skip_bad: bool
    ) -> None:
        self.done = Imported()
        self._store = store
        self._file = file
        self._on_conflict = on_conflict
        self._skip_bad = skip_bad

    def parsed(self, lines: Sequence[tuple[int, bytes]]) -> tuple[list[_Numbered], Refused | None]:
        """The records of these lines, up to the first bad one unless those are left out."""
        records: list[_Numbered] = []
        for number, line in lines:
            try:
                records.append((number, parse_record(line)))
            except LineError as error:
                refused = Refused(line=number, why=str(error))
                if not self._skip_bad:
                    return records, refused
                self._refuse(refused)
        return records, None

    async def store_all(self, records: Sequence[_Numbered]) -> None:
        """Stores these records and counts what became of them."""
        before = {one.id: one for one in await self._store.get([one.id for _, one in records])}
        fresh = {one.id: (number, one) for number, one in reversed(records)}
        fresh = {name: one for name, one in fresh.items() if name not in before}
        await self._add(sorted(fresh.values(), key=lambda one: one[0]))
        again = [(n, one) for n, one in records if fresh.get(one.id, (0, one))[0] != n]
        later = {name: one for name, (_, one) in fresh.items()} | before
        changed: list[Record] = []
        for _, record in again:
            there = later[record.id]
            now = record.model_copy(update={"text": there.text})  # its white space may differ
            if now == there:
                self.done = replace(self.done, known=self.done.known + 1)
            else:
                self.done = replace(self.done, differing=self.done.differing + 1)
                changed.append(now)
        if changed and self._on_conflict is OnConflict.TAKE:
            await self._store.update(changed)

    async def _add(self, records: Sequence[_Numbered]) -> None:
        """Stores new records; a batch that is refused, one by one."""
        try:
            await self._store.add([record for _, record in records])
        except ConfigurationError:  # it is the store's fault, not that of a record
            raise
        except ValueError:
            for number, record in records:
                await self._add_one(number, record)
            return
        self.done = replace(self.done, new=self.done.new + len(records))

    async def _add_one(self, number: int, record: Record) -> None:
        try:
            await self._store.add([record])
        except ValueError as error:
            refused = Refused(line=number, why=f"it cannot be kept: {error}")
            if not self._skip_bad:
                raise self.broken_off(refused) from error
            self._refuse(refused)
        else:
            self.done = replace(self.done, new=self.done.new + 1)

    def broken_off(self, refused: Refused) -> TransferError:
        """What to tell where a bad line ends the import."""
        done = self.done
        return TransferError(
            self._file,
            refused.line,
            f"{refused.why} What stands before it is imported: {done.new} new, {done.known} known, "
            f"{done.differing} differing. {_advice(refused)}",
            done=done,
        )

    def ended(self, header: Header) -> Imported:
        """What became of all."""
        told = header.records
        missing = 0 if told is None else max(0, told - self.done.lines)
        return replace(self.done, missing=missing)

    def _refuse(self, refused: Refused) -> None:
        reasons = self.done.reasons
        if len(reasons) < _REFUSED_KEPT:
            reasons = (*reasons, refused)
        self.done = replace(self.done, refused=self.done.refused + 1, reasons=reasons)


def check_import(file: Path, scope: str | None) -> None:
    """Looks whether a file is an export, and of one scope if it is to become another one's.

    It blocks, and reads the whole file where a scope is given.

    Raises:
        TransferError: If it cannot be imported so.
    """
    if scope is None:
        _Reading(file).close()
    else:
        _renamed(file, scope)


def _advice(refused: Refused) -> str:
    if refused.why.endswith(CUT_OFF):
        return "Export it again, or take what is whole by leaving bad lines out (--skip-bad)."
    return "Mend the line and import again, or leave bad lines out (--skip-bad)."


def _renamed(file: Path, scope: str) -> Renaming:
    """Which ids the records of a file have in another scope; it is read once for that."""
    reading = _Reading(file)
    try:
        with _read_errors(file):
            return renaming_of(file, reading.lines, scope)
    finally:
        reading.close()


@contextmanager
def _read_errors(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise TransferError(file, 0, f"it cannot be read: {error.strerror or error}.") from error
