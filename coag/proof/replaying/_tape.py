"""A recorded run as a tape: its records in order, with a look ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from coag.schema import (
    ExecutionOutcome,
    Note,
    ProposalOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
)


class Tape:
    """The records of a run. What was taken is forgotten; what lies ahead is read as needed.

    Args:
        records: The records from the first one on.
    """

    def __init__(self, records: Iterator[TraceRecord]) -> None:
        self._rest = records
        self._ahead: deque[TraceRecord] = deque()
        self.position = 0
        """Number of the record that is next, from 0."""
        self.at = datetime(1970, 1, 1, tzinfo=UTC)
        """When the last record that tells a time was made."""
        self.proposal: ProposalOutcome | None = None
        """The last proposal that was taken."""

    @property
    def head(self) -> TraceRecord | None:
        """The next record; None at the end."""
        return next(self.ahead(), None)

    def ahead(self) -> Iterator[TraceRecord]:
        """The records from the next one on, none of which is taken."""
        number = 0
        while True:
            if number == len(self._ahead):
                record = next(self._rest, None)
                if record is None:
                    return
                self._ahead.append(record)
            yield self._ahead[number]
            number += 1

    def take(self) -> TraceRecord:
        """The next record, which is behind from now on."""
        record = next(self.ahead())
        self._ahead.popleft()
        self.position += 1
        self.at = record.at
        if isinstance(record, ProposalOutcome):
            self.proposal = record
        return record

    def in_turn(self) -> Iterator[TraceRecord]:
        """The records ahead, up to the end of the turn that goes on or begins."""
        for number, record in enumerate(self.ahead()):
            if number and isinstance(record, TurnStart):
                return
            yield record
            if isinstance(record, TurnEnd):
                return

    def in_cycle(self) -> Iterator[TraceRecord]:
        """The records ahead, up to where the next cycle begins or the turn ends."""
        for number, record in enumerate(self.in_turn()):
            begins = isinstance(record, Snapshot) and record.reason is SnapshotReason.CYCLE
            if number and begins:
                return
            yield record

    def execution(self) -> ExecutionOutcome | None:
        """How this cycle's execution ended; None if that is not on the tape."""
        found = (record for record in self.in_cycle() if isinstance(record, ExecutionOutcome))
        return next(found, None)

    def notes(self, about: str) -> list[Note]:
        """The notes about something that are left in this cycle."""
        cycle = self.in_cycle()
        return [each for each in cycle if isinstance(each, Note) and each.about == about]


class TapeClock:
    """Tells the times of the tape: that of the record which is about to be written.

    Args:
        tape: The tape.
        settle: Brings what is next on the tape to its head.
    """

    def __init__(self, tape: Tape, settle: Callable[[], None]) -> None:
        self._tape = tape
        self._settle = settle
        self._once: deque[datetime] = deque()

    def now(self) -> datetime:
        """When the record that is next was made."""
        if self._once:
            return self._once.popleft()
        self._settle()
        head = self._tape.head
        return self._tape.at if head is None else head.at

    def monotonic(self) -> float:
        """Seconds by the tape's times."""
        return (self.now() - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)

    def once(self, at: datetime) -> None:
        """Tells another time at the next look."""
        self._once.append(at)
