"""All runs that are watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from coag.schema import Clock, SystemClock
from coag.tracing import RunFolder

from ._watch import RunView, RunWatch

_MOST = 50
"""Runs watched at once, the ones that something was written of last."""
_SLICE = 200
"""Lines read of one run before the next has its turn."""
_LOOK = 1.0
"""Seconds between two looks for new runs."""
_LOCKS = Path("/proc/locks")


class Board:
    """Follows several runs in slices of time, so that whoever shows them never waits.

    Args:
        find: Gives the runs there are; it is asked again from time to time.
        clock: Tells how long a phase has been going on, and reading.
        held: Gives the inodes of the files on which somebody holds a lock; None where that cannot
            be known. It tells a run that goes on from one whose process is gone.
    """

    def __init__(
        self,
        find: Callable[[], Sequence[RunFolder]],
        *,
        clock: Clock | None = None,
        held: Callable[[], frozenset[int] | None] | None = None,
    ) -> None:
        self._find = find
        self._clock = clock or SystemClock()
        self._held = held or held_files
        self._watches: dict[Path, RunWatch] = {}
        self._looked: float | None = None
        self.older = 0
        """How many runs there are that are not watched, because others are newer."""

    def advance(self, seconds: float) -> bool:
        """Looks for new runs and reads on, for about so long; true if there may be more to read.

        Args:
            seconds: How long; at least one slice of each run is read.
        """
        until = self._clock.monotonic() + seconds
        self._look()
        waiting = list(self._watches.values())
        while waiting:
            waiting = [watch for watch in waiting if watch.advance(_SLICE)]
            if self._clock.monotonic() >= until:
                break
        return bool(waiting)

    def views(self) -> list[RunView]:
        """All watched runs as they stand, those that began last first."""
        now, held = self._clock.now(), self._held()
        views = [watch.view(now, held) for watch in self._watches.values()]
        return sorted(views, key=_order, reverse=True)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looked is not None and now - self._looked < _LOOK:
            return
        self._looked = now
        found = list(self._find())
        if len(found) > _MOST:
            found.sort(key=_written, reverse=True)
        self.older = max(0, len(found) - _MOST)
        old = self._watches
        kept = {run.path: run for run in found[:_MOST]}
        self._watches = {path: old.get(path) or RunWatch(run) for path, run in kept.items()}


def held_files() -> frozenset[int] | None:
    """Inodes of the files that any process of this machine holds a lock on; None if unknown."""
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeError):
        return None
    named = [word for line in lines for word in line.split() if word.count(":") == 2]
    inodes = (word.rpartition(":")[2] for word in named)
    return frozenset(int(inode) for inode in inodes if inode.isdecimal())


def _order(view: RunView) -> tuple[str, str]:
    started = "" if view.info is None else view.info.started_at.isoformat()
    return (started, view.name)


def _written(run: RunFolder) -> float:
    """When something was written of it last."""
    times = [0.0]
    for path in (run.info_path, run.trace_path):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue
    return max(times)
