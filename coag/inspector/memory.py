"""What a run wrote to long-term memory and recalled, and the versions of its procedures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, Literal, cast

from pydantic import ValidationError

from coag.schema import RecalledRecord, Record, RetrievalOutcome, Snapshot, TraceRecord, Written
from coag.tracing import RecordKind, TraceIndex

# ---- Long-term memory ----


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record that was written in the run."""

    record: Record
    cycle: int
    at: datetime
    recalled: tuple[int, ...] = ()
    """Cycles that recalled it afterwards, the first ones of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRow:
    """One retrieval."""

    cycle: int
    query: str
    hits: tuple[RecalledRecord, ...]
    """With the parts of their scores."""
    left_out: tuple[str, ...] = ()
    """Ids of those for which the prompt had no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """A page of each."""

    written: tuple[RecordRow, ...] = ()
    written_total: int = 0
    recalls: tuple[RecallRow, ...] = ()
    """Retrievals that brought something, newest first."""
    recalls_total: int = 0
    page: int = 1
    pages: int = 1
    unreadable: int = 0
    """How many of what was written on this page are no records."""


_PAGE = 25
"""Records and retrievals on a page."""
_CYCLES = 12
"""Cycles that are kept of those that recalled a record."""
_IDS = 50_000
"""Records whose recalling cycles are kept."""


def read_memory(index: TraceIndex, page: int = 1, *, size: int = _PAGE) -> MemoryPage:
    """A page of the records written and one of the retrievals, both newest first.

    Args:
        index: The run's trace, as far as it was scanned.
        page: Its number, from 1; the nearest there is where it is out of range.
        size: How many of each are on it.

    Raises:
        TraceError: If the trace cannot be read.
    """
    written, recalls = list[int](), list[int]()
    recalled_by: dict[str, list[int]] = {}
    for position in _memory_positions(index):
        body = _record_at(index, position)
        if isinstance(body, Written) and body.what == "record":
            written.append(position)
        elif isinstance(body, RetrievalOutcome) and body.records:
            recalls.append(position)
            for name in (hit.record.id for hit in body.records):
                if name in recalled_by or len(recalled_by) < _IDS:
                    cycles = recalled_by.setdefault(name, [])
                    cycles += [body.cycle] if len(cycles) < _CYCLES else []
    pages = max(1, math.ceil(max(len(written), len(recalls)) / size))
    page = min(max(1, page), pages)
    shown = slice((page - 1) * size, page * size)
    rows = [_record_row(index, position, recalled_by) for position in written[::-1][shown]]
    return MemoryPage(
        written=tuple(row for row in rows if row is not None),
        written_total=len(written),
        recalls=tuple(_recall_rows(index, recalls[::-1][shown])),
        recalls_total=len(recalls),
        page=page,
        pages=pages,
        unreadable=rows.count(None),
    )


def _memory_positions(index: TraceIndex) -> Iterator[int]:
    """What was written, and the first outcome of each cycle: that of Retrieval."""
    last = -1
    for position in index.positions(RecordKind.WRITTEN, RecordKind.OUTCOME):
        if index.kind(position) is RecordKind.WRITTEN:
            yield position
        elif (stretch := index.stretch_of(position)) != last:
            last = stretch
            yield position


def _record_row(
    index: TraceIndex, position: int, recalled_by: Mapping[str, Sequence[int]]
) -> RecordRow | None:
    """The record that was written there; None for what is none."""
    written = _record_at(index, position)
    if not isinstance(written, Written):
        return None
    try:
        record = Record.model_validate(written.content)
    except ValidationError:
        return None
    after = tuple(cycle for cycle in recalled_by.get(record.id, ()) if cycle > written.cycle)
    return RecordRow(record=record, cycle=written.cycle, at=written.at, recalled=after)


def _recall_rows(index: TraceIndex, positions: Sequence[int]) -> Iterator[RecallRow]:
    for position in positions:
        body = _record_at(index, position)
        if isinstance(body, RetrievalOutcome):
            yield RecallRow(
                cycle=body.cycle, query=body.query, hits=body.records, left_out=body.left_out
            )


def _record_at(index: TraceIndex, position: int) -> TraceRecord | None:
    (line,) = index.read([position])
    return line.entry.body if line.entry else None


# ---- A text beside an earlier version of it, line by line ----


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a text beside an earlier version of it."""

    sort: Literal["same", "added", "removed", "skipped"]
    text: str
    """Of skipped lines: how many."""
    old: int | None = None
    """Number of the line in the earlier text, from 1."""
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureStep:
    """One version of a procedure."""

    version: int
    at: datetime | None
    cycle: int | None
    """The cycle in which it was written; None where it was there at the start."""
    author: str
    reason: str
    text: str
    diff: tuple[DiffLine, ...] = ()
    """Against the version before; empty for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureHistory:
    """All versions of one procedure that the trace tells of, oldest first."""

    name: str
    current: int
    """The version in force at the end."""
    steps: tuple[ProcedureStep, ...] = ()
    """Empty where only the number is known: it never changed, so its text is in no snapshot."""


_LINES = 2_000
"""Lines of either text that are compared, and characters of a line."""


def diff(old: str, new: str, *, around: int = 3) -> tuple[DiffLine, ...]:
    """What changed from one text to the next.

    Args:
        old: The earlier text.
        new: The later one.
        around: Unchanged lines that are kept beside each change.

    Returns:
        The lines in order, those removed before those added in their place. Beyond 2,000 lines
        and 2,000 characters of a line the texts are not compared.
    """
    before, after = _split(old), _split(new)
    found: list[DiffLine] = []
    at = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(around):
        found += _skipped(group[0][1] - at)
        for sort, a, b, c, d in group:
            if sort == "equal":
                found += [
                    DiffLine(sort="same", text=before[a + n], old=a + n + 1, new=c + n + 1)
                    for n in range(b - a)
                ]
            else:
                found += [DiffLine(sort="removed", text=before[n], old=n + 1) for n in range(a, b)]
                found += [DiffLine(sort="added", text=after[n], new=n + 1) for n in range(c, d)]
        at = group[-1][2]
    return (*found, *_skipped(len(before) - at))


def _split(text: str) -> list[str]:
    lines = text.split("\n", _LINES)
    shown = [line[:_LINES] for line in lines[:_LINES]]
    return [*shown, "…"] if len(lines) > _LINES else shown


def _skipped(count: int) -> list[DiffLine]:
    return [DiffLine(sort="skipped", text=str(count))] if count else []


# ---- The versions of each procedure ----


_NAMES = 100
"""Procedures that are given."""
_STEPS = 100
"""Versions of one that are given: the latest."""
_READ = 400
"""Snapshots that are read to find where versions changed."""
_WRITES = 2_000
"""Lines about what was written that are looked through for versions."""
_TEXT = 200_000
"""Characters of a version's text that are kept."""


@dataclass(slots=True)
class _VersionText:
    """One version, as far as it is known."""

    at: datetime | None
    cycle: int | None
    author: str
    reason: str
    text: str


_Texts = dict[str, dict[int, _VersionText]]


def read_procedures(index: TraceIndex) -> tuple[ProcedureHistory, ...]:
    """Every procedure of a run with its versions, those that changed in it first.

    Args:
        index: The run's trace, as far as it was scanned.

    Raises:
        TraceError: If the trace cannot be read.
    """
    found = _Versions(index)
    found.read()
    for position, written in _procedures_written(index):
        found.take_written(position, written)
    names = [*found.texts, *(name for name in found.current if name not in found.texts)]
    histories = [_history(name, found) for name in names[:_NAMES]]
    return tuple(sorted(histories, key=lambda one: (len(one.steps) < 2, not one.steps, one.name)))


def snapshots_with_texts(index: TraceIndex) -> list[int]:
    """The positions of the snapshots that hold procedures' texts: where versions changed.

    Raises:
        TraceError: If the trace cannot be read.
    """
    found = _Versions(index)
    found.read()
    return sorted(found.with_texts)


class _Versions:
    """The procedures in the snapshots of a trace, reading few of them."""

    def __init__(self, index: TraceIndex) -> None:
        self.texts: _Texts = {}
        self.current: dict[str, int] = {}
        self.with_texts: list[int] = []
        """The positions of those snapshots that hold texts."""
        self._index = index
        self._positions = list(index.positions(RecordKind.SNAPSHOT))
        self._versions: dict[int, Mapping[str, int]] = {}

    def read(self) -> None:
        """Reads the first and last snapshot, and each with which a version came into force."""
        last = len(self._positions) - 1
        if last < 0:
            return
        waiting = [(0, last)]
        while waiting and len(self._versions) < _READ:
            low, high = waiting.pop()
            same = self._in_force(low) == self._in_force(high)
            if not same and high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
        self.current = dict(self._in_force(last))

    def take_written(self, position: int, written: Written) -> None:
        """Adds a version that was written, unless a snapshot has it."""
        name, _, number = written.id.rpartition("@")
        if not name or not number.isdecimal() or len(number) > 9:
            return
        version = _version(written.content)
        if version.at is None:
            version.at, version.cycle = written.at, written.cycle
        self.texts.setdefault(name, {}).setdefault(int(number), version)
        if not self._positions or position > self._positions[-1]:
            self.current[name] = max(self.current.get(name, 0), int(number))

    def _in_force(self, which: int) -> Mapping[str, int]:
        if which not in self._versions:
            self._versions[which] = self._read(self._positions[which])
        return self._versions[which]

    def _read(self, position: int) -> Mapping[str, int]:
        (line,) = self._index.read([position])
        body = line.entry and line.entry.body
        if not isinstance(body, Snapshot):
            return {}
        histories = _object(_object(body.procedures.get("state")).get("procedures"))
        if histories:
            self.with_texts.append(position)
        self._take_state(histories)
        numbers = _object(body.procedures.get("versions"))
        return {name: number for name, number in numbers.items() if isinstance(number, int)}

    def _take_state(self, histories: Mapping[str, Any]) -> None:
        for name, versions in histories.items():
            for version in cast("list[Any]", versions if isinstance(versions, list) else []):
                number = _object(version).get("version")
                if isinstance(number, int):
                    self.texts.setdefault(name, {})[number] = _version(version)


def _procedures_written(index: TraceIndex) -> Iterator[tuple[int, Written]]:
    positions = list(index.positions(RecordKind.WRITTEN))[-_WRITES:]
    for position in positions:
        (line,) = index.read([position])
        body = line.entry and line.entry.body
        if isinstance(body, Written) and body.what == "procedure":
            yield position, body


def _history(name: str, found: _Versions) -> ProcedureHistory:
    versions = sorted(found.texts.get(name, {}).items())[-_STEPS:]
    steps: list[ProcedureStep] = []
    before: str | None = None
    for number, version in versions:
        steps.append(
            ProcedureStep(
                version=number,
                at=version.at,
                cycle=version.cycle,
                author=version.author,
                reason=version.reason,
                text=version.text,
                diff=() if before is None else diff(before, version.text),
            )
        )
        before = version.text
    current = found.current.get(name, versions[-1][0] if versions else 0)
    return ProcedureHistory(name=name, current=current, steps=tuple(steps))


def _version(content: object) -> _VersionText:
    """A version as it was written, whatever is missing or of another type."""
    fields = _object(content)
    cycle = fields.get("cycle")
    return _VersionText(
        at=_time(fields.get("at")),
        cycle=cycle if isinstance(cycle, int) else None,
        author=_text(fields.get("author")),
        reason=_text(fields.get("reason")),
        text=_text(fields.get("text")),
    )


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: object) -> str:
    return value[:_TEXT] if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# ---- The records that a decision can be based on ----


def records_of(index: TraceIndex, cycle: int) -> Iterator[TraceRecord]:
    """The records that a cycle can be based on: its own, and those since the cycle before began.

    The snapshot with the procedures' texts comes first. For an unknown cycle all are given.
    """
    stretches = index.of_cycle(cycle)
    first = index.stretch(max(0, stretches[0] - 1)).first if stretches else 0
    last = index.stretch(stretches[-1] if stretches else -1) if index.stretches else None
    end = last.first + last.count if last else 0
    texts = [at for at in snapshots_with_texts(index) if at < first][-1:]
    for position in (*texts, *range(first, end)):
        (line,) = index.read([position])
        if line.entry is not None:
            yield line.entry.body
