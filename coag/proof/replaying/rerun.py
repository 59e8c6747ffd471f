"""One run again, also one that forked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from coag.agent import CoagAgent, Remains
from coag.errors import CoagError, TraceError
from coag.schema import (
    ActionsListed,
    ActionSpec,
    Note,
    Outcome,
    Percept,
    Record,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
)
from coag.tracing import Parent, RunFolder, RunInfo, read_run, read_trace

from .doubles import TapeMemory
from .process import Process, empty_memory
from .sink import CheckingSink, ReplayStopped, Tape, is_outside

_GENERATIONS = 100
"""Forks of forks that are followed back; a trace may be hostile."""
_NO_BOUNDS = ("respond", "cancelled", "error")
"""How a turn ends that no bound ended."""
_LEFT_OUT, _MODEL = "--without-constraint ", "--model "


@dataclass(slots=True, kw_only=True)
class Before:
    """What a fork's turn was before the fork."""

    turn: int | None = None
    """Its number; None where no trace of it is at hand."""
    turn_open: bool = False
    """True if the fork went on in it."""
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    """The outcomes that it had had, which count towards its bounds."""
    listed: list[ActionSpec] = field(default_factory=list[ActionSpec])
    """The external actions that were listed last."""
    gone: str = ""
    """Folder of the ancestor that would tell of it and is not there any more."""
    needed: bool = False
    """True if the turn ended by a bound, towards which what came before counts."""

    def take(self, record: TraceRecord) -> None:
        """Takes in the next record of an ancestor."""
        match record:
            case TurnStart():
                self.turn, self.turn_open, self.outcomes = record.turn, True, []
            case TurnEnd():
                self.turn_open = False
            case ActionsListed():
                self.listed = list(record.specs)
            case _ if record.record == "outcome":
                self.outcomes.append(record)
            case _:
                pass


def before_fork(run: RunFolder, parent: Parent, tape: Tape) -> Before:
    """What the turn of a fork was before it, going by its ancestors as far as they are there.

    Args:
        run: The fork.
        parent: Where it comes from.
        tape: Its own trace, of which nothing was taken yet.

    Raises:
        TraceError: An ancestor's folder is there and cannot be read.
    """
    ancestors, gone = _ancestors(run, parent)
    before = Before()
    for folder, seq in reversed(ancestors):
        for entry in read_trace(folder.trace_path, lambda problem: None):
            if entry.seq >= seq:
                break
            before.take(entry.body)
    if before.turn is None:
        before.turn, before.turn_open = _first_turn(tape)
        before.gone, before.needed = gone, _ends_by_bound(tape)
    if not before.listed:
        ahead = (r for r in tape.ahead() if isinstance(r, ActionsListed))
        listed = next(ahead, None)
        before.listed = [] if listed is None else list(listed.specs)
    return before


def stop_ahead(tape: Tape) -> str | None:
    """Why the fork stopped before anything else was done; None if it went on."""
    following = next(islice(tape.ahead(), 1, None), None)
    if isinstance(following, Note) and following.about == "fork":
        return following.text
    return None


def constraints_left_out(parent: Parent | None) -> tuple[str, ...]:
    """Names of the constraints that a fork goes on without, its ancestors' included."""
    return _changes(parent, _LEFT_OUT)


def model_of(parent: Parent | None) -> str | None:
    """The model spec that took the place of the run's; None if none did."""
    return next(iter(_changes(parent, _MODEL)), None)


def remembered_in(run: RunFolder) -> tuple[Record, ...]:
    """The records that a fork's memory began with; none where that was not kept.

    Raises:
        TraceError: They cannot be read.
    """
    return run.remembered() if run.remembered_path.is_file() else ()


def tell_of(before: Before, remark: Callable[[str], None]) -> None:
    """Says what is not known of the turn, if anything."""
    if before.gone and before.needed:
        remark(
            f"The run that this one was forked from is not in {before.gone} any more: what its "
            "turn had done before the fork is not known, and cannot count towards its bounds."
        )


def _ancestors(run: RunFolder, parent: Parent) -> tuple[list[tuple[RunFolder, int]], str]:
    """The ancestors that are there, each with where it was left, and the one that is not."""
    found: list[tuple[RunFolder, int]] = []
    above: Parent | None = parent
    while above is not None and len(found) < _GENERATIONS:
        folder = RunFolder((run.path.parent / above.path).resolve())
        info = read_run(folder.path) if folder.exists else None
        if info is None or info.id != above.run:
            return found, above.path
        found.append((folder, above.seq))
        run, above = folder, info.parent
    return found, ""


def _first_turn(tape: Tape) -> tuple[int, bool]:
    """The turn that a fork began in, and whether it went on in it, going by its own trace."""
    for number, record in enumerate(tape.ahead()):
        if isinstance(record, TurnStart):
            return (record.turn - 1, number > 1)
        if isinstance(record, TurnEnd):
            return record.turn, True
    return 1, True


def _ends_by_bound(tape: Tape) -> bool:
    end = next((record for record in tape.ahead() if isinstance(record, TurnEnd)), None)
    return end is not None and end.reason not in _NO_BOUNDS


def _changes(parent: Parent | None, option: str) -> tuple[str, ...]:
    return tuple(_of_option(parent.changes if parent is not None else (), option))


def _of_option(changes: tuple[str, ...], option: str) -> Iterator[str]:
    for change in changes:
        if change.startswith(option):
            yield change.removeprefix(option)


# ---- Running a whole run again: its processes, its turns, and what came between them ----


Builder = Callable[[], Awaitable[CoagAgent]]
"""Builds the agent of the run once more."""
Records = Callable[[], Iterator[TraceRecord]]
"""Reads the records of the run from the first one on."""


@dataclass(slots=True, kw_only=True)
class Replayed:
    """A run that is being run again.

    Where another process had taken the run up, that one is replayed from there on.
    """

    run: RunFolder
    info: RunInfo
    build: Builder
    records: Records
    sink: CheckingSink
    _process: Process | None = None
    _memory: TapeMemory | None = None
    _listed: list[ActionSpec] = field(default_factory=list[ActionSpec])
    _turn: int = 0
    _begun: Sequence[Outcome] | None = None
    """For a process that began in the middle of a turn: the outcomes that it had had."""
    _stop: str | None = None
    """Why a fork stopped at once."""

    async def go(self) -> None:
        """Replays as far as the tape goes, or to where the replay differs."""
        await self._guarded(self._begin)
        while not self.sink.ended and (self.sink.resumes or self.sink.tape.head is not None):
            if self.sink.resumes:
                await self._guarded(self._resume)
            elif self.sink.parting is not None:
                return
            else:
                await self._guarded(self._step)

    async def _resume(self) -> None:
        """Another process goes on where the tape is now."""
        self.sink.go_on()
        agent = await self.build()  # before anything is taken: else the error counts as the run's
        self.sink.pass_by(
            f"Another process went on with the run at record {self.sink.tape.position}."
        )
        await self._take_over(agent)

    async def _guarded(self, step: Callable[[], Awaitable[None]]) -> None:
        """Takes a step; what stopped it is in the sink, what it raised stands on the tape."""
        before = self.sink.tape.position
        try:
            await step()
        except ReplayStopped:
            return
        except TraceError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        except CoagError as error:
            if self.sink.tape.position == before and not self.sink.stopped:
                raise
            del error
        except BaseException:
            if not self._has_broken_off:
                raise

    @property
    def _has_broken_off(self) -> bool:
        """True if the original turn was broken off by an error, too."""
        return self._process is not None and self._last_end == "error"

    @property
    def _last_end(self) -> str:
        last = self.sink.last
        return last.reason if isinstance(last, TurnEnd) else ""

    def _process_of(self, agent: CoagAgent, *, later: bool) -> Process:
        self._memory = self._memory or empty_memory(agent)
        return Process(
            agent,
            self.info.id,
            self.sink,
            memory=self._memory,
            listed=self._listed,
            later=later,
            configuration=self.info.configuration,
            left_out=constraints_left_out(self.info.parent),
        )

    async def _begin(self) -> None:
        if self.sink.resumes or (head := self.sink.tape.head) is None:
            return
        if isinstance(head, Snapshot) and head.reason is SnapshotReason.OPENED:
            self._process = self._process_of(await self.build(), later=False)
            await self._process.begin(head)
            return
        if isinstance(head, Snapshot) and head.reason is SnapshotReason.FORKED:
            await self._begin_fork(head)
            return
        self.sink.remark(
            "The trace does not begin with a snapshot, as where its first process died at once: "
            "the run is taken to begin with the agent as it is built."
        )
        await self._take_over(await self.build())

    async def _begin_fork(self, head: Snapshot) -> None:
        """A fork begins where its parent stood, in the middle of a turn."""
        if self.info.parent is None:
            raise TraceError(
                self.run.info_path, "names no parent, though the trace begins as a fork"
            )
        before = before_fork(self.run, self.info.parent, self.sink.tape)
        tell_of(before, self.sink.remark)
        self._listed[:] = before.listed
        self._turn = before.turn or 0
        self._begun = before.outcomes if before.turn_open else None
        self._stop = stop_ahead(self.sink.tape)
        self._process = self._process_of(await self.build(), later=True)
        await self._process.begin(head, remembered_in(self.run))

    async def _take_over(self, agent: CoagAgent) -> None:
        """Another process goes on where the tape is now."""
        remains = Remains()
        records = self.records()
        for _ in range(self.sink.tape.position):
            record = next(records)
            if not (isinstance(record, Note) and is_outside(record)):
                remains.take(record)
        remains.forget_bare_start()
        self._process = self._process_of(agent, later=True)
        self._turn = remains.turn
        await self._process.take_over(remains)
        self._begun = remains.outcomes if remains.turn_open else None

    async def _step(self) -> None:
        """What comes next between turns."""
        process, head = self._process, self.sink.tape.head
        if process is None or head is None:
            return
        if self._begun is not None:
            begun, self._begun = self._begun, None
            if process.has_selected and self._stop is not None:
                await process.stop(self._turn, self._stop)
            else:
                await process.turn(self._turn, begun)
            return
        match head:
            case TurnStart():
                self._turn = head.turn
                await process.turn(head.turn, None)
            case Percept():
                await process.perceive(head)
            case Snapshot() if head.reason is SnapshotReason.LOADED:
                process.load(head)
            case Written() if head.what != "record":
                await process.take_back(head)
                self.sink.pass_by(f"Not of a turn: {head.what} {head.id}.")
            case Note():
                self.sink.pass_by(f"Not of a turn: {head.about}: {head.text}")
            case _:
                await self._unstarted(process, head)

    async def _unstarted(self, process: Process, head: TraceRecord) -> None:
        """A turn whose beginning is not next: it first closes a cycle that was left."""
        starts = (r for r in self.sink.tape.ahead() if isinstance(r, TurnStart))
        start = next(starts, None)
        if process.mind.context.working_memory.in_cycle:
            self._turn = start.turn if start else self._turn + 1
            await process.turn(self._turn, None)
        else:
            self.sink.part("record", head.record, "nothing: no turn goes on")
