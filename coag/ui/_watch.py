"""One run, followed while it is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from pathlib import Path

from coag.errors import TraceError
from coag.schema import one_line
from coag.tracing import ProblemKind, RunFolder, RunInfo, TraceLine, TraceTail, read_run

from ._status import RunStatus

_WAITING = timedelta(seconds=1)
"""A phase that asks the model and is silent for so long is waiting for it."""
_GRACE = timedelta(seconds=5)
"""A run that nobody holds is taken to be just opening, or just closing, for so long."""
_SILENT = timedelta(minutes=10)
"""Where nobody can tell who holds a trace, a run that is silent for longer has broken off."""
_ASKING = frozenset({"reasoning", "proposal", "evaluation", "selection", "model"})
_AGENT = 60


class RunState(StrEnum):
    """What a run is doing."""

    READING = "reading"
    """Its trace has not been read up to its end yet."""
    RUNNING = "running"
    WAITING = "waiting"
    """For the model."""
    ACTING = "acting"
    """An external action has begun and not ended."""
    IDLE = "idle"
    """Between two turns."""
    ENDED = "ended"
    BROKE_OFF = "broke off"
    """It has not ended, and its process is gone."""
    UNREADABLE = "unreadable"
    """Its log is damaged, of a newer version, or none of coag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it can be shown now."""

    folder: RunFolder
    state: RunState
    status: RunStatus
    info: RunInfo | None = None
    """None where `run.json` cannot be read."""
    problem: str = ""
    """What is wrong with its log, as a sentence; empty if nothing is."""
    at: datetime
    """When this was so."""

    @property
    def name(self) -> str:
        """The run's id."""
        return one_line(self.folder.path.name, _AGENT)

    @property
    def agent(self) -> str:
        """The agent's name, cleaned; `?` where it cannot be known."""
        return "?" if self.info is None else one_line(self.info.agent[:_AGENT]) or "?"

    @property
    def over(self) -> bool:
        """True if nothing more is awaited of it."""
        return self.state in {RunState.ENDED, RunState.BROKE_OFF, RunState.UNREADABLE}

    @property
    def seconds(self) -> float | None:
        """How long it has been in its phase; None where there is none, or it is over."""
        if self.over or self.status.since is None or self.state is RunState.READING:
            return None
        return max(0.0, (self.at - self.status.since).total_seconds())


class RunWatch:
    """Reads a run as it grows, in slices; keeps its status, never its records.

    Args:
        folder: The run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._tail = TraceTail(folder.trace_path)
        self._status = RunStatus()
        self._info: RunInfo | None = None
        self._stamp: tuple[int, int] | None = None
        self._size = -1
        self._read_all = False
        self._fatal = ""
        self._changed = ""

    def advance(self, lines: int) -> bool:
        """Takes in at most so many further lines; true if there may be more.

        Args:
            lines: How many, at least 1.
        """
        if self._fatal:
            return False
        try:
            self._look_at_info()
            size = _size(self.folder.trace_path)
            if self._read_all and size == self._size:
                return False
            self._read_all = self._take(lines)
            self._size = size
        except TraceError as error:
            self._fatal = one_line(str(error))
        return not (self._read_all or self._fatal)

    def view(self, now: datetime, held: frozenset[int] | None) -> RunView:
        """The run as it stands.

        Args:
            now: The time.
            held: Inodes of the files that somebody holds a lock on; None if that is not known.
        """
        state = self._state(now, held)
        problem = self._fatal or self._changed
        if not problem and state in {RunState.ENDED, RunState.BROKE_OFF} and self._torn():
            problem = "The last line of the trace is truncated."
        return RunView(
            folder=self.folder,
            state=state,
            status=self._status,
            info=self._info,
            problem=problem,
            at=now,
        )

    def _look_at_info(self) -> None:
        """Reads `run.json` if it was replaced."""
        try:
            found = self.folder.info_path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
        except OSError:
            stamp = None
        if self._info is None or stamp != self._stamp:
            self._info = read_run(self.folder.path)
            self._stamp = stamp

    def _take(self, most: int) -> bool:
        """True if there was no further line."""
        for line in islice(self._tail.lines(), most):
            self._take_line(line)
            most -= 1
        return most > 0

    def _take_line(self, line: TraceLine) -> None:
        for problem in line.problems:
            if problem.kind is ProblemKind.UNREADABLE:
                raise TraceError(problem.path, problem.text)
            self._changed = self._changed or one_line(f"The trace was changed: {problem.text}.")
        if line.entry is not None:
            self._status = self._status.with_record(line.entry.body)

    def _state(self, now: datetime, held: frozenset[int] | None) -> RunState:
        info, status = self._info, self._status
        if self._fatal:
            return RunState.UNREADABLE
        if info is None or not self._read_all:
            return RunState.READING
        if info.ended_at is not None:
            return RunState.ENDED
        quiet = now - (status.since or info.started_at)
        if self._gone(quiet, held):
            return RunState.BROKE_OFF
        if not status.phase:
            return RunState.IDLE if status.records else RunState.RUNNING
        if status.acting:
            return RunState.ACTING
        waits = status.phase in _ASKING and quiet >= _WAITING
        return RunState.WAITING if waits else RunState.RUNNING

    def _gone(self, quiet: timedelta, held: frozenset[int] | None) -> bool:
        if held is None:
            return quiet > _SILENT
        try:
            inode = self.folder.trace_path.stat().st_ino
        except OSError:
            inode = -1
        return inode not in held and quiet > _GRACE

    def _torn(self) -> bool:
        """True if the trace does not end in a whole line."""
        try:
            with self.folder.trace_path.open("rb") as file:
                if not file.seek(0, 2):
                    return False
                file.seek(-1, 2)
                return file.read(1) != b"\n"
        except OSError:
            return False


def _size(path: Path) -> int:
    """The file's size in bytes; 0 if it is not there yet."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
