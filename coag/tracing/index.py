"""An index of a trace: which line holds what; lines are read on request."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from coag.errors import TraceError
from coag.schema import TRACE_VERSION, Percept, Snapshot, SnapshotReason, TurnStart

from .files import SameFile, regular, trace_errors
from .hash_chain import LONGEST_LINE, TraceLine, Unreadable, line_by_itself, parse_line

# ---- What a line of a trace is, known from its beginning: it need not be parsed ----


HEAD = 600
"""Bytes of a line in which a writer has said what it is and which cycle it is of."""
_RECORD = re.compile(rb'^\{"v":(\d+),"seq":\d+,(?:"hash":"\w*",)?"body":\{"record":"(\w+)"')
_SCALARS = rb'(?:,"(?:id|intent_id|at|turn)":(?:"[^"\\]*"|\d+))*'
_CYCLE = re.compile(_SCALARS + rb',"cycle":(\d{1,9})(?:,"reason":"(\w+)")?[,}]')
_AT = re.compile(rb'[{,]"at":"([0-9T:.Z+-]{10,40})"')
NO_ENVIRONMENT = b'"environment":null}}\n'
"""How a line ends whose snapshot holds no environment."""
_MOST = 10**9
"""Greatest number of a cycle; a larger one is none."""
_SHORTEST = 48
"""Bytes; fewer than those of any record: a number, a body, its kind, a time and a cycle."""
_NAMES = (b'"seq"', b'"body"', b'"record"')
"""What every record says, unless its names are escaped."""
_NAMES_NO_CYCLE = frozenset({b"turn_start", b"percept"})
"""Records whose cycle is not looked up: it is that of the records after them."""


class RecordKind(IntEnum):
    """What a line holds, as `record` says it; in the order of `coag.schema.TraceRecord`."""

    UNREADABLE = 0
    """No record that this version knows."""
    OUTCOME = 1
    PERCEPT = 2
    MODEL_CALL = 3
    INTENT = 4
    RECEIPT = 5
    SNAPSHOT = 6
    ACTIONS = 7
    NOTE = 8
    TURN_START = 9
    TURN_END = 10
    WRITTEN = 11


_KINDS = {kind.name.lower().encode(): kind for kind in RecordKind if kind}


def time_of(head: bytes) -> datetime | None:
    """When a line was recorded, from its head; None where that does not say it."""
    match = _AT.search(head)
    if match is None:
        return None
    try:
        at = datetime.fromisoformat(match[1].decode())
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


_NOTHING = (RecordKind.UNREADABLE, 0, False)


def line_kind(line: bytes) -> tuple[RecordKind, int, bool]:
    """What a line says it is, which cycle it names (0 for none), and whether a stretch begins."""
    head = line[:HEAD]
    match = _RECORD.match(head)
    if match is None or int(match[1]) != TRACE_VERSION or not line.endswith(b"}}\n"):
        return _parsed_kind(line)
    kind = _KINDS.get(match[2], RecordKind.UNREADABLE)
    if match[2] in _NAMES_NO_CYCLE:
        return kind, 0, kind is RecordKind.TURN_START
    cycle = _CYCLE.match(head, match.end())
    if cycle is None or (kind is RecordKind.SNAPSHOT and cycle[2] is None):
        return _parsed_kind(line)
    return kind, int(cycle[1]), kind is RecordKind.SNAPSHOT and cycle[2] == b"cycle"


def _parsed_kind(line: bytes) -> tuple[RecordKind, int, bool]:
    """The same of a line that was not written as a writer of this version does it."""
    if _no_record(line):
        return _NOTHING
    parsed = parse_line(line)
    if isinstance(parsed, Unreadable):
        return _NOTHING
    body = parsed.entry.body
    kind = _KINDS[body.record.encode()]
    if isinstance(body, Percept | TurnStart):
        return kind, 0, isinstance(body, TurnStart)
    begins = isinstance(body, Snapshot) and body.reason is SnapshotReason.CYCLE
    return kind, body.cycle if 0 <= body.cycle < _MOST else 0, begins


def _no_record(line: bytes) -> bool:
    """True of a line that need not be parsed to be known as none."""
    if len(line) < _SHORTEST:
        return True
    return b"\\" not in line and not all(name in line for name in _NAMES)


# ---- What belongs together in a trace ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring lines that belong to one cycle, or of a plain run to one turn.

    It begins with the turn's start or the cycle's snapshot and ends before the next one's, so
    that what an action brought back is in the cycle that ran it. Where neither was written,
    it begins with the first record that names a later cycle.
    """

    cycle: int
    """The cycle, of a plain run the turn; 0 for what is before the first."""
    first: int
    """Position of its first line, from 0."""
    count: int
    """How many lines it has so far."""


# ---- Where each record of a trace is, so that any cycle of a long one is read by itself ----


_BUFFER = 1 << 17
"""Bytes that are read at a time; many records have tens of thousands."""
_FOREIGN = 10_000
"""Lines that are no records at the beginning of a file, after which it is none of ours."""
_NAMES_NO_STRETCH = frozenset(
    {RecordKind.SNAPSHOT, RecordKind.TURN_END, RecordKind.ACTIONS, RecordKind.UNREADABLE}
)
"""Records that do not say which cycle a stretch is of."""


class TraceIndex:
    """Finds the lines of a trace by cycle and by kind, without keeping what they hold.

    The trace is scanned piece by piece (`extend`), also while it grows; about 13 bytes a line are
    kept. Lines are parsed when they are asked for, one cycle at a time. It may be used from
    several threads.

    Args:
        path: A run's `trace.jsonl`; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._offsets = array("Q", [0])
        """Where each line begins, and last where the next one will."""
        self._kinds = array("B")
        self._firsts = array("Q")
        """The first line of each stretch."""
        self._cycles = array("Q")
        """The cycle of each stretch."""
        self._environments = array("Q")
        """Snapshots that may hold the state of the environment."""
        self._acted = False
        """True once the last stretch holds more than what a turn begins with."""
        self._torn = 0
        """Bytes after the last whole line."""
        self._ours = False
        """True once a record was met."""
        self._same = SameFile()
        self._void = ""
        """Why what was scanned is not valid any more; empty where it is."""

    # ---- scanning ----

    def extend(self, limit: int = 1 << 25) -> bool:
        """Scans on, where there is more.

        Args:
            limit: Bytes after which it stops, at the end of a line.

        Returns:
            True if there is more to scan now; call again.

        Raises:
            TraceError: If the file cannot be read, is no file, holds a line that is longer than
                any record or begins with many that are none, or is not the file any more that
                was scanned (`void`).
        """
        with self._lock, trace_errors(self.path, "cannot be read"):
            try:
                with open(self.path, "rb", buffering=_BUFFER, opener=regular) as file:
                    return self._scan(file, limit)
            except FileNotFoundError:
                return False

    def _scan(self, file: BinaryIO, limit: int) -> bool:
        begin = at = self._offsets[-1]
        self._void = self._void or self._same.problem(file, begin)
        if self._void:
            raise TraceError(self.path, self._void)
        file.seek(begin)
        self._torn = 0
        while line := file.readline(LONGEST_LINE + 1):
            if not self._ours and len(self._kinds) >= _FOREIGN:
                what = f"begins with {_FOREIGN:,} lines that are no records"
                raise TraceError(self.path, f"{what}, so this is no trace of coag")
            if not line.endswith(b"\n"):
                if len(line) > LONGEST_LINE:
                    where = f"line {len(self._kinds) + 1} is over {LONGEST_LINE:,} bytes"
                    raise TraceError(self.path, f"{where}, so this is no trace of coag")
                self._torn = len(line)
                return False
            at += len(line)
            self._offsets.append(at)
            self._take(line)
            if at - begin >= limit:
                return file.read(1) != b""
        return False

    def _take(self, line: bytes) -> None:
        """Notes one line. What is added last makes it visible to other threads."""
        kind, cycle, begins = line_kind(line)
        position = len(self._kinds)
        self._kinds.append(kind)
        self._ours = self._ours or kind is not RecordKind.UNREADABLE
        names_cycle = kind not in _NAMES_NO_STRETCH
        later = names_cycle and bool(self._cycles) and 0 < self._cycles[-1] < cycle
        if not self._firsts or (begins and self._acted) or later:
            self._cycles.append(0)
            self._firsts.append(position)
            self._acted = False
        if kind is RecordKind.SNAPSHOT and not line.endswith(NO_ENVIRONMENT):
            self._environments.append(position)
        if begins or kind is RecordKind.PERCEPT:
            return
        self._acted = True
        if names_cycle:
            self._cycles[-1] = max(self._cycles[-1], cycle)

    # ---- what is there ----

    @property
    def void(self) -> str:
        """What happened to the file that was scanned, if it is another now; make a new index."""
        return self._void

    @property
    def scanned(self) -> int:
        """Bytes scanned so far."""
        return self._offsets[-1]

    @property
    def size(self) -> int:
        """Bytes of the file now; 0 where there is none."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def torn(self) -> int:
        """Bytes after the last whole line when it was last scanned.

        They are half a line: it is being written, or was left by a run that was killed.
        """
        return self._torn

    @property
    def lines(self) -> int:
        """How many lines were scanned."""
        return len(self._kinds)

    @property
    def stretches(self) -> int:
        """How many stretches were met."""
        return len(self._firsts)

    def stretch(self, number: int) -> Stretch:
        """One stretch.

        Args:
            number: Its position, from 0; negative ones count from the end.

        Raises:
            IndexError: If there is none.
        """
        number = range(len(self._firsts))[number]
        first = self._firsts[number]
        end = self._firsts[number + 1] if number + 1 < len(self._firsts) else len(self._kinds)
        return Stretch(cycle=self._cycles[number], first=first, count=end - first)

    def of_cycle(self, cycle: int) -> list[int]:
        """The positions of the stretches of one cycle: one, or several after an interruption."""
        return [at for at, of in enumerate(self._cycles) if of == cycle]

    @property
    def last_cycle(self) -> int:
        """The highest cycle met; 0 for none."""
        return max(self._cycles, default=0)

    def stretch_of(self, line: int) -> int:
        """The position of the stretch that a line belongs to."""
        return bisect_right(self._firsts, line) - 1

    def count(self, kind: RecordKind) -> int:
        """How many lines of a kind were scanned."""
        return self._kinds.count(kind)

    def positions(self, *kinds: RecordKind) -> Iterator[int]:
        """The positions of all lines of some kinds, in order."""
        wanted = frozenset(kinds)
        for position in range(len(self._kinds)):
            if self._kinds[position] in wanted:
                yield position

    def kind(self, position: int) -> RecordKind:
        """What the line at a position holds."""
        return RecordKind(self._kinds[position])

    def length(self, position: int) -> int:
        """Bytes of the line at a position."""
        return self._offsets[position + 1] - self._offsets[position]

    def environments(self, before: int) -> Iterator[int]:
        """Snapshots before a position that may hold the environment, newest first.

        The state of the environment is written where it has changed, so the first one that holds
        it is how the environment was then. Those of other writers may turn out to hold none.
        """
        end = bisect_left(self._environments, before)
        return reversed(self._environments[:end])

    # ---- reading ----

    def times(self, positions: Sequence[int]) -> list[datetime | None]:
        """When the lines at some positions were recorded, without reading more than their heads.

        Returns:
            One for each; None where the head of the line does not say it.

        Raises:
            TraceError: If the file cannot be read.
        """
        return [time_of(head) for head in self.raw(positions, HEAD)]

    def read(self, positions: Sequence[int]) -> list[TraceLine]:
        """The lines at some positions, parsed, in the order asked for.

        Their hashes are not checked (`coag.proof.verify` does); a line that cannot be read has
        a problem in place of an entry.

        Raises:
            TraceError: If the file cannot be read.
        """
        texts = zip(positions, self.raw(positions), strict=True)
        return [line_by_itself(self.path, at + 1, text) for at, text in texts]

    def raw(self, positions: Sequence[int], most: int = LONGEST_LINE) -> Iterator[bytes]:
        """The lines at some positions as they are in the file, of long ones the beginning.

        Raises:
            TraceError: If the file cannot be read.
        """
        with (
            trace_errors(self.path, "cannot be read"),
            open(self.path, "rb", opener=regular) as file,
        ):
            for position in positions:
                file.seek(self._offsets[position])
                yield file.read(min(most, self.length(position)))
