"""Worker processes: each imports what it needs once and plays many jobs."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import cast

from ._domain import How
from ._playing import broken_trial
from ._trial import Job, Trial
from ._worker import work

JOBS_A_WORKER = 400
"""Jobs after which a worker is replaced by a new one, so that memory stays flat whatever leaks."""
_PATIENCE = 10.0
"""Seconds that a worker without work has to end by itself."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Processes that play jobs at the same time.

    A worker that dies in a job, e.g. for want of memory, is replaced, and the job is tried again
    within the bound of `how.retries`.

    Args:
        size: How many.
        jobs_a_worker: Jobs after which a worker is replaced.
    """

    size: int
    jobs_a_worker: int = JOBS_A_WORKER

    def trials(self, jobs: Iterator[Job], folder: Path, how: How) -> Generator[Trial]:
        """The trials, each as soon as it is over."""
        hands = [_Hand(folder=folder, how=how) for _ in range(self.size)]
        try:
            while True:
                for hand in hands:
                    self._give(hand, jobs)
                busy = {hand.connection: hand for hand in hands if hand.job is not None}
                if not busy:
                    return
                for ready in wait(list(busy)):
                    trial = busy[cast("Connection", ready)].take()
                    if trial is not None:
                        yield trial
        finally:
            for hand in hands:
                hand.end()

    def _give(self, hand: _Hand, jobs: Iterator[Job]) -> None:
        """Gives a free worker the next job, if there is one."""
        if hand.job is not None:
            return
        job = next(jobs, None)
        if job is None:
            hand.end()
            return
        if hand.played >= self.jobs_a_worker:
            hand.end()
        hand.give(job)


@dataclass(slots=True, kw_only=True)
class _Hand:
    """A place for a worker, and what it is at."""

    folder: Path
    how: How
    job: Job | None = None
    attempt: int = 1
    """Which worker it is that this job is given to."""
    played: int = 0
    """Jobs that the worker in this place has played."""
    process: SpawnProcess | None = None
    own_end: Connection | None = None

    @property
    def connection(self) -> Connection:
        """This end of the way to the worker."""
        assert self.own_end is not None
        return self.own_end

    def give(self, job: Job) -> None:
        """Gives a job to the worker, a new one where there is none."""
        if self.process is None:
            self._start()
        self.job = job
        with suppress(BrokenPipeError):  # it died while idle: taking its trial finds that out
            self.connection.send(job)

    def take(self) -> Trial | None:
        """The trial of the job; None where the worker has died and another one plays it now."""
        job = self.job
        assert job is not None
        try:
            trial: Trial = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._died(job)
        if self.attempt > 1:
            trial = trial.model_copy(update={"attempts": trial.attempts + self.attempt - 1})
        self.job, self.attempt, self.played = None, 1, self.played + 1
        return trial

    def end(self) -> None:
        """Ends the worker; in the middle of a job, too."""
        if self.process is None:
            return
        self.connection.close()
        if self.job is not None:
            self.process.kill()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()
        self.process, self.own_end, self.job, self.played = None, None, None, 0

    def _start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.own_end, other = spawning.Pipe()
        self.process = spawning.Process(
            target=work, args=(other, self.folder, self.how), daemon=True
        )
        self.process.start()
        other.close()

    def _died(self, job: Job) -> Trial | None:
        process = self.process
        assert process is not None
        process.join(_PATIENCE)
        code, attempt = process.exitcode, self.attempt
        self.end()
        if attempt <= self.how.retries:
            self.attempt = attempt + 1
            self.give(job)
            return None
        self.attempt = 1
        return broken_trial(job, f"The process that played it died with exit code {code}.", attempt)
