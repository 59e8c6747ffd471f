"""Export and import: all records of a memory in a file of JSON lines, and back.

The first line is a header; each further line is a record with every field, superseded ones
included. Vectors are not part of it: the memory that imports makes its own. `import_records`
brings the records back as they were; if it is interrupted, the same call completes it.
"""

from __future__ import annotations

import asyncio
import importlib
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
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
    renaming = await asyncio.to_thread(_renaming_of, file, scope)
    work = _Import(store, file, on_conflict, skip_bad=skip_bad)
    with await asyncio.to_thread(_ExportFile, file) as source:
        while lines := await asyncio.to_thread(source.some):
            parsed, problem = await asyncio.to_thread(work.parsed, lines)
            await work.store_all([(n, _adapted(one, renaming, trust)) for n, one in parsed])
            if problem is not None:
                raise work.ended_by(problem)
            if progress is not None:
                progress(work.done.lines)
    expected, done = source.header.records, work.done
    return replace(done, missing=0 if expected is None else max(0, expected - done.lines))


def check_import(file: Path, scope: str | None) -> None:
    """Checks that a file is an export, and of one scope if it is to become another one's.

    It blocks, and reads the whole file where a scope is given.

    Raises:
        TransferError: If it cannot be imported so.
    """
    _ExportFile(file).close()
    _renaming_of(file, scope)


class _ExportFile:
    """An exported file that is read some lines at a time. Everything blocks.

    Raises:
        TransferError: If it cannot be read, or is no export.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with _read_errors(file):
            self._source = file.open("rb")
            try:
                self.header = _read_header(file, self._source.readline(_LONGEST_HEADER))
            except BaseException:
                self._source.close()
                raise
        self._lines = _numbered(self._source)

    def some(self) -> list[tuple[int, bytes]]:
        """The next lines with their numbers; none at the end."""
        with _read_errors(self._file):
            return list(islice(self._lines, _BATCH))

    def close(self) -> None:
        """Closes the file."""
        self._source.close()

    def __enter__(self) -> _ExportFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Import:
    """An import as far as it has come."""

    def __init__(
        self, store: RecordStore, file: Path, on_conflict: OnConflict, *, skip_bad: bool
    ) -> None:
        self.done = ImportResult()
        self._store = store
        self._file = file
        self._on_conflict = on_conflict
        self._skip_bad = skip_bad

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
        new: dict[str, tuple[int, Record]] = {}
        changed: list[Record] = []
        for number, record in records:
            there = stored.get(record.id)
            if there is None:
                new[record.id] = (number, record)
                stored[record.id] = record
                continue
            now = record.model_copy(update={"text": there.text})  # its white space may differ
            if now == there:
                self._count("known")
            else:
                self._count("differing")
                changed.append(now)
        await self._add(list(new.values()))
        if changed and self._on_conflict is OnConflict.TAKE:
            await self._store.update(changed)

    async def _add(self, records: Sequence[tuple[int, Record]]) -> None:
        """Stores new records; a batch that is refused, one by one."""
        try:
            await self._store.add([record for _, record in records])
        except ConfigurationError:  # it is the store's fault, not that of a record
            raise
        except ValueError:
            for number, record in records:
                try:
                    await self._store.add([record])
                except ValueError as error:
                    refused = RefusedLine(line=number, why=f"it cannot be kept: {error}")
                    if not self._skip_bad:
                        raise self.ended_by(refused) from error
                    self._refuse(refused)
                else:
                    self._count("new")
        else:
            self._count("new", len(records))

    def ended_by(self, refused: RefusedLine) -> TransferError:
        """The error where a bad line ends the import."""
        done = self.done
        if refused.why.endswith(_CUT_OFF):
            advice = "Export it again, or leave bad lines out (--skip-bad)."
        else:
            advice = "Correct the line and import again, or leave bad lines out (--skip-bad)."
        return TransferError(
            self._file,
            refused.line,
            f"{refused.why} The records before it are imported: {done.new} new, {done.known} "
            f"known, {done.differing} differing. {advice}",
            done=done,
        )

    def _count(self, what: str, number: int = 1) -> None:
        self.done = replace(self.done, **{what: getattr(self.done, what) + number})

    def _refuse(self, refused: RefusedLine) -> None:
        self._count("refused")
        if len(self.done.reasons) < _REASONS_KEPT:
            self.done = replace(self.done, reasons=(*self.done.reasons, refused))


# ---- Another scope, and less trust ----


@dataclass(frozen=True, slots=True)
class _Renaming:
    """How the ids of records change in another scope."""

    scope: str
    ids: dict[str, str] = field(default_factory=dict[str, str])
    """The new ids by the old ones; an id that is not in the file stays as it is."""

    def of(self, record: Record) -> Record:
        """The record in its new scope, with links to others by their new ids."""
        lineage, renamed = record.lineage, self._renamed
        links = {
            "derived_from": tuple(renamed(one) for one in lineage.derived_from),
            "contradicts": tuple(renamed(one) for one in lineage.contradicts),
        }
        update = {
            "id": renamed(record.id),
            "scope": self.scope,
            "supersedes": record.supersedes and renamed(record.supersedes),
            "superseded_by": record.superseded_by and renamed(record.superseded_by),
            "lineage": lineage.model_copy(update=links),
        }
        return record.model_copy(update=update)

    def _renamed(self, name: str) -> str:
        return self.ids.get(name, name)


def _renaming_of(file: Path, scope: str | None) -> _Renaming | None:
    """How a file's records are renamed; reads it once. Lines without a record are passed over."""
    if scope is None:
        return None
    renaming = _Renaming(scope)
    before: str | None = None
    with _ExportFile(file) as source:
        while lines := source.some():
            for number, line in lines:
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
                        "one scope by `coag memory export --scope NAME`, or import without "
                        "--scope.",
                    )
                before = record.scope
                plain = record.id == record_id(record.kind, record.scope, record.text)
                about = None if plain else record.fact
                renaming.ids[record.id] = record_id(record.kind, scope, record.text, about)
    return renaming


def _adapted(record: Record, renaming: _Renaming | None, trust: Trust | None) -> Record:
    record = record if renaming is None else renaming.of(record)
    if trust is None:
        return record
    return trusted_at_most(record, trust).model_copy(update={"sensed": False})


# ---- Lines of a file ----


def _read_header(file: Path, line: bytes) -> Header:
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


def _numbered(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that follow the header, with their numbers; empty ones are left out.

    A line that is too long comes cut, so that no file can fill the memory.
    """
    number = 1
    while line := source.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := source.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        if line.strip():
            yield number, line


def _parse_record(line: bytes) -> Record:
    """The record that a line holds.

    Raises:
        _LineError: If it holds none, one whose id is not that of its text, or one that no
            memory keeps.
    """
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


@contextmanager
def _read_errors(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise TransferError(file, 0, f"it cannot be read: {error.strerror or error}.") from error


_MOVED = {
    "Exported": (__name__, "ExportResult"),
    "Imported": (__name__, "ImportResult"),
    "Refused": (__name__, "RefusedLine"),
    "Correction": ("coag.memory.correction", "Correction"),
    "corrected": ("coag.memory.correction", "corrected"),
    "amended": ("coag.memory.correction", "amended"),
    "examine_memory": ("coag.memory.health", "examine_memory"),
    "Health": ("coag.memory.health", "MemoryHealth"),
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, new = _MOVED[name]
    message = f"coag.memory.transfer.{name} is now {module}.{new}; the old name will be removed."
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module(module), new)
