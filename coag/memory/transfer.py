"""Export and import: all records of a memory in a file of JSON lines, and back.

The first line is a header; each further line is a record with every field, superseded ones
included. Vectors are not part of it: the memory that imports makes its own. Nor is what dynamics
know of the records (strength, gists, links): where they are imported, they are as old as they are
and begin to fade anew. Those in the archive come along where `dynamics.whole(store)` is exported.
`import_records` brings the records back as they were; if it is interrupted, the same call completes
it.
"""

from __future__ import annotations

import asyncio
import pkgutil
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import ValidationError

from coag._util.files import AtomicFile
from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import (
    Clock,
    MemoryKind,
    Moment,
    Record,
    SystemClock,
    Trust,
    Value,
    is_own_id,
    one_line,
    record_id,
)
from coag.store import ChromaStore, InMemoryStore, RecordStore

from .facts import trusted_at_most
from .write_policy import unfit

FORMAT = "coag-memory"
"""The format that the header of every export names."""

LONGEST_LINE = 8_000_000
"""Bytes of a line; a record of the longest text that memory keeps has a hundredth of it."""

_LONGEST_HEADER = 100_000
_COUNT_WIDTH = 20
_SHOWN = 80
_BATCH = 500
_REASONS_KEPT = 1_000
"""Refused lines of which the reasons are kept; all are counted."""
_CUT_OFF = "The file ends in the middle of this line."

Progress = Callable[[int], None]
"""Called with the number of records that are done, each time that some more are."""


class Header(Value):
    """The first line of an export."""

    format: Literal["coag-memory"] = FORMAT
    version: Literal[1] = 1
    made_at: Moment
    embedder: str | None = None
    """With what the exported store made its vectors; those are not part of the export."""
    dimension: int | None = None
    """How many numbers they had."""
    records: int | None = None
    """How many records follow; None where the file was written without looking back."""

    @classmethod
    def of(cls, store: RecordStore, clock: Clock | None = None) -> Header:
        """The header of an export of a store."""
        embedder = store.embedder if isinstance(store, ChromaStore | InMemoryStore) else None
        return cls(
            made_at=(clock or SystemClock()).now(),
            embedder=None if embedder is None else embedder.name,
            dimension=None if embedder is None else embedder.dimension,
        )

    def line(self) -> str:
        """The header as a line, filled up with spaces so that it keeps its length."""
        text = self.model_dump_json()
        width = len(self.model_copy(update={"records": None}).model_dump_json()) + _COUNT_WIDTH
        return f"{text:<{width}}\n"


# ---- Export ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What was written."""

    records: int
    size: int
    """Bytes of the file."""


async def export_lines(
    store: RecordStore,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
) -> AsyncIterator[list[str]]:
    """The lines of the records, some at a time, without a header.

    Args:
        store: Where they are.
        scopes: Whose; None for everyone's.
        kinds: Which memories; None for both.

    Raises:
        RecordStoreError: If the store cannot be reached.
        ValueError: If no scope or no kind is named.
    """
    if kinds is not None and not kinds:
        raise ValueError("kinds is empty and would export nothing; give None for both.")
    for kind in MemoryKind:
        if kinds is None or kind in kinds:
            async for records in store.scan(kind=kind, scopes=scopes, batch=_BATCH):
                yield [record.model_dump_json() + "\n" for record in records]


async def export_records(
    store: RecordStore,
    file: Path,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> ExportResult:
    """Writes every record with every field into a file, superseded ones too, in their order.

    The file is whole or not there: it is written beside and put in its place at the end, where it
    replaces one that is there. Where the system has modes, only its owner can read it. One batch
    of records and the ids of all are held in memory.

    Args:
        store: Where the records are.
        file: The file to write.
        scopes: Whose records; None for everyone's.
        kinds: Which memories; None for both.
        progress: Called with the number of records written so far.
        clock: Dates the export.

    Raises:
        RecordStoreError: If the store cannot be reached or the file cannot be written.
        ValueError: If no scope or no kind is named.
    """
    header, count = Header.of(store, clock), 0
    try:
        atomic = await asyncio.to_thread(AtomicFile, file)
        out = atomic.draft
        try:
            out.write(header.line().encode())
            async for lines in export_lines(store, scopes=scopes, kinds=kinds):
                await asyncio.to_thread(out.writelines, [line.encode() for line in lines])
                count += len(lines)
                if progress is not None:
                    progress(count)
            out.seek(0)
            out.write(header.model_copy(update={"records": count}).line().encode())
            size = await asyncio.to_thread(atomic.commit)
        finally:
            atomic.discard()
    except OSError as error:
        raise RecordStoreError(
            f"The export {str(file)!r} cannot be written: {error.strerror or error}."
        ) from error
    return ExportResult(records=count, size=size)


# ---- Import ----


class OnConflict(StrEnum):
    """What to do where a record is there already, but with other fields."""

    KEEP = "keep"
    """What is there stays."""
    TAKE = "take"
    """The fields of the file replace those that are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLine:
    """A line that was not imported."""

    line: int
    """Its number, from 1."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """How the lines of a file were imported."""

    new: int = 0
    """Records that were not there before."""
    known: int = 0
    """Records that were there, with the same fields."""
    differing: int = 0
    """Records that were there with other fields; see `OnConflict`."""
    refused: int = 0
    """Lines that hold no record that could be kept."""
    reasons: tuple[RefusedLine, ...] = ()
    """Why, for the first thousand of them."""
    missing: int = 0
    """Records that the header counts and the file does not have."""

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return self.new + self.known + self.differing + self.refused


class TransferError(ConfigurationError):
    """A file cannot be imported, or not further.

    Attributes:
        line: The line at fault, from 1; 0 if it is the file as a whole.
        done: How the lines before it were imported.
    """

    def __init__(
        self, file: Path, line: int, problem: str, *, done: ImportResult | None = None
    ) -> None:
        self.line = line
        self.done = done or ImportResult()
        self.problem = problem
        where = f"In line {line} of {str(file)!r}" if line else repr(str(file))
        super().__init__(f"{where}: {problem}")


class _LineError(ValueError):
    """A line that holds no record that could be kept."""


async def import_records(
    store: RecordStore,
    file: Path,
    *,
    scope: str | None = None,
    trust: Trust | None = None,
    on_conflict: OnConflict = OnConflict.KEEP,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Stores every record of an exported file as it was, in the order of the file.

    Neither the write policy nor the rules of facts are applied between what comes and what is
    there. If it is interrupted, the same call completes it.

    Args:
        store: Where to; its own embedder makes the vectors.
        file: What `export_records` wrote.
        scope: Whose memory all of it becomes, for a file of one scope; ids and links change with
            it. None leaves every record its own scope.
        trust: No origin of what comes is trusted more than this; None leaves it as it is.
        on_conflict: What to do with records that are there with other fields.
        skip_bad: Leave out lines that are no records; else the first one ends the import.
        progress: Called with the number of lines read so far.

    Raises:
        TransferError: If the file cannot be read, is no export, or has a line that holds no
            record. The records before it are stored; the message says how many these are.
        RecordStoreError: If the store cannot be reached.
    """
    header = await asyncio.to_thread(_header_of, file)
    ids = await asyncio.to_thread(_new_ids, file, scope)
    work = _Import(store, file, on_conflict, skip_bad=skip_bad)
    with closing(_chunks(file)) as chunks:
        while lines := await asyncio.to_thread(next, chunks, None):
            parsed, problem = await asyncio.to_thread(work.parsed, lines)
            await work.store_all([(n, _adapted(one, scope, ids, trust)) for n, one in parsed])
            if problem is not None:
                raise work.ended_by(problem)
            if progress is not None:
                progress(work.done().lines)
    done = work.done()
    return replace(done, missing=max(0, (header.records or 0) - done.lines))


def check_import(file: Path, scope: str | None) -> None:
    """Checks that a file is an export, and of one scope if it is to become another one's.

    It blocks, and reads the whole file where a scope is given.

    Raises:
        TransferError: If it cannot be imported so.
    """
    _header_of(file)
    _new_ids(file, scope)


class _Import:
    """An import as far as it has come."""

    def __init__(
        self, store: RecordStore, file: Path, on_conflict: OnConflict, *, skip_bad: bool
    ) -> None:
        self._store = store
        self._file = file
        self._on_conflict = on_conflict
        self._skip_bad = skip_bad
        self._counts: Counter[str] = Counter()
        self._reasons: list[RefusedLine] = []

    def done(self) -> ImportResult:
        """How the lines so far were imported."""
        return ImportResult(**self._counts, reasons=tuple(self._reasons))

    def parsed(
        self, lines: Sequence[tuple[int, bytes]]
    ) -> tuple[list[tuple[int, Record]], RefusedLine | None]:
        """The records of these lines, up to the first bad one unless those are left out."""
        records: list[tuple[int, Record]] = []
        for number, line in lines:
            try:
                records.append((number, _parse_record(line)))
            except _LineError as error:
                refused = RefusedLine(line=number, why=str(error))
                if not self._skip_bad:
                    return records, refused
                self._refuse(refused)
        return records, None

    async def store_all(self, records: Sequence[tuple[int, Record]]) -> None:
        """Stores these records and counts them."""
        stored = {one.id: one for one in await self._store.get([one.id for _, one in records])}
        new: list[tuple[int, Record]] = []
        changed: list[Record] = []
        for number, record in records:
            there = stored.get(record.id)
            if there is None:
                new.append((number, record))
                stored[record.id] = record
                continue
            now = record.model_copy(update={"text": there.text})  # its white space may differ
            self._counts["known" if now == there else "differing"] += 1
            if now != there:
                changed.append(now)
        try:
            await self._store.add([record for _, record in new])
            self._counts["new"] += len(new)
        except ConfigurationError:  # it is the store's fault, not that of a record
            raise
        except ValueError:
            for number, record in new:
                await self._add(number, record)
        if changed and self._on_conflict is OnConflict.TAKE:
            await self._store.update(changed)

    async def _add(self, number: int, record: Record) -> None:
        """Stores a record of a batch that was refused."""
        try:
            await self._store.add([record])
            self._counts["new"] += 1
        except ValueError as error:
            refused = RefusedLine(line=number, why=f"it cannot be kept: {error}")
            if not self._skip_bad:
                raise self.ended_by(refused) from error
            self._refuse(refused)

    def ended_by(self, refused: RefusedLine) -> TransferError:
        """The error where a bad line ends the import."""
        done, advice = self.done(), "Correct the line and import again"
        if refused.why.endswith(_CUT_OFF):
            advice = "Export it again"
        return TransferError(
            self._file,
            refused.line,
            f"{refused.why} The records before it are imported: {done.new} new, {done.known} "
            f"known, {done.differing} differing. {advice}, or leave bad lines out (--skip-bad).",
            done=done,
        )

    def _refuse(self, refused: RefusedLine) -> None:
        self._counts["refused"] += 1
        if len(self._reasons) < _REASONS_KEPT:
            self._reasons.append(refused)


# ---- Another scope, and less trust ----


def _new_ids(file: Path, scope: str | None) -> dict[str, str]:
    """The ids that a file's records have in another scope; reads it once, past bad lines."""
    ids: dict[str, str] = {}
    before: str | None = None
    for number, line in chain.from_iterable(() if scope is None else _chunks(file)):
        try:
            record = _parse_record(line)
        except _LineError:
            continue
        if before not in (None, record.scope):
            raise TransferError(
                file,
                number,
                f"it is of scope {record.scope!r}, those before of {before!r}. Records of "
                f"several scopes cannot all become {scope!r}; nothing was imported. Export "
                "one scope by `coag memory export --scope NAME`, or import without --scope.",
            )
        before = record.scope
        plain = record.id == record_id(record.kind, record.scope, record.text)
        about = None if plain else record.fact
        ids[record.id] = record_id(record.kind, scope or "", record.text, about)
    return ids


def _adapted(
    record: Record, scope: str | None, ids: Mapping[str, str], trust: Trust | None
) -> Record:
    """A record in its new scope, with links to others by their new ids, and trusted no more."""
    if scope is not None:
        lineage = record.lineage
        links = {
            "derived_from": tuple(ids.get(one, one) for one in lineage.derived_from),
            "contradicts": tuple(ids.get(one, one) for one in lineage.contradicts),
        }
        update = {
            "id": ids[record.id],
            "scope": scope,
            "supersedes": ids.get(record.supersedes or "", record.supersedes),
            "superseded_by": ids.get(record.superseded_by or "", record.superseded_by),
            "lineage": lineage.model_copy(update=links),
        }
        record = record.model_copy(update=update)
    if trust is None:
        return record
    return trusted_at_most(record, trust).model_copy(update={"sensed": False})


# ---- Lines of a file ----


@contextmanager
def _read_errors(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise TransferError(file, 0, f"it cannot be read: {error.strerror or error}.") from error


def _header_of(file: Path) -> Header:
    with _read_errors(file), file.open("rb") as source:
        line = source.readline(_LONGEST_HEADER)
    try:
        return Header.model_validate_json(line.decode("utf-8-sig"))
    except (ValidationError, UnicodeDecodeError) as error:
        shown = line[:_SHOWN].decode("utf-8", "replace")
        raise TransferError(
            file,
            1,
            f"it is no header of an exported memory that this version reads, but {shown!r}. The "
            f'first line is {{"format": "{FORMAT}", "version": 1, ...}}.',
        ) from error


def _chunks(file: Path) -> Generator[list[tuple[int, bytes]]]:
    """The lines that follow the header, with their numbers, some at a time, without empty ones."""
    with _read_errors(file), file.open("rb") as source:
        source.readline(_LONGEST_HEADER)
        lines = ((number, line) for number, line in _numbered(source) if line.strip())
        while some := list(islice(lines, _BATCH)):
            yield some


def _numbered(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """A line that is too long comes cut, so that no file can fill the memory."""
    number = 1
    while line := source.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := source.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        yield number, line


def _parse_record(line: bytes) -> Record:
    """The record that a line holds."""
    if len(line) > LONGEST_LINE:
        raise _LineError(f"it has more than {LONGEST_LINE:,} bytes; no record is as long.")
    try:
        record = Record.model_validate_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _LineError(
            f"it is no text in UTF-8 ({error.reason} at byte {error.start})."
        ) from None
    except ValidationError as error:
        raise _LineError(_no_record(line, error)) from None
    if not is_own_id(record):
        own = record_id(record.kind, record.scope, record.text)
        raise _LineError(
            f"its id {one_line(record.id, 60)!r} is not that of its kind, scope and text, which is "
            f"{own!r}; somebody has changed one of them."
        )
    problem = unfit(record)
    if problem is not None:
        raise _LineError(f"its record {record.id} cannot be kept: {problem}")
    return record


def _no_record(line: bytes, error: ValidationError) -> str:
    shown = one_line(line.decode("utf-8", "replace"), _SHOWN)
    if not line.endswith(b"\n"):
        return f"it holds no record: {shown!r}. {_CUT_OFF}"
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    value = f" ({where}), not {one_line(repr(first['input']), _SHOWN)}" if where else ""
    return f"it holds no record: {first['msg'].removeprefix('Value error, ')}{value}: {shown!r}."


_MOVED = {
    "Exported": f"{__name__}.ExportResult",
    "Imported": f"{__name__}.ImportResult",
    "Refused": f"{__name__}.RefusedLine",
    **{name: f"coag.memory.correction.{name}" for name in ("Correction", "corrected", "amended")},
    "examine_memory": "coag.memory.health.examine_memory",
    "Health": "coag.memory.health.MemoryHealth",
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is now {_MOVED[name]}; the old name will be removed."
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return pkgutil.resolve_name(_MOVED[name])
