"""The tape, the sink that compares with it, and what doubles share."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from coag.errors import TraceError
from coag.schema import (
    RESUMED,
    ExecutionOutcome,
    Note,
    Outcome,
    Percept,
    ProposalOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
)
from coag.tracing import cycle_of

from .compare import RecordDifference, difference, shown

# ---- A recorded run as a tape: its records in order, with a look ahead ----


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


# ---- Where the records of a replay go: each is compared with the tape's next one ----


_OUTSIDE = {
    "repair": "The last line was torn",
    "pages": "",
    "environment": "",
    "reconcile": "",
    "summary": "",
    "fork": "",
    RESUMED: "",
    "memory": "The state was saved by an agent",
}
"""Notes that no code of the agent's turn writes: what they are about, and how they begin."""


class ReplayStopped(TraceError):
    """The replay goes no further: it differs, or the tape is at its end.

    A `TraceError`, so that nothing is done after it.
    """

    def __init__(self) -> None:
        super().__init__(Path("trace.jsonl"), "is not replayed any further")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where a replay left the tape."""

    seq: int
    cycle: int
    kind: str
    difference: RecordDifference


@dataclass(slots=True)
class _Known:
    """What snapshots told last of what they tell only where it has changed."""

    procedures: Any = None
    random: Any = None

    def completed(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what it left out."""
        told = dict(snapshot.procedures)
        self.procedures = told.get("state", self.procedures)
        self.random = self.random if snapshot.random is None else snapshot.random
        told["state"] = self.procedures
        return snapshot.model_copy(update={"procedures": told, "random": self.random})


@dataclass(slots=True)
class CheckingSink:
    """A trace that is not written: each record must be the one that is next on the tape."""

    tape: Tape
    on_taken: Callable[[TraceRecord], None] = field(default=lambda record: None)
    """Is told of each record that was found alike."""
    parting: Parting | None = None
    """Where the replay differed first."""
    ended: bool = False
    """True once something was to be written behind the tape's end."""
    compared: int = 0
    """Records that were found alike."""
    remarks: dict[str, None] = field(default_factory=dict[str, None])
    """What was taken from the tape though code of the agent's may have made it, in order."""
    cycle: int = 0
    last: TraceRecord | None = None
    """The record that was taken last."""
    last_outcome: Outcome | None = None
    """The outcome that was taken last."""
    _held: list[TraceRecord] | None = None
    _was: _Known = field(default_factory=_Known)
    _now: _Known = field(default_factory=_Known)

    @property
    def stopped(self) -> bool:
        """True once nothing more is replayed."""
        return self.ended or self.parting is not None

    def write(self, record: TraceRecord) -> None:
        """Compares a record with the tape's next one.

        Raises:
            ReplayStopped: They differ, or did before; or the tape is at its end.
        """
        self.check()
        if self._held is not None:
            self._held.append(record)
            return
        self.settle()
        head = self.tape.head
        if head is None:
            self.end()
        if _kind(head) != _kind(record):
            self.part("record", _told(head), _told(record))
        found = self._difference(head, record)
        if found is not None:
            self._part(found, head)
        self.accept()

    def flush(self) -> None:
        """Nothing is kept."""

    def check(self) -> None:
        """Raises `ReplayStopped` where nothing more is replayed."""
        if self.stopped:
            raise ReplayStopped

    def settle(self) -> None:
        """Passes by what did not come from the agent.

        Raises:
            ReplayStopped: Another process goes on from here.
        """
        if self.resumes:
            self.part("record", "another process goes on", "this one")

    @property
    def resumes(self) -> bool:
        """Whether another process went on with the run right here."""
        while isinstance(head := self.tape.head, Note) and is_outside(head):
            if head.about == RESUMED:
                return True
            self.pass_by(f"Not the agent's own: {head.about}: {head.text}")
        return False

    def pass_by(self, remark: str) -> TraceRecord:
        """Takes the tape's next record as it is, and says why."""
        self.remark(remark)
        return self.tape.take()

    def accept(self) -> TraceRecord:
        """Takes the tape's next record, which is as it should be."""
        record = self.tape.take()
        self.compared += 1
        self.cycle = cycle_of(record) or self.cycle
        self.last = record
        if record.record == "outcome":
            self.last_outcome = record
        self.on_taken(record)
        return record

    def remark(self, text: str) -> None:
        """Notes what was taken from the tape; the same thing is told once."""
        self.remarks.setdefault(text)

    @contextmanager
    def holding(self) -> Generator[list[TraceRecord]]:
        """Keeps what is written instead of comparing it."""
        self._held = held = list[TraceRecord]()
        try:
            yield held
        finally:
            self._held = None

    def end(self) -> NoReturn:
        """The tape is at its end; always raises `ReplayStopped`."""
        self.ended = True
        raise ReplayStopped

    def part(self, field: str, recorded: str, replayed: str) -> NoReturn:
        """Notes that the replay differs from the tape's head; always raises `ReplayStopped`."""
        head = self.tape.head
        if head is None:
            self.end()
        self._part(RecordDifference(field, recorded, replayed), head)

    def go_on(self) -> None:
        """The replay begins anew where it left the tape."""
        self.parting = None
        self._now = _Known()

    def _part(self, found: RecordDifference, head: TraceRecord) -> NoReturn:
        cycle = cycle_of(head) or self.cycle
        place = self.tape.position
        self.parting = Parting(seq=place, cycle=cycle, kind=_kind(head), difference=found)
        raise ReplayStopped

    def _difference(self, was: TraceRecord, now: TraceRecord) -> RecordDifference | None:
        if not isinstance(was, Snapshot) or not isinstance(now, Snapshot):
            return difference(was, now)
        return difference(self._was.completed(was), self._now.completed(now))


def is_outside(note: Note) -> bool:
    """Whether a note was not written by the agent's own code."""
    begins = _OUTSIDE.get(note.about)
    return begins is not None and note.text.startswith(begins) and not note.details.get("phase")


def _kind(record: TraceRecord) -> str:
    """What sort of record it is; of an outcome its phase."""
    return record.phase.value if record.record == "outcome" else record.record


def _told(record: TraceRecord) -> str:
    """A record in a few words."""
    body = record.model_dump(mode="json", exclude={"record", "at", "messages", "working_memory"})
    return f"{_kind(record)} {shown(body)}"


# ---- What the doubles of a replay share ----


_PATIENCE = 2_000
"""Rounds of the event loop in which a record that must come first may come."""

Perceive = Callable[[Percept], Awaitable[None]]
"""Takes in a percept that came from outside in the middle of a turn."""


class Stage:
    """What the doubles share: the tape, and what arrives from outside meanwhile.

    Args:
        sink: Compares what is written.
        perceive: Takes in what came from outside.
        queued: Ids of the percepts that executions brought and that are yet to be perceived.
    """

    def __init__(
        self, sink: CheckingSink, perceive: Perceive, queued: Callable[[], set[str]]
    ) -> None:
        self.sink = sink
        self.tape = sink.tape
        self._perceive = perceive
        self._queued = queued

    async def pause(self) -> None:
        """Waits as the original waited: others run, and what arrives meanwhile is perceived."""
        await asyncio.sleep(0)
        self.sink.check()
        self.sink.settle()
        while self.is_input(head := self.tape.head) and isinstance(head, Percept):
            await self._perceive(head)
            self.sink.settle()

    def is_input(self, record: TraceRecord | None) -> bool:
        """Whether it is a percept that no execution brought."""
        return isinstance(record, Percept) and record.id not in self._queued()

    async def until(self, due: Callable[[TraceRecord | None], bool], what: str) -> None:
        """Waits until what is next on the tape is due, because others come before."""
        for _ in range(_PATIENCE):
            await self.pause()
            if due(self.tape.head):
                return
        head = self.tape.head
        told = "the end" if head is None else head.record
        self.sink.part("record", told, f"{what}, which is not next on the tape")
