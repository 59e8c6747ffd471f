"""Running a whole run again: its processes, its turns, and what came between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from coag.agent import CoagAgent, Remains
from coag.errors import CoagError, TraceError
from coag.schema import (
    ActionSpec,
    Note,
    Outcome,
    Percept,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Written,
)
from coag.tracing import RunFolder, RunInfo

from ._doubles import TapeMemory
from ._fork import before_fork, constraints_left_out, remembered_in, stop_ahead, tell_of
from ._process import Process, empty_memory
from ._sink import CheckingSink, ReplayStopped, is_outside

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
