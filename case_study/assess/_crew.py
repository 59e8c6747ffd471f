"""Who plays the jobs of a sweep."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ._domain import How
from ._playing import play_job
from ._trial import Job, Trial


class Crew(Protocol):
    """Plays jobs, some at the same time."""

    @property
    def size(self) -> int:
        """How many jobs it plays at the same time, at most."""
        ...

    def trials(self, jobs: Iterator[Job], folder: Path, how: How) -> Generator[Trial]:
        """The trials of jobs, each as soon as it is over.

        A job is taken from `jobs` only when somebody is free to play it: where no more come, what
        is being played is played to its end. Closing the iterator ends that at once.

        Args:
            jobs: What to play.
            folder: The assessment's folder.
            how: How to play it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """This process plays one job after the other."""

    @property
    def size(self) -> int:
        """One."""
        return 1

    def trials(self, jobs: Iterator[Job], folder: Path, how: How) -> Generator[Trial]:
        """The trials, in the order of the jobs."""
        for job in jobs:
            yield asyncio.run(play_job(job, how, folder))
