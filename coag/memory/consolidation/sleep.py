"""Sleep: all that memory does neither at a write nor at a recall, a step after the other.

What was learned while awake is consolidated (the complementary learning systems of McClelland,
McNaughton and O'Reilly 1995): what faded goes into the archive, old wording becomes a gist, strong
feelings calm down, clusters and links are brought up to date.

It may be interrupted anywhere, and the next sleep continues after the last record that it changed.
Only a batch of records is in memory at a time. A step that fails is reported; the others are run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing, nullcontext, suppress
from datetime import datetime
from itertools import pairwise
from typing import Literal, Self

from coag._util.text import one_line
from coag.errors import ClockJumpError, CoagError, ConfigurationError
from coag.memory.dynamics import DAY, moment_of, seconds
from coag.memory.long_term import LongTermMemory
from coag.models import StructuredModel
from coag.schema import Value

from .journal import SleepJournal, SleepPosition
from .reflector import ReflectStep
from .steps import EncodeStep, FadeStep, GistStep, SleepStep, SleepWork, StepBatch
from .upkeep import ArchiveStep, GraduateStep, LinkStep, PersonaStep, RegulateStep, SchemaStep

_LOG = logging.getLogger(__name__)
Progress = Callable[[str, int], None]
"""Called with the step and the number of records that it has looked at."""
SLEEP_STEPS: tuple[SleepStep, ...] = (
    EncodeStep(),
    ReflectStep(),
    FadeStep(),
    GistStep(),
    RegulateStep(),
    LinkStep(),
    SchemaStep(),
    GraduateStep(),
    PersonaStep(),
    ArchiveStep(),
)
"""All steps in their order; a step whose mechanism is off does nothing."""
_SHOWN = 20
"""Ids of changed records that a report names, for each step."""
_CLOCK = "clock"
"""Mark in the journal: when the last sleep began."""
_BACK = 1.0
"""Days by which a clock may be set back, e.g. to correct it."""


class StepReport(Value):
    """What one step of a sleep did, or would do."""

    step: str
    ended: Literal["done", "stopped", "failed"] = "done"
    """`stopped` where there was no more time; the next sleep continues there."""
    examined: int = 0
    """Records that it looked at."""
    changed: int = 0
    """Records that it changed or, in a dry run, would change."""
    records: tuple[str, ...] = ()
    """Ids of the first of them."""
    notes: tuple[str, ...] = ()
    """What else is to be said, a sentence each."""
    problem: str = ""
    """Why it failed."""
    seconds: float = 0.0


class SleepReport(Value):
    """What a sleep did, or would do."""

    owner: str
    at: datetime
    dry_run: bool = False
    resumed_at: str = ""
    """The step at which an interrupted sleep was taken up again; empty for a new one."""
    stopped_at: str = ""
    """The step at which it stopped because its time or number of records was used up."""
    steps: tuple[StepReport, ...] = ()
    model_calls: int = 0
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether every step was done; the next sleep begins with the first."""
        return not self.stopped_at and all(one.ended == "done" for one in self.steps)

    @property
    def changed(self) -> int:
        """Changes of records by all steps."""
        return sum(one.changed for one in self.steps)

    def lines(self) -> list[str]:
        """The report for a person, a line for each step and note."""
        will = "would change" if self.dry_run else "changed"
        shown = [f"It continues at {self.resumed_at!r}."] if self.resumed_at else []
        for one in self.steps:
            shown.append(f"{one.step}: {one.changed:,} of {one.examined:,} {will}, {one.ended}")
            shown += [f"  {note}" for note in (*one.notes, one.problem) if note]
        if self.stopped_at:
            shown.append(f"It stopped at {self.stopped_at!r}; the next sleep continues there.")
        return shown


async def sleep(
    memory: LongTermMemory,
    *,
    model: StructuredModel | None = None,
    dry_run: bool = False,
    allow_clock_jump: bool = False,
    most_records: int | None = None,
    most_seconds: float | None = None,
    on_progress: Progress | None = None,
    steps: Sequence[SleepStep] = SLEEP_STEPS,
) -> SleepReport:
    """Consolidates a memory: fading and archive, gists, feelings, clusters, links, persona.

    It reaches the records of the scopes that the memory may write; of those that it only reads,
    what faded is hidden from its owner. For everybody's give `await memory.reaching_all()`.

    Args:
        memory: With its dynamics.
        model: Who writes gists and reflects on notes; None for rules.
        dry_run: Change nothing, ask no model, and say what would change.
        allow_clock_jump: Believe the clock, however far it is from the last use. What was noted at
            a later time counts as noted now.
        most_records: Stop behind about so many records that were looked at.
        most_seconds: Stop once so many seconds have passed, at the end of a batch.
        on_progress: Called after each batch with how far it is.
        steps: What to do, in this order.

    Raises:
        ConfigurationError: The memory has no dynamics.
        SleepInProgressError: Its owner sleeps already.
        ClockJumpError: The clock is more than `settings.longest_pause` days after the last write,
            recall or sleep, or a day before it, or it has jumped so since the last sleep. Nothing
            was done; in a dry run, too.
        ValueError: A number is out of range.
        RecordStoreError: The file of the dynamics cannot be reached. What was done stays.
    """
    if memory.dynamics is None:
        raise ConfigurationError(
            "This memory has no dynamics, so that there is nothing to do in a sleep. Give it some: "
            "LongTermMemory(store, scope=..., dynamics=MemoryDynamics('assistant', path=...))."
        )
    if most_records is not None and most_records < 1:
        raise ValueError(f"most_records must be at least 1, not {most_records!r}.")
    if most_seconds is not None and not most_seconds >= 0:
        raise ValueError(f"most_seconds must be 0 or more, not {most_seconds!r}.")
    journal = SleepJournal(memory.dynamics.file, memory.dynamics.owner)
    work = SleepWork(memory, memory.dynamics, journal, model=model, dry_run=dry_run)
    if most_records is not None:
        work.batch = min(work.batch, most_records)
    with nullcontext() if dry_run else journal.held():
        if not allow_clock_jump:
            _check_clock(work)
        if not dry_run:
            _believe_clock(work)
        return await _Sleep(work, steps, most_records, most_seconds, on_progress).run()


# ---- The clock ----


def _check_clock(work: SleepWork) -> None:
    """Refuses a clock that cannot be right: all that can fade would fade at once.

    A wrong clock is mostly used before it sleeps, so that each pause since the last sleep counts.
    """
    slept = work.journal.mark(_CLOCK)
    since = None if slept is None else float(slept)
    times = work.dynamics.states.times(since)
    known = times if since is None else [since, *times]
    if not known:
        return
    last, most = known[-1], work.dynamics.settings.longest_pause
    if work.now < last - _BACK * DAY:
        raise _clock_jump(work, last, work.now, "is set back")
    for before, after in pairwise((*known, max(work.now, last))):
        if after - before > most * DAY:
            raise _clock_jump(work, before, after, f"went more than {most:g} days ahead")


def _believe_clock(work: SleepWork) -> None:
    """Notes that it is now, for later sleeps; no record was used after that."""
    with work.dynamics.file.transaction():
        work.dynamics.states.set_back(work.now)
        work.journal.set_mark(_CLOCK, repr(work.now))


def _clock_jump(work: SleepWork, before: float, after: float, how: str) -> ClockJumpError:
    return ClockJumpError(
        f"The clock of the memory of {work.dynamics.owner!r} {how}: from {_moment(before)}, when "
        f"it was last used, to {_moment(after)}. Nothing was done: by a wrong clock, what can fade "
        "would be archived too early or too late. Set the clock right. If it is right, sleep with "
        "allow_clock_jump=True (coag memory sleep --allow-clock-jump); a dry run with it shows "
        "what would change. The setting longest_pause is the longest time without use, in days."
    )


def _moment(at: float) -> str:
    return f"{moment_of(at):%Y-%m-%d %H:%M}Z"


class _Sleep:
    def __init__(
        self,
        work: SleepWork,
        steps: Sequence[SleepStep],
        most_records: int | None,
        most_seconds: float | None,
        on_progress: Progress | None,
    ) -> None:
        self._work = work
        self._steps = steps
        self._most_records = most_records
        self._most_seconds = most_seconds
        self._on_progress = on_progress
        self._clock = work.dynamics.clock
        self._began = self._clock.monotonic()
        self._examined = 0

    async def run(self) -> SleepReport:
        work, at = self._work, self._clock.now()
        before = None if work.dry_run else work.journal.position()
        position = before or SleepPosition(started_at=seconds(at), step=self._steps[0].name)
        reports: list[StepReport] = []
        stopped_at = ""
        for step in self._steps:
            if step.name in position.steps:
                continue
            position = position.model_copy(
                update={"step": step.name, "cursor": position.cursor * (position.step == step.name)}
            )
            done = await self._do(step, position)
            reports.append(done)
            if done.ended == "stopped":
                stopped_at = step.name
                break
            position = position.model_copy(
                update={"steps": (*position.steps, step.name), "cursor": ""}
            )
            if not work.dry_run:
                work.journal.note(position)
        if not stopped_at and not work.dry_run:
            work.journal.end()
        return SleepReport(
            owner=work.dynamics.owner,
            at=at,
            dry_run=work.dry_run,
            resumed_at=reports[0].step if before is not None and reports else "",
            stopped_at=stopped_at,
            steps=tuple(reports),
            model_calls=work.model_calls,
            seconds=self._clock.monotonic() - self._began,
        )

    async def _do(self, step: SleepStep, position: SleepPosition) -> StepReport:
        began = self._clock.monotonic()
        done = StepReport(step=step.name)
        ended, problem = "done", ""
        try:
            async with aclosing(step.batches(self._work, position.cursor)) as batches:
                async for batch in batches:
                    await self._commit(batch, position)
                    done = _with_batch(done, batch)
                    self._examined += batch.examined
                    if self._on_progress is not None:
                        self._on_progress(step.name, done.examined)
                    if not batch.last and self._is_used_up():
                        ended = "stopped"
                        break
        # A step reads a store and asks a model, which are somebody else's code and may raise
        # anything; that must not keep the other steps from their work. The report says it.
        except Exception as error:
            ended, problem = "failed", one_line(f"{type(error).__name__}: {error}", 500)
        took = self._clock.monotonic() - began
        return done.model_copy(update={"ended": ended, "problem": problem, "seconds": took})

    async def _commit(self, batch: StepBatch, position: SleepPosition) -> None:
        """Writes what a batch changes and how far it has come, together."""
        work = self._work
        if work.dry_run:
            return
        with work.dynamics.file.transaction(durable=batch.durable):
            batch.write()
            work.journal.note(position.model_copy(update={"cursor": batch.cursor}))
        if batch.then is not None:
            await batch.then()

    def _is_used_up(self) -> bool:
        if self._most_records is not None and self._examined >= self._most_records:
            return True
        if self._most_seconds is None:
            return False
        return self._clock.monotonic() - self._began >= self._most_seconds


def _with_batch(done: StepReport, batch: StepBatch) -> StepReport:
    return done.model_copy(
        update={
            "examined": done.examined + batch.examined,
            "changed": done.changed + len(batch.changed),
            "records": (*done.records, *batch.changed[: _SHOWN - len(done.records)]),
            "notes": tuple(dict.fromkeys((*done.notes, *batch.notes))),
        }
    )


# ---- Sleep now and then, beside whatever else an event loop does ----


class SleepSchedule:
    """Lets a memory sleep at an interval, as an asynchronous context manager.

    A sleep that fails is logged, and the next one comes in its turn.

    Args:
        memory: With its dynamics.
        every: Seconds between the end of a sleep and the beginning of the next.
        most_seconds: How long one may take; the next continues where it stopped. None for no bound.
        model: See `sleep`.

    Raises:
        ValueError: `every` is not above 0.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        *,
        every: float = 86_400.0,
        most_seconds: float | None = 60.0,
        model: StructuredModel | None = None,
    ) -> None:
        if not every > 0:
            raise ValueError(f"every must be above 0 seconds, not {every!r}.")
        self.last: SleepReport | None = None
        """What the last sleep did."""
        self._memory = memory
        self._every = every
        self._most_seconds = most_seconds
        self._model = model
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begins: the first sleep comes after the interval."""
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Ends, even during a sleep: the next one continues there."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                self.last = await sleep(
                    self._memory, model=self._model, most_seconds=self._most_seconds
                )
            except CoagError as error:
                _LOG.warning("A sleep failed; the next one comes in its turn. %s", error)
