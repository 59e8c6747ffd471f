"""A recorded run as a tape: its records in order, a look ahead, and what a replay compares.

A replay, of ours or of a stock agent, writes to a `CheckingSink`. That does not write: each record
must be the one that is next on the tape.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from pydantic import ValidationError

from coag._util.json_diff import JsonDifference, first_difference
from coag._util.text import clip, well_formed
from coag._util.timeouts import is_cancelled
from coag.context import WorkingMemory
from coag.cycle import EMPTY_OUTCOMES
from coag.errors import TraceError
from coag.schema import (
    PHASES,
    RESUMED,
    ExecutionOutcome,
    ExecutionStatus,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    Receipt,
    ReceiptStatus,
    Redactor,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
)
from coag.tracing import cycle_of

_START = datetime(1970, 1, 1, tzinfo=UTC)
CANCELLED = "It was cancelled while it ran."
"""How the result of an action begins that was cancelled."""
_SHOWN = 300
"""Characters of a value that are shown."""
_OUTSIDE = {
    "repair": "The last line was torn",
    **dict.fromkeys(("pages", "environment", "reconcile", "summary", "fork", RESUMED), ""),
    "memory": "The state was saved by an agent",
}
"""Notes that no code of the agent's turn writes: what they are about, and how they begin."""
_RecordT = TypeVar("_RecordT", bound=TraceRecord)


class Tape:
    """The records of a run. What was taken is forgotten; what lies ahead is read as needed."""

    def __init__(self, records: Iterator[TraceRecord]) -> None:
        self._rest = records
        self._ahead: deque[TraceRecord] = deque()
        self.position = 0
        """Number of the record that is next, from 0."""
        self.at = _START
        """When the record was made that was taken last."""

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
        """Takes the next record."""
        record = next(self.ahead())
        self._ahead.popleft()
        self.position += 1
        self.at = record.at
        return record

    def in_turn(self) -> Iterator[TraceRecord]:
        """The records ahead, up to the end of the turn that is open or begins."""
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

    def next_of(self, kind: type[_RecordT]) -> _RecordT | None:
        """The next record of a sort in this cycle."""
        return next((record for record in self.in_cycle() if isinstance(record, kind)), None)

    def notes(self, about: str) -> list[Note]:
        """The notes of one sort that are left in this cycle."""
        cycle = self.in_cycle()
        return [each for each in cycle if isinstance(each, Note) and each.about == about]


# ---- Two records of the same place in a run, compared without their times ----


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_Fields = dict[str, Any]


def _difference(recorded: TraceRecord, replayed: TraceRecord) -> JsonDifference | None:
    """The first field that differs; times, durations and the environment's state do not count.

    The trace keeps no secrets and no halves of characters, so where the replay's record differs it
    is compared without them.
    """
    was, now = comparable(recorded), comparable(replayed)
    if was != now and isinstance(recorded, Snapshot):
        was = comparable(_with_defaults(recorded))
    if was == now:
        return None
    clean = Redactor.from_environment().clean(well_formed(json.dumps(now, ensure_ascii=False)))
    return first_difference(was, json.loads(clean))


def _with_defaults(snapshot: Snapshot) -> Snapshot:
    """A snapshot with the fields of working memory that came after it was written."""
    try:
        memory = WorkingMemory.model_validate(snapshot.working_memory).to_json()
    except ValidationError:
        return snapshot
    return snapshot.model_copy(update={"working_memory": memory})


def comparable(record: TraceRecord) -> _Fields:
    """A record as JSON, without what a replay cannot have and need not have alike."""
    fields = record.model_dump(mode="json")
    fields.pop("at", None)
    match record.record:
        case "outcome":
            _without_times(fields.get("queued", ()))
        case "model_call" | "receipt" | "turn_end":
            fields.pop("seconds", None)
            fields.pop("error_type", None)  # what is raised again is of no class of the client's
        case "written":
            fields["content"].pop("at" if fields["what"] == "procedure" else "created_at", None)
        case "note" if fields["about"] == "approval":
            fields["details"].pop("expires_at", None)
        case "snapshot":
            _clear_snapshot(fields)
        case _:
            pass
    return fields


def _clear_snapshot(fields: _Fields) -> None:
    fields.pop("environment", None)
    memory = fields["working_memory"]
    for name in ("dialogue", "percepts", "queued"):
        _without_times(memory.get(name, ()))
    for outcome in memory.get("cognitive_state", {}).values():
        _without_times((outcome, *outcome.get("queued", ())))
    memory.get("spent", {}).pop("seconds", None)
    state: _Fields = fields["procedures"].get("state") or {}
    histories: Mapping[str, list[_Fields]] = state.get("procedures", {})
    _without_times([version for history in histories.values() for version in history])
    _without_times(state.get("pending", ()))
    fields["modules"] = _untimed(fields["modules"])


def _without_times(values: Any) -> None:
    for value in values:
        value.pop("at", None)


def _untimed(value: Any) -> Any:
    """A module's state without the times in it: a module may keep what it has observed."""
    if isinstance(value, dict):
        return {name: _untimed(each) for name, each in cast("_Fields", value).items()}
    if isinstance(value, list):
        return [_untimed(each) for each in cast("list[Any]", value)]
    return "(a time)" if isinstance(value, str) and _TIME.fullmatch(value) else value


# ---- Where a replay first differs ----


_OTHER = "The code of the agent or of coag is not what it was when the run was recorded."
_MEANINGS = (
    ("", "record", "The agent does something else now: its settings or its code have changed."),
    ("model_call", "messages", "The prompt is another one: a procedure, the domain's description, "
     "a module or the rendering has changed."),
    ("model_call", "tools", "Other tools are offered now."),
    ("model_call", "usage", "What the request cost is counted in another way."),
    ("percept", "state_patch", "The domain's hook reads the percept in another way."),
    ("percept", "hook_problem", "The domain's hook reads the percept in another way."),
    ("percept", "sets_goal", "The domain decides in another way what opens a goal."),
    ("percept", "memory_scope", "The domain identifies people in another way."),
    ("retrieval", "memory_scope", "The domain identifies people in another way."),
    ("snapshot", "procedures", "A procedure has another text: its seed or its history changed."),
    ("snapshot", "modules", "A module reached another state."),
    ("snapshot", "working_memory", "Working memory reached another state."),
    ("snapshot", "random", "Another seed, or random numbers were drawn at other places."),
    ("snapshot", "detector", "Failures are remembered in another way."),
    ("retrieval", "query", "The domain asks its memory for something else."),
    ("retrieval", "filter", "The domain filters its memory in another way."),
    ("retrieval", "constraints", "Other constraints are in force now."),
    ("retrieval", "procedures", "Other versions of procedures are in force now."),
    ("evaluation", "evaluations", "A schema, a projection or a constraint judges in another way."),
    ("actions", "specs", "A tool has another description or other parameters."),
    ("written", "content", "Something else is remembered now."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where a replay first differs from the recorded run."""

    seq: int
    """Number of the recorded record, from 0."""
    cycle: int
    """The cycle at work; of a plain agent the turn."""
    phase: str | None
    """The phase at work; None outside of one."""
    record: str
    """What sort of record it is: `model_call`, `receipt`, ..., or the phase of an outcome."""
    field: str
    """Path of the first field that differs; `record` where another sort of record came."""
    recorded: str
    """Its recorded value as JSON, cut."""
    replayed: str
    """Its value in the replay, cut."""

    meaning: str
    """What that likely means, as a sentence."""

    @property
    def place(self) -> str:
        """Cycle, phase and sort of record."""
        return f"cycle {self.cycle}, {self.phase or 'between phases'}, {self.record}"

    def __str__(self) -> str:
        return (
            f"record {self.seq + 1}, {self.place}: {self.field} was {self.recorded}, "
            f"now {self.replayed}. {self.meaning}"
        )


def _meaning(kind: str, field: str) -> str:
    for of_kind, begins, meaning in _MEANINGS:
        if of_kind in ("", kind) and field.startswith(begins):
            return meaning
    return _OTHER


class ReplayStopped(TraceError):
    """The replay stops here. It is a `TraceError`, so that nothing is done after it."""

    def __init__(self) -> None:
        super().__init__(Path("trace.jsonl"), "is not replayed any further")


@dataclass(slots=True)
class _SnapshotContext:
    """What the last snapshots held of what they hold only where it has changed."""

    procedures: Any = None
    random: Any = None

    def completed(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what it left out."""
        procedures = dict(snapshot.procedures)
        self.procedures = procedures.get("state", self.procedures)
        self.random = self.random if snapshot.random is None else snapshot.random
        procedures["state"] = self.procedures
        return snapshot.model_copy(update={"procedures": procedures, "random": self.random})


@dataclass(slots=True)
class CheckingSink:
    """A trace that is not written: each record must be the one that is next on the tape.

    It is the replay's clock as well: the time is that of the record which is about to be written.
    """

    tape: Tape
    on_taken: Callable[[TraceRecord], None] = field(default=lambda record: None)
    """Called with each record that was found alike."""
    divergence: Divergence | None = None
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
    cancels_at: int | None = None
    """Number of the first record after the turn was cancelled; None if it was not."""
    _turn: asyncio.Task[None] | None = None
    _patience: int = 0
    _last_outcome: Outcome | None = None
    _held: list[TraceRecord] | None = None
    _once: deque[datetime] = field(default_factory=deque[datetime])
    _was: _SnapshotContext = field(default_factory=_SnapshotContext)
    _now: _SnapshotContext = field(default_factory=_SnapshotContext)

    @property
    def stopped(self) -> bool:
        """True once nothing more is replayed."""
        return self.ended or self.divergence is not None

    def write(self, record: TraceRecord) -> None:
        """Compares a record with the tape's next one."""
        self.check()
        if self._held is not None:
            self._held.append(record)
            return
        self.settle()
        head = self.tape.head
        if head is None:
            self.end()
        if _kind(head) != _kind(record):
            self.diverge("record", _brief(head), _brief(record))
        was, now = head, record
        if isinstance(was, Snapshot) and isinstance(now, Snapshot):
            was, now = self._was.completed(was), self._now.completed(now)
        difference = _difference(was, now)
        if difference is not None:
            self.diverge(difference.path, *difference.shown())
        self.accept()

    def flush(self) -> None:
        """Nothing is stored."""

    def now(self) -> datetime:
        """When the record that is next was made."""
        if self._once:
            return self._once.popleft()
        self.settle()
        head = self.tape.head
        return self.tape.at if head is None else head.at

    def monotonic(self) -> float:
        """Seconds by the tape's times."""
        return (self.now() - _START) / timedelta(seconds=1)

    def once(self, at: datetime) -> None:
        """Gives another time when it is asked next."""
        self._once.append(at)

    def check(self) -> None:
        """Raises `ReplayStopped` where nothing more is replayed."""
        if self.stopped:
            raise ReplayStopped

    def settle(self) -> None:
        """Skips what did not come from the agent."""
        if self.resumes:
            self.diverge("record", "another process continues", "this one")

    @property
    def resumes(self) -> bool:
        """Whether another process continued the run right here."""
        while isinstance(head := self.tape.head, Note) and is_outside(head):
            if head.about == RESUMED:
                return True
            self.skip(f"Not the agent's own: {head.about}: {head.text}")
        return False

    def skip(self, remark: str) -> TraceRecord:
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
            self._last_outcome = record
        self._cancel_after(self._patience, begins=True)
        self.on_taken(record)
        return record

    # ---- a turn, and where the original one was cancelled ----

    async def run(
        self, turn: Coroutine[Any, Any, None], before: int | None, *, patience: int = 0
    ) -> None:
        """Runs a turn to its end, or to where it was cancelled in a call or an action."""
        self.cancels_at = None if before is None else self.tape.position + before
        self._turn, self._patience = asyncio.create_task(turn), patience
        running = self._turn
        self._cancel_after(patience, begins=True)
        try:
            await running
        finally:
            self.cancels_at = self._turn = None

    async def interrupt(self) -> NoReturn:
        """Cancels the turn in what it waits for; the caller is cancelled with it."""
        if self._turn is not None:
            self._turn.cancel()
        await asyncio.Event().wait()
        raise AssertionError("unreachable: nobody sets the event")

    @property
    def cancels(self) -> bool:
        """Whether the turn was cancelled right here."""
        return self.cancels_at is not None and self.tape.position >= self.cancels_at

    def leave_turn(self) -> bool:
        """Whether the turn is to be left here; if so, it is not cancelled any more."""
        leaves = self.cancels and self._turn is not None
        self._turn = None if leaves else self._turn
        return leaves

    def _cancel_after(self, rounds: int, *, begins: bool = False) -> None:
        if self._turn is None or self._turn.done() or not self.cancels:
            return
        if begins or rounds:
            left = rounds if begins else rounds - 1
            asyncio.get_running_loop().call_soon(self._cancel_after, left)
        else:
            self._turn.cancel()
            self._turn = None

    # ---- what is remarked, and where the replay ends ----

    def remark(self, text: str) -> None:
        """Notes what was taken from the tape; the same text once."""
        self.remarks.setdefault(text)

    @contextmanager
    def holding(self) -> Generator[list[TraceRecord]]:
        """Collects what is written instead of comparing it."""
        self._held = held = list[TraceRecord]()
        try:
            yield held
        finally:
            self._held = None

    def end(self) -> NoReturn:
        """The tape is at its end; always raises `ReplayStopped`."""
        self.ended = True
        raise ReplayStopped

    def diverge(self, field: str, recorded: str, replayed: str) -> NoReturn:
        """Notes that the replay differs from the tape's head; always raises `ReplayStopped`."""
        head = self.tape.head
        if head is None:
            self.end()
        self.divergence = Divergence(
            seq=self.tape.position,
            cycle=cycle_of(head) or self.cycle,
            phase=self._phase(head),
            record=_kind(head),
            field=field,
            recorded=recorded,
            replayed=replayed,
            meaning=_meaning(_kind(head), field),
        )
        raise ReplayStopped

    def _phase(self, head: TraceRecord) -> str | None:
        """The phase at work: that of the outcome itself, or the one after the last."""
        last = self._last_outcome
        if head.record == "outcome":
            return head.phase.value
        if last is None or last.phase is Phase.EXECUTION:
            return Phase.RETRIEVAL.value if head.record == "note" and last else None
        return PHASES[PHASES.index(last.phase) + 1].value

    def restart(self) -> None:
        """The replay begins again where it left the tape."""
        self.divergence = None
        self._now = _SnapshotContext()


def is_outside(note: Note) -> bool:
    """Whether a note was not written by the agent's own code."""
    begins = _OUTSIDE.get(note.about)
    return begins is not None and note.text.startswith(begins) and not note.details.get("phase")


def _kind(record: TraceRecord) -> str:
    """What sort of record it is; of an outcome its phase."""
    return record.phase.value if record.record == "outcome" else record.record


def _brief(record: TraceRecord) -> str:
    body = record.model_dump(mode="json", exclude={"record", "at", "messages", "working_memory"})
    return f"{_kind(record)} {clip(json.dumps(body, ensure_ascii=False, default=str), _SHOWN)}"


# ---- Where a turn was cancelled ----


def leave_if_cancelled() -> None:
    """Passes it on where the replay itself was cancelled."""
    if is_cancelled():
        raise asyncio.CancelledError


def cancelled_before(records: Sequence[TraceRecord]) -> int | None:
    """Which of the records of a turn is the first after it was cancelled; None if it was not.

    Also None where the cancellation interrupted a model call or an action, which show it.
    """
    if (end := _cancelled_end(records)) is None:
        return None
    first = len(records) - 1
    while first and _closes(records[first - 1], end.response):
        first -= 1
    if first and _broke_off(records[first - 1]):
        return None
    execution = next((r for r in records[first:] if isinstance(r, ExecutionOutcome)), None)
    if execution is not None and any(e.result.startswith(CANCELLED) for e in execution.executed):
        return None
    return first


def cancelled_in(records: Sequence[TraceRecord]) -> bool:
    """Whether a turn was cancelled in the first of its remaining records."""
    end = _cancelled_end(records)
    return end is not None and all(_closes(record, end.response) for record in records[1:-1])


def _cancelled_end(records: Sequence[TraceRecord]) -> TurnEnd | None:
    end = records[-1] if records else None
    return end if isinstance(end, TurnEnd) and end.reason == "cancelled" else None


def _closes(record: TraceRecord, reason: str) -> bool:
    """Whether a record may come after the cancellation."""
    match record:
        case Percept():
            return True
        case Note():
            return record.about in ("module", "hook") or record.details.get("what") == "withdrawn"
        case ExecutionOutcome():
            idle = record.status is ExecutionStatus.NONE and record.result == reason
            return idle or any(e.result.startswith(CANCELLED) for e in record.executed)
        case _:
            if record.record != "outcome":
                return False
            stamp = {"cycle": record.cycle, "at": record.at}
            return record == EMPTY_OUTCOMES[record.phase](stamp, reason, ())


def _broke_off(record: TraceRecord) -> bool:
    """Whether a record is of something that the cancellation interrupted."""
    match record:
        case ModelCall():
            return record.error == "cancelled"
        case Receipt():
            return record.status is ReceiptStatus.CANCELLED
        case _:
            return False
