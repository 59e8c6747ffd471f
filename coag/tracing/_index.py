"""Where each record of a trace stands, so that any cycle of a long one is read by itself."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from coag.errors import TraceError

from ._heads import HEAD, NO_ENVIRONMENT, RecordKind, time_of, told
from ._lines import LONGEST_LINE, TraceLine, line_by_itself
from ._regular import regular
from ._same import SameFile
from ._stretch import Stretch

_BUFFER = 1 << 17
"""Bytes that are read at a time; many records have tens of thousands."""
_FOREIGN = 10_000
"""Lines that are no records at the beginning of a file, after which it is none of ours."""
_STANDS_BEFORE = frozenset(
    {RecordKind.SNAPSHOT, RecordKind.TURN_END, RecordKind.ACTIONS, RecordKind.UNREADABLE}
)
"""Records that do not tell which cycle a stretch is of."""


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
        """Why what was scanned says nothing any more; empty where it does."""

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
        with self._lock:
            try:
                with open(self.path, "rb", buffering=_BUFFER, opener=regular) as file:
                    return self._scan(file, limit)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise TraceError(self.path, f"cannot be read: {error.strerror}") from error

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
        """Notes one line. What is told of last is what makes it be seen by other threads."""
        kind, cycle, begins = told(line)
        position = len(self._kinds)
        self._kinds.append(kind)
        self._ours = self._ours or kind is not RecordKind.UNREADABLE
        tells = kind not in _STANDS_BEFORE
        later = tells and bool(self._cycles) and 0 < self._cycles[-1] < cycle
        if not self._firsts or (begins and self._acted) or later:
            self._cycles.append(0)
            self._firsts.append(position)
            self._acted = False
        if kind is RecordKind.SNAPSHOT and not line.endswith(NO_ENVIRONMENT):
            self._environments.append(position)
        if begins or kind is RecordKind.PERCEPT:
            return
        self._acted = True
        if tells:
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
        """The positions of the stretches of one cycle: one, or several where a turn broke off."""
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
        """Snapshots that stand before a position and may hold the environment, newest first.

        The state of the environment is written where it has changed, so the first one that holds
        it is how the environment was then. Those of other writers may turn out to hold none.
        """
        end = bisect_left(self._environments, before)
        return reversed(self._environments[:end])

    # ---- reading ----

    def times(self, positions: Sequence[int]) -> list[datetime | None]:
        """When the lines at some positions were recorded, without reading more than their heads.

        Returns:
            One for each; None where the head of the line does not tell.

        Raises:
            TraceError: If the file cannot be read.
        """
        return [time_of(head) for head in self._texts(positions, HEAD)]

    def read(self, positions: Sequence[int]) -> list[TraceLine]:
        """The lines at some positions, parsed, in the order asked for.

        Their hashes are not checked (`coag.proof.verify` does); a line that cannot be read has
        a problem in place of an entry.

        Raises:
            TraceError: If the file cannot be read.
        """
        texts = zip(positions, self._texts(positions), strict=True)
        return [line_by_itself(self.path, at + 1, text) for at, text in texts]

    def read_stretch(
        self, number: int, kinds: Container[RecordKind] | None = None
    ) -> list[TraceLine]:
        """The lines of one stretch, parsed.

        Args:
            number: The stretch's position.
            kinds: Only lines of these kinds are read; None for all.

        Raises:
            IndexError: If there is no such stretch.
            TraceError: If the file cannot be read.
        """
        stretch = self.stretch(number)
        positions = range(stretch.first, stretch.first + stretch.count)
        if kinds is None:
            return self.read(positions)
        return self.read([at for at in positions if RecordKind(self._kinds[at]) in kinds])

    def _texts(self, positions: Sequence[int], most: int = LONGEST_LINE) -> Iterator[bytes]:
        """The lines at some positions, of long ones the beginning."""
        try:
            with open(self.path, "rb", opener=regular) as file:
                for position in positions:
                    file.seek(self._offsets[position])
                    yield file.read(min(most, self.length(position)))
        except OSError as error:
            raise TraceError(self.path, f"cannot be read: {error.strerror}") from error
