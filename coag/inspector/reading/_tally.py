"""What a run came to in numbers, found by reading its trace a piece at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from coag.errors import TraceError
from coag.schema import ModelCall, TokenUsage, TurnEnd
from coag.tracing import RecordKind, TraceIndex, asked_in

_PIECE = 1 << 22
"""Bytes that are scanned at a time."""
_COUNTED = frozenset({RecordKind.MODEL_CALL, RecordKind.TURN_END})


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over a whole trace."""

    cycles: int = 0
    """Its last cycle, of a plain run the last turn."""
    calls: int = 0
    """Requests to models, failed ones too."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    ended: str = ""
    """Why the last turn ended; empty where none did."""
    goal: str = ""
    """What was asked first; empty where nothing was."""


class _Stamp(NamedTuple):
    """By what it is seen that a trace has grown or is another one."""

    device: int
    number: int
    size: int
    """Bytes; 0 where it is not there, or is no file of its folder but a link."""


_NOTHING = _Stamp(0, 0, 0)


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.lstat()
    except OSError:
        return _NOTHING
    regular = S_ISREG(found.st_mode)
    return _Stamp(found.st_dev, found.st_ino, found.st_size) if regular else _NOTHING


def file_size(path: Path) -> int:
    """Bytes of a trace; 0 where it is not there, or is no file of its folder but a link."""
    return _stamp(path).size


class Tally:
    """Counts a trace as far as it was read, and goes on from there when it has grown.

    Args:
        path: A run's `trace.jsonl`; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        """The trace that is counted."""
        self._stamp: _Stamp | None = None
        """Of the trace when all of it was counted; None before that."""
        self._anew()

    def _anew(self) -> None:
        self._index = TraceIndex(self.path)
        self._counted = 0
        """Lines that were counted."""
        self._totals = Totals()

    @property
    def totals(self) -> Totals | None:
        """The sums; None until the whole trace was read once."""
        return None if self._stamp is None else self._totals

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return _stamp(self.path) != self._stamp

    def advance(self) -> bool:
        """Counts a piece more.

        Returns:
            True if there is more to count. What cannot be read is done with, as far as it got.
        """
        stamp = _stamp(self.path)
        if stamp.size < self._index.scanned:
            self._anew()
        if not stamp.size:
            self._stamp = stamp
            return False
        more = self._scan()
        if self._index.void:
            self._anew()
            return True
        self._count()
        if not more:
            self._stamp = stamp
        return more

    def _scan(self) -> bool:
        """Scans a piece; False at the end, or where it cannot be read on: `OpenRun` says why."""
        try:
            return self._index.extend(_PIECE)
        except TraceError:
            return False

    def _count(self) -> None:
        index, totals = self._index, self._totals
        positions = range(self._counted, index.lines)
        calls, usage, ended, goal = totals.calls, totals.usage, totals.ended, totals.goal
        for at in positions:
            kind = index.kind(at)
            if kind not in _COUNTED and (goal or kind is not RecordKind.PERCEPT):
                continue
            entry = index.read([at])[0].entry
            if entry is not None and isinstance(entry.body, ModelCall):
                calls, usage = calls + 1, usage + entry.body.usage
            elif entry is not None and isinstance(entry.body, TurnEnd):
                ended = entry.body.reason
            elif entry is not None:
                goal = asked_in(entry.body)
        self._counted = positions.stop
        self._totals = Totals(
            cycles=index.last_cycle, calls=calls, usage=usage, ended=ended, goal=goal
        )
