"""A sweep: plays what an assessment lacks, and keeps each trial as soon as it is over."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from ._assessment import Assessment
from ._crew import Crew
from ._domain import How
from ._errors import AssessmentError
from ._log import TrialLog
from ._time_left import TimeLeft
from ._trial import Job, Trial

BROKEN_IN_A_ROW = 8
"""Broken trials one after the other after which a sweep gives up: the fault is not in the jobs."""


class Show(Protocol):
    """Shows how far a sweep is."""

    def begin(self, total: int, done: int) -> None:
        """It begins: of so many jobs so many are done already."""
        ...

    def played(self, trial: Trial, left: float | None) -> None:
        """A job is over; about so many seconds are left."""
        ...

    def stopping(self) -> None:
        """It was interrupted: what is being played is played to its end."""
        ...


def sweep(folder: Path, crew: Crew, how: How, show: Show) -> Assessment:
    """Plays what the assessment in a folder lacks.

    A first interrupt (Ctrl-C) lets what is being played come to its end; a second one ends it at
    once. In both cases, and after a kill, calling this again goes on.

    Args:
        folder: The assessment's folder; its plan is there.
        crew: Who plays.
        how: How it is played.
        show: Shows how far it is.

    Returns:
        The assessment, with all trials so far.

    Raises:
        AssessmentError: There is no assessment, it is damaged, another process is at it, or
            trial after trial broke.
        KeyboardInterrupt: After a second interrupt.
    """
    with TrialLog(folder) as log:
        begun = Assessment.read(folder)
        jobs = begun.missing
        left = TimeLeft(jobs, size=crew.size, past=begun.trials)
        show.begin(len(begun.trials_that_count) + len(jobs), len(begun.trials_that_count))
        in_a_row: list[Trial] = []
        with (
            _interruptible(show) as stop,
            closing(crew.trials(_until(stop, jobs), folder, how)) as trials,
        ):
            for trial in trials:
                log.append(trial)
                left.played(trial)
                show.played(trial, left.seconds())
                in_a_row = [] if trial.counts else [*in_a_row, trial]
                _give_up(in_a_row)
    return Assessment.read(folder)


def _until(stop: threading.Event, jobs: Sequence[Job]) -> Iterator[Job]:
    for job in jobs:
        if stop.is_set():
            return
        yield job


def _give_up(broken: Sequence[Trial]) -> None:
    if len(broken) >= BROKEN_IN_A_ROW:
        raise AssessmentError(
            f"The last {len(broken)} trials broke; the last one, {broken[-1].job.key}: "
            f"{broken[-1].problem.rstrip('.')}. Nothing is lost: mend what is broken, and run the "
            "same command again to go on."
        )


@contextmanager
def _interruptible(show: Show) -> Generator[threading.Event]:
    """An event that the first interrupt sets; the second one is raised."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def interrupted(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        show.stopping()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
