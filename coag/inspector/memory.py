"""What a run wrote to long-term memory and recalled, and the versions of its procedures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Literal, cast

from pydantic import ValidationError

from coag.schema import (
    RecalledState,
    Record,
    RetrievalOutcome,
    Snapshot,
    TraceRecord,
    Written,
)
from coag.tracing import RecordKind, TraceIndex

from .texts import object_of
from .trace_scan import bodies

# ---- Long-term memory ----


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record that was written in the run."""

    record: Record
    cycle: int
    at: datetime
    recalled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTrack:
    """How well one record was kept, at each of its recalls in the run."""

    record: Record
    state: RecalledState
    """At the last of them."""
    points: tuple[tuple[int, float], ...]
    """Cycle and strength, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """A page of the records written and one of the retrievals that brought something."""

    written: tuple[RecordRow, ...] = ()
    written_total: int = 0
    recalls: tuple[RetrievalOutcome, ...] = ()
    recalls_total: int = 0
    kept: tuple[KeptTrack, ...] = ()
    """Of the retrievals on this page; empty where the memory has no dynamics."""
    page: int = 1
    pages: int = 1
    unreadable: int = 0
    """How many of what was written on this page are no records."""


_PAGE = 25
"""Records and retrievals on a page."""
_TRACKS = 12
"""Records whose strength is drawn."""
_CYCLES = 12
"""Cycles that are kept of those that recalled a record."""
_IDS = 50_000
"""Records whose recalling cycles are kept."""


def read_memory(index: TraceIndex, page: int = 1, *, size: int = _PAGE) -> MemoryPage:
    """A page of the records written and of the retrievals, newest first; the nearest there is."""
    written, recalls = list[int](), list[int]()
    recalled_by: dict[str, list[int]] = {}
    for position in _memory_positions(index):
        for body in bodies(index, [position]):
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
    on_page = slice((page - 1) * size, page * size)
    rows = [_record_row(body, recalled_by) for body in bodies(index, written[::-1][on_page])]
    recalled = bodies(index, recalls[::-1][on_page])
    shown = tuple(one for one in recalled if isinstance(one, RetrievalOutcome))
    return MemoryPage(
        written=tuple(row for row in rows if row is not None),
        written_total=len(written),
        recalls=shown,
        kept=_kept(shown),
        recalls_total=len(recalls),
        page=page,
        pages=pages,
        unreadable=rows.count(None),
    )


def _kept(recalls: Sequence[RetrievalOutcome]) -> tuple[KeptTrack, ...]:
    """The records that come with how they are kept, the weakest first."""
    tracks: dict[str, KeptTrack] = {}
    for row in reversed(recalls):
        for hit in row.records:
            if hit.state is not None:
                before = tracks[hit.record.id].points if hit.record.id in tracks else ()
                points = (*before, (row.cycle, hit.state.strength))
                tracks[hit.record.id] = KeptTrack(record=hit.record, state=hit.state, points=points)
    return tuple(sorted(tracks.values(), key=lambda one: one.state.strength)[:_TRACKS])


def _memory_positions(index: TraceIndex) -> Iterator[int]:
    """What was written, and the first outcome of each cycle: that of Retrieval."""
    last = -1
    for position in index.positions(RecordKind.WRITTEN, RecordKind.OUTCOME):
        if index.kind(position) is RecordKind.WRITTEN:
            yield position
        elif (stretch := index.stretch_of(position)) != last:
            last = stretch
            yield position


def _record_row(written: TraceRecord, recalled_by: Mapping[str, Sequence[int]]) -> RecordRow | None:
    """The record that was written; None for what is none."""
    if not isinstance(written, Written):
        return None
    try:
        record = Record.model_validate(written.content)
    except ValidationError:
        return None
    after = tuple(cycle for cycle in recalled_by.get(record.id, ()) if cycle > written.cycle)
    return RecordRow(record=record, cycle=written.cycle, at=written.at, recalled=after)


# ---- A text beside an earlier version of it, line by line ----


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a text beside an earlier version of it; numbers are from 1."""

    sort: Literal["same", "added", "removed", "skipped"]
    text: str
    """Of skipped lines: how many."""
    old: int | None = None
    new: int | None = None


_LINES = 2_000
"""Lines of either text that are compared, and characters of a line."""


def diff(old: str, new: str, *, around: int = 3) -> tuple[DiffLine, ...]:
    """What changed from one text to the next, with so many unchanged lines beside each change.

    Lines removed come before those added in their place. Beyond 2,000 lines and 2,000 characters
    of a line the texts are not compared.
    """
    before, after = _split(old), _split(new)
    lines: list[DiffLine] = []
    at = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(around):
        lines += _skipped(group[0][1] - at)
        for sort, a, b, c, d in group:
            if sort == "equal":
                for n, m in zip(range(a, b), range(c, d), strict=True):
                    lines.append(DiffLine(sort="same", text=before[n], old=n + 1, new=m + 1))
            else:
                lines += [DiffLine(sort="removed", text=before[n], old=n + 1) for n in range(a, b)]
                lines += [DiffLine(sort="added", text=after[n], new=n + 1) for n in range(c, d)]
        at = group[-1][2]
    return (*lines, *_skipped(len(before) - at))


def _split(text: str) -> list[str]:
    lines = text.split("\n", _LINES)
    cut = [line[:_LINES] for line in lines[:_LINES]]
    return [*cut, "…"] if len(lines) > _LINES else cut


def _skipped(count: int) -> list[DiffLine]:
    return [DiffLine(sort="skipped", text=str(count))] if count else []


# ---- The versions of each procedure ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureStep:
    """One version of a procedure, as far as it is known."""

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
    """All versions of one procedure in the trace, oldest first."""

    name: str
    current: int
    steps: tuple[ProcedureStep, ...] = ()
    """Empty where only the number is known: it never changed, so its text is in no snapshot."""


_NAMES, _STEPS = 100, 100
"""Procedures that are given, and versions of one: the latest."""
_READ = 400
"""Snapshots that are read to find where versions changed."""
_WRITES = 2_000
"""Lines about what was written that are looked through for versions."""
_TEXT = 200_000
"""Characters of a version's text that are kept."""


def read_procedures(index: TraceIndex) -> tuple[ProcedureHistory, ...]:
    """Every procedure of a run with its versions, those that changed in it first."""
    versions = _Versions(index)
    for position in list(index.positions(RecordKind.WRITTEN))[-_WRITES:]:
        for body in bodies(index, [position]):
            if isinstance(body, Written) and body.what == "procedure":
                versions.take_written(position, body)
    histories: list[ProcedureHistory] = []
    for name in list(dict.fromkeys([*versions.steps, *versions.current]))[:_NAMES]:
        steps = [step for _, step in sorted(versions.steps.get(name, {}).items())[-_STEPS:]]
        later = [replace(new, diff=diff(old.text, new.text)) for old, new in pairwise(steps)]
        current = versions.current.get(name, steps[-1].version if steps else 0)
        shown = (*steps[:1], *later)
        histories.append(ProcedureHistory(name=name, current=current, steps=shown))
    return tuple(sorted(histories, key=lambda one: (len(one.steps) < 2, not one.steps, one.name)))


class _Versions:
    """The procedures in the snapshots of a trace.

    It reads the first and last snapshot, and each with which a version came into force.
    """

    def __init__(self, index: TraceIndex) -> None:
        self.steps: dict[str, dict[int, ProcedureStep]] = {}
        self.current: dict[str, int] = {}
        self.with_texts: list[int] = []
        """The positions of those snapshots that hold texts."""
        self._index = index
        self._positions = list(index.positions(RecordKind.SNAPSHOT))
        self._versions: dict[int, Mapping[str, int]] = {}
        last = len(self._positions) - 1
        waiting = [(0, last)] if last >= 0 else []
        while waiting and len(self._versions) < _READ:
            low, high = waiting.pop()
            if self._in_force(low) != self._in_force(high) and high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
        if last >= 0:
            self.current = dict(self._in_force(last))

    def take_written(self, position: int, written: Written) -> None:
        """Adds a version that was written, unless a snapshot has it."""
        name, _, number = written.id.rpartition("@")
        if not name or not number.isdecimal() or len(number) > 9:
            return
        step = _step(int(number), written.content)
        if step.at is None:
            step = replace(step, at=written.at, cycle=written.cycle)
        self.steps.setdefault(name, {}).setdefault(int(number), step)
        if not self._positions or position > self._positions[-1]:
            self.current[name] = max(self.current.get(name, 0), int(number))

    def _in_force(self, which: int) -> Mapping[str, int]:
        if which not in self._versions:
            self._versions[which] = self._read(self._positions[which])
        return self._versions[which]

    def _read(self, position: int) -> Mapping[str, int]:
        (body,) = bodies(self._index, [position]) or (None,)
        if not isinstance(body, Snapshot):
            return {}
        histories = object_of(object_of(body.procedures.get("state")).get("procedures"))
        if histories:
            self.with_texts.append(position)
        for name, versions in histories.items():
            for version in cast("list[Any]", versions if isinstance(versions, list) else []):
                number = object_of(version).get("version")
                if isinstance(number, int):
                    self.steps.setdefault(name, {})[number] = _step(number, version)
        numbers = object_of(body.procedures.get("versions"))
        return {name: number for name, number in numbers.items() if isinstance(number, int)}


def _step(number: int, content: object) -> ProcedureStep:
    """A version as it was written, whatever is missing or of another type."""
    fields = object_of(content)
    author, reason, text, at = (
        fields[name][:_TEXT] if isinstance(fields.get(name), str) else ""
        for name in ("author", "reason", "text", "at")
    )
    cycle = fields.get("cycle")
    cycle = cycle if isinstance(cycle, int) else None
    when: datetime | None = None
    with suppress(ValueError):
        when = datetime.fromisoformat(at)
    return ProcedureStep(
        version=number, at=when, cycle=cycle, author=author, reason=reason, text=text
    )


# ---- The records that a decision can be based on ----


def records_of(index: TraceIndex, cycle: int) -> Iterator[TraceRecord]:
    """The records that a cycle can be based on: its own, and those since the cycle before began.

    The snapshot with the procedures' texts comes first. For an unknown cycle all are given.
    """
    stretches = index.of_cycle(cycle)
    first = index.stretch(max(0, stretches[0] - 1)).first if stretches else 0
    last = index.stretch(stretches[-1] if stretches else -1) if index.stretches else None
    end = last.first + last.count if last else 0
    texts = [at for at in sorted(_Versions(index).with_texts) if at < first][-1:]
    for position in (*texts, *range(first, end)):
        yield from bodies(index, [position])
