"""Export and import: all records of a memory in a file of JSON lines, and back.

The first line is a header; each further line is a record with every field, superseded ones
included. Vectors are not part of it: the memory that imports makes its own. Where the file of the
dynamics is given, typed lines follow: owners, versions of personalities, what has faded, states,
links, what yields to what. Mood and clusters are not part of it. `import_records` brings all of it
back as it was; if it is interrupted, the same call completes it.
"""

from __future__ import annotations

import asyncio
import pkgutil
import warnings
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import ValidationError

from coag._util.files import AtomicFile
from coag.errors import ConfigurationError, RecordStoreError, UnknownNameError
from coag.memory.dynamics import (
    ArchivedLine,
    DynamicsFile,
    DynamicsImport,
    DynamicsLine,
    LinkLine,
    MatterLine,
    MemoryArchive,
    RecordStates,
    StateLine,
    StoreWithArchive,
    dynamics_lines,
    in_scope,
    is_typed_line,
    parse_dynamics_line,
)
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
_NEWER = "this version of coag does not know it."

_Content = Record | DynamicsLine | None
"""What a line says; None for what is ignored."""
Progress = Callable[[int], None]
"""Called with the number of records that are done, each time that some more are."""


class Header(Value):
    """The first line of an export."""

    format: Literal["coag-memory"] = FORMAT
    version: Literal[1, 2] = 1
    """2 where typed lines on dynamics follow the records."""
    made_at: Moment
    embedder: str | None = None
    """With what the exported store made its vectors; those are not part of the export."""
    dimension: int | None = None
    """How many numbers they had."""
    records: int | None = None
    """How many records follow; None where the file was written without looking back."""
    dynamics: int | None = None
    """How many lines on dynamics follow them, likewise."""

    @classmethod
    def of(
        cls, store: RecordStore, clock: Clock | None = None, dynamics: DynamicsFile | None = None
    ) -> Header:
        """The header of an export of a store, and of its dynamics where they are given."""
        embedder = store.embedder if isinstance(store, ChromaStore | InMemoryStore) else None
        return cls(
            version=1 if dynamics is None else 2,
            made_at=(clock or SystemClock()).now(),
            embedder=None if embedder is None else embedder.name,
            dimension=None if embedder is None else embedder.dimension,
        )

    def line(self) -> str:
        """The header as a line, filled up with spaces so that it keeps its length."""
        unknown = {"dynamics"} if self.version == 1 else None  # earlier versions refuse it
        empty = self.model_copy(update={"records": None, "dynamics": None})
        width = len(empty.model_dump_json(exclude=unknown)) + _COUNT_WIDTH * self.version
        return f"{self.model_dump_json(exclude=unknown):<{width}}\n"


# ---- Export ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What was written."""

    records: int
    size: int
    """Bytes of the file."""
    dynamics: int = 0
    """Lines on dynamics."""


async def export_lines(
    store: RecordStore,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
    dynamics: DynamicsFile | None = None,
) -> AsyncIterator[list[str]]:
    """The lines of the records, and of their dynamics, some at a time, without a header.

    Args:
        store: Where they are.
        scopes: Whose; None for everyone's.
        kinds: Which memories; None for both.
        dynamics: Where their dynamics are; it is only read. None leaves those out.

    Raises:
        ConfigurationError: If the settings of an owner of dynamics cannot be read.
        ValueError: If no scope or no kind is named.
    """
    if kinds is not None and not kinds:
        raise ValueError("kinds is empty and would export nothing; give None for both.")
    if dynamics is not None and isinstance(store, StoreWithArchive):
        store = store.store  # what has faded is exported as such
    ids: set[str] = set()
    for kind in MemoryKind:
        if kinds is None or kind in kinds:
            async for records in store.scan(kind=kind, scopes=scopes, batch=_BATCH):
                yield [record.model_dump_json() + "\n" for record in records]
                if dynamics is not None:
                    ids.update(record.id for record in records)
    if dynamics is not None:
        rest = dynamics_lines(dynamics, ids, scopes=scopes, kinds=kinds)
        while (lines := await asyncio.to_thread(next, rest, None)) is not None:
            yield lines


async def export_records(
    store: RecordStore,
    file: Path,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
    dynamics: DynamicsFile | None = None,
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
        dynamics: The file of their dynamics, as `memory.dynamics.file`, to be exported with them;
            it is only read.
        progress: Called with the number of lines written so far.
        clock: Dates the export.

    Raises:
        RecordStoreError: If the store or the dynamics cannot be read, or the file cannot be
            written.
        ConfigurationError: If the settings of an owner of dynamics cannot be read.
        ValueError: If no scope or no kind is named.
    """
    header, count, typed = Header.of(store, clock, dynamics), 0, 0
    try:
        atomic = await asyncio.to_thread(AtomicFile, file)
        out = atomic.draft
        try:
            out.write(header.line().encode())
            async for lines in export_lines(store, scopes=scopes, kinds=kinds, dynamics=dynamics):
                data = [line.encode() for line in lines]
                await asyncio.to_thread(out.writelines, data)
                count += len(data)
                typed += sum(map(is_typed_line, data))
                if progress is not None:
                    progress(count)
            counts = {"records": count - typed, "dynamics": typed}
            out.seek(0)
            out.write(header.model_copy(update=counts).line().encode())
            size = await asyncio.to_thread(atomic.commit)
        finally:
            atomic.discard()
    except OSError as error:
        raise RecordStoreError(
            f"The export {str(file)!r} cannot be written: {error.strerror or error}."
        ) from error
    return ExportResult(records=count - typed, size=size, dynamics=typed)


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
    """Lines that the header counts and the file does not have."""
    dynamics: int = 0
    """Lines on dynamics, but for archived records, that are as in the file now."""
    dynamics_differing: int = 0
    """Those of them that were there with another content, which stays; see `OnConflict`."""
    ignored: int = 0
    """Lines on dynamics that were passed over; see `import_records`."""

    @property
    def lines(self) -> int:
        """How many lines were read."""
        records = self.new + self.known + self.differing + self.refused
        return records + self.dynamics + self.dynamics_differing + self.ignored


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
    dynamics: DynamicsFile | None = None,
    progress: Progress | None = None,
) -> ImportResult:
    """Stores every record of an exported file as it was, in the order of the file.

    Neither the write policy nor the rules of facts are applied between what comes and what is
    there. If it is interrupted, the same call completes it. Lines on dynamics are ignored without
    a file for them. A line of a kind that this version does not know is a bad one.

    Args:
        store: Where to; its own embedder makes the vectors.
        file: What `export_records` wrote.
        scope: Whose memory all of it becomes, for a file of one scope; ids and links change with
            it. None leaves every record its own scope.
        trust: No origin of what comes is trusted more than this, and of its dynamics only what has
            faded is imported; None leaves it as it is.
        on_conflict: What to do with records that are there with other fields.
        skip_bad: Leave out lines that are no records; else the first one ends the import.
        dynamics: The file of the dynamics, where what has faded goes into the archive, and what is
            there already stays; None for a memory without.
        progress: Called with the number of lines read so far.

    Raises:
        TransferError: If the file cannot be read, is no export, or has a line that holds no
            record. The records before it are stored; the message says how many these are.
    """
    header = await asyncio.to_thread(_header_of, file)
    change = await asyncio.to_thread(_change_of, file, scope, trust)
    work = _Import(store, file, on_conflict, skip_bad=skip_bad, dynamics=dynamics)
    with closing(_chunks(file)) as chunks:
        while lines := await asyncio.to_thread(next, chunks, None):
            parsed, problem = await asyncio.to_thread(work.parsed, lines)
            await work.store_all([(n, change.adapted(one)) for n, one in parsed])
            if problem is not None:
                raise work.ended_by(problem)
            if progress is not None:
                progress(work.done().lines)
    done = work.done()
    expected = (header.records or 0) + (header.dynamics or 0)
    return replace(done, missing=max(0, expected - done.lines))


def check_import(file: Path, scope: str | None) -> Header:
    """Checks that a file is an export, and of one scope if it is to become another one's.

    It blocks, and reads the whole file where a scope is given.

    Returns:
        Its header.

    Raises:
        TransferError: If it cannot be imported so.
    """
    header = _header_of(file)
    _change_of(file, scope)
    return header


class _Import:
    def __init__(
        self,
        store: RecordStore,
        file: Path,
        on_conflict: OnConflict,
        *,
        skip_bad: bool,
        dynamics: DynamicsFile | None,
    ) -> None:
        take = on_conflict is OnConflict.TAKE
        self._store = store
        self._archive = self._dynamics = None
        if dynamics is not None:
            self._archive = MemoryArchive(dynamics)
            self._dynamics = DynamicsImport(dynamics, take=take)
            distrusted = RecordStates(dynamics, "").distrust
            self._store = StoreWithArchive(store, self._archive, distrusted=distrusted)
        self._file = file
        self._take = take
        self._skip_bad = skip_bad
        self._counts: Counter[str] = Counter()
        self._reasons: list[RefusedLine] = []

    def done(self) -> ImportResult:
        """How the lines so far were imported."""
        return ImportResult(**self._counts, reasons=tuple(self._reasons))

    def parsed(
        self, lines: Sequence[tuple[int, bytes]]
    ) -> tuple[list[tuple[int, _Content]], RefusedLine | None]:
        """What these lines say, up to the first bad one unless those are left out."""
        found: list[tuple[int, _Content]] = []
        for number, line in lines:
            try:
                found.append((number, _parse_line(line)))
            except _LineError as error:
                refused = RefusedLine(line=number, why=str(error))
                if not self._skip_bad:
                    return found, refused
                self._refuse(refused)
        return found, None

    async def store_all(self, lines: Sequence[tuple[int, _Content]]) -> None:
        """Stores what these lines say and counts them."""
        records = [(number, one) for number, one in lines if isinstance(one, Record)]
        if records and self._take and isinstance(self._store, StoreWithArchive):
            await self._store.bring_back(record.id for _, record in records)
        await self._store_records(records, self._store.add)
        typed = [(number, one) for number, one in lines if not isinstance(one, Record)]
        if self._dynamics is None or self._archive is None:
            self._counts["ignored"] += len(typed)
            return
        archive = self._archive
        faded = {one.record.id: one for _, one in typed if isinstance(one, ArchivedLine)}

        async def put_away(records: Sequence[Record]) -> None:
            for one in (faded[record.id] for record in records):
                archive.put(
                    [one.record], owner=one.owner, at=one.at, reason=one.reason, finished=True
                )

        with_records = [(n, one.record) for n, one in typed if isinstance(one, ArchivedLine)]
        await self._store_records(with_records, put_away)
        rest = [one for _, one in typed if one is not None and not isinstance(one, ArchivedLine)]
        kept = self._dynamics.put(rest)
        self._counts["dynamics"] += len(rest) - kept
        self._counts["dynamics_differing"] += kept
        self._counts["ignored"] += sum(1 for _, one in typed if one is None)

    async def _store_records(
        self,
        records: Sequence[tuple[int, Record]],
        keep: Callable[[Sequence[Record]], Awaitable[object]],
    ) -> None:
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
            await keep([record for _, record in new])
            self._counts["new"] += len(new)
        except ConfigurationError:  # it is the store's fault, not that of a record
            raise
        except ValueError:
            for number, record in new:
                await self._add(number, record, keep)
        if changed and self._take:
            await self._store.update(changed)

    async def _add(
        self, number: int, record: Record, keep: Callable[[Sequence[Record]], Awaitable[object]]
    ) -> None:
        try:
            await keep([record])
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
        elif refused.why.endswith(_NEWER):
            advice = "Import it again with the version of coag that wrote it"
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


@dataclass(frozen=True, slots=True)
class _Change:
    """What an import changes of that which comes."""

    trust: Trust | None
    scope: str | None = None
    """Whose memory all of it becomes; None where it stays whose it is."""
    before: str | None = None
    """The scope of its records; None where it has none, or they keep theirs."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """What becomes of the ids."""

    def adapted(self, content: _Content) -> _Content:
        """What a line says, in its new scope and trusted no more; None for what is left out."""
        if self.scope is None and self.trust is None:
            return content
        if isinstance(content, Record):
            return self._record(content)
        if content is None or not (self.trust is None or isinstance(content, ArchivedLine)):
            return None
        update: dict[str, object] = {"owner": self.scope} if content.owner == self.before else {}
        if isinstance(content, ArchivedLine):
            update["record"] = self._record(content.record)
        elif isinstance(content, StateLine):
            update["state"] = content.state._replace(record=self._id(content.state.record))
        elif isinstance(content, LinkLine):
            ends = sorted(map(self._id, (content.record, content.other)))
            update |= zip(("record", "other"), ends, strict=True)
        elif isinstance(content, MatterLine) and self.scope is not None:
            update["record"] = self._id(content.record)
            update["yields_to"] = self._id(content.yields_to)
            update["matter"] = in_scope(content.matter, self.scope)
        return content.model_copy(update=update)

    def _id(self, name: str) -> str:
        return self.ids.get(name, name)

    def _record(self, record: Record) -> Record:
        if self.scope is not None:
            lineage, links = record.lineage, ("derived_from", "contradicts")
            new = {name: tuple(map(self._id, getattr(lineage, name))) for name in links}
            update = {
                "id": self._id(record.id),
                "scope": self.scope,
                "supersedes": record.supersedes and self._id(record.supersedes),
                "superseded_by": record.superseded_by and self._id(record.superseded_by),
                "lineage": lineage.model_copy(update=new),
            }
            record = record.model_copy(update=update)
        if self.trust is None:
            return record
        return trusted_at_most(record, self.trust).model_copy(update={"sensed": False})


def _change_of(file: Path, scope: str | None, trust: Trust | None = None) -> _Change:
    """What an import changes; for another scope it reads the file once, past bad lines."""
    if scope is None:
        return _Change(trust)
    ids: dict[str, str] = {}
    before: str | None = None
    for number, line in chain.from_iterable(_chunks(file)):
        try:
            content = _parse_line(line)
        except _LineError:
            continue
        record = content.record if isinstance(content, ArchivedLine) else content
        if not isinstance(record, Record):
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
        ids[record.id] = record_id(record.kind, scope, record.text, about)
    return _Change(trust, scope, before, ids)


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


def _parse_line(line: bytes) -> _Content:
    if len(line) > LONGEST_LINE:
        raise _LineError(f"it has more than {LONGEST_LINE:,} bytes; no record is as long.")
    try:
        if is_typed_line(line):
            content = parse_dynamics_line(line)
            if isinstance(content, ArchivedLine):
                _check(content.record)
            return content
        record = Record.model_validate_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _LineError(
            f"it is no text in UTF-8 ({error.reason} at byte {error.start})."
        ) from None
    except ValidationError as error:
        raise _LineError(_no_record(line, error)) from None
    except UnknownNameError as error:
        raise _LineError(f"it is of the kind {error.name!r}, and {_NEWER}") from None
    _check(record)
    return record


def _check(record: Record) -> None:
    if not is_own_id(record):
        own = record_id(record.kind, record.scope, record.text)
        raise _LineError(
            f"its id {one_line(record.id, 60)!r} is not that of its kind, scope and text, which is "
            f"{own!r}; somebody has changed one of them."
        )
    problem = unfit(record)
    if problem is not None:
        raise _LineError(f"its record {record.id} cannot be kept: {problem}")


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
