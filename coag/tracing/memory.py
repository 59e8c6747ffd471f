"""A trace in RAM, for agents that write nothing to disk, and for tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from coag.schema import Entry, TraceRecord


@dataclass(frozen=True, slots=True)
class _Later:
    """A record that nobody has read yet."""

    make: Callable[[], TraceRecord]


class MemoryTrace:
    """Keeps the last records of a run; a `TraceSink`.

    Args:
        limit: How many records are kept; older ones are dropped.
    """

    def __init__(self, limit: int = 10_000) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit!r}")
        self._kept: deque[TraceRecord | _Later] = deque(maxlen=limit)
        self._count = 0

    def write(self, record: TraceRecord) -> None:
        """Appends a record; drops the oldest one if the trace is full."""
        self._append(record)

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Appends a record that is not made before it is read, which most never are."""
        self._append(_Later(make))

    def _append(self, record: TraceRecord | _Later) -> None:
        self._kept.append(record)
        self._count += 1

    def flush(self) -> None:
        """Does nothing: what is in RAM dies with the process."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is kept, oldest first, numbered from the run's first record."""
        return tuple(Entry(seq=seq, body=it) for seq, it in enumerate(self.records, self.dropped))

    @property
    def records(self) -> tuple[TraceRecord, ...]:
        """What is kept, oldest first, without numbers."""
        return tuple(one.make() if isinstance(one, _Later) else one for one in self._kept)

    @property
    def dropped(self) -> int:
        """How many records are no longer kept."""
        return self._count - len(self._kept)
