"""Procedures over cycles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, cast

from coag.inspector.views import DiffLine, ProcedureHistory, ProcedureStep
from coag.schema import Snapshot, TraceRecord, Written
from coag.tracing import RecordKind, TraceIndex

# ---- A text beside an earlier version of it, line by line ----


_LINES = 2_000
"""Lines of either text that are compared."""
_LONG = 2_000
"""Characters of a line that are kept."""


def diff(old: str, new: str, *, around: int | None = 3) -> tuple[DiffLine, ...]:
    """What changed from one text to the next.

    Args:
        old: The earlier text.
        new: The later one.
        around: Lines that stay the same which are kept beside each change; None for all.

    Returns:
        The lines in order, those removed before those added in their place. Beyond 2,000 lines
        and 2,000 characters of a line the texts are not compared.
    """
    lines = list(_compared(_lines(old), _lines(new)))
    return tuple(lines if around is None else _folded(lines, around))


def _lines(text: str) -> list[str]:
    lines = text.split("\n", _LINES)
    rest = len(lines) > _LINES
    kept = [line[:_LONG] for line in lines[:_LINES]]
    return [*kept, "…"] if rest else kept


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for sort, a, b, c, d in matcher.get_opcodes():
        if sort == "equal":
            for step in range(b - a):
                place = {"old": a + step + 1, "new": c + step + 1}
                yield DiffLine(sort="same", text=old[a + step], **place)
            continue
        for number in range(a, b):
            yield DiffLine(sort="removed", text=old[number], old=number + 1)
        for number in range(c, d):
            yield DiffLine(sort="added", text=new[number], new=number + 1)


def _folded(lines: Sequence[DiffLine], around: int) -> Iterator[DiffLine]:
    """Without what is far from every change; of that only how many lines it is."""
    changed = [number for number, line in enumerate(lines) if line.sort != "same"]
    kept = {
        near
        for number in changed
        for near in range(max(0, number - around), min(len(lines), number + around + 1))
    }
    skipped = 0
    for number, line in enumerate(lines):
        if number in kept:
            if skipped:
                yield DiffLine(sort="skipped", text=str(skipped))
                skipped = 0
            yield line
        else:
            skipped += 1
    if skipped:
        yield DiffLine(sort="skipped", text=str(skipped))


# ---- The versions of each procedure that a trace tells of ----


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
class _Version:
    """One version, as far as it is told."""

    at: datetime | None
    cycle: int | None
    author: str
    reason: str
    text: str


_Texts = dict[str, dict[int, _Version]]


def procedures(index: TraceIndex) -> tuple[ProcedureHistory, ...]:
    """Every procedure of a run with its versions, those that changed in it first.

    Args:
        index: The run's trace, as far as it was scanned.

    Raises:
        TraceError: If the trace cannot be read.
    """
    seen = _Seen(index)
    seen.look()
    for position, written in _procedures_written(index):
        seen.take_written(position, written)
    names = [*seen.texts, *(name for name in seen.current if name not in seen.texts)]
    histories = [_history(name, seen) for name in names[:_NAMES]]
    return tuple(sorted(histories, key=lambda one: (len(one.steps) < 2, not one.steps, one.name)))


def snapshots_with_texts(index: TraceIndex) -> list[int]:
    """The positions of the snapshots that hold procedures' texts: where versions changed.

    Raises:
        TraceError: If the trace cannot be read.
    """
    seen = _Seen(index)
    seen.look()
    return sorted(seen.with_texts)


class _Seen:
    """What the snapshots tell of procedures, reading few of them."""

    def __init__(self, index: TraceIndex) -> None:
        self.texts: _Texts = {}
        self.current: dict[str, int] = {}
        self.with_texts: list[int] = []
        """The positions of those snapshots that hold texts."""
        self._index = index
        self._positions = list(index.positions(RecordKind.SNAPSHOT))
        self._versions: dict[int, Mapping[str, int]] = {}

    def look(self) -> None:
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
        """Adds a version that was written, unless a snapshot tells of it."""
        name, _, number = written.id.rpartition("@")
        if not name or not number.isdecimal() or len(number) > 9:
            return
        told = _version(written.content)
        if told.at is None:
            told.at, told.cycle = written.at, written.cycle
        self.texts.setdefault(name, {}).setdefault(int(number), told)
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
        told = _object(body.procedures.get("versions"))
        return {name: number for name, number in told.items() if isinstance(number, int)}

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


def _history(name: str, seen: _Seen) -> ProcedureHistory:
    versions = sorted(seen.texts.get(name, {}).items())[-_STEPS:]
    steps: list[ProcedureStep] = []
    before: str | None = None
    for number, told in versions:
        steps.append(
            ProcedureStep(
                version=number,
                at=told.at,
                cycle=told.cycle,
                author=told.author,
                reason=told.reason,
                text=told.text,
                diff=() if before is None else diff(before, told.text),
            )
        )
        before = told.text
    current = seen.current.get(name, versions[-1][0] if versions else 0)
    return ProcedureHistory(name=name, current=current, steps=tuple(steps))


def _version(content: object) -> _Version:
    """What is told of a version, whatever is missing or of another sort."""
    told = _object(content)
    cycle = told.get("cycle")
    return _Version(
        at=_time(told.get("at")),
        cycle=cycle if isinstance(cycle, int) else None,
        author=_text(told.get("author")),
        reason=_text(told.get("reason")),
        text=_text(told.get("text")),
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


# ---- The records of a trace on which a cycle can have rested ----


def records_of(index: TraceIndex, cycle: int) -> Iterator[TraceRecord]:
    """What a cycle can have rested on: its own records, and those since the cycle before began.

    Before them the snapshot that holds the procedures' texts. Of a cycle that is not there all.
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
