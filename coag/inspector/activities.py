"""The activities of a situated agent, as its store has them beside the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from coag.situated import (
    RUNS_NAME,
    STORE_NAME,
    Activity,
    ActivityState,
    ActivityStore,
    ActivityStoreError,
)

from .trace_scan import FileStamp, file_stamp

NO_ACTIVITIES = (
    f"These are not the runs of a situated agent: neither is there a file {STORE_NAME!r} in the "
    f"folder that is inspected, nor beside it if it is called {RUNS_NAME!r}."
)
_SIZE = 50
"""Activities on a page."""
_ORDER = (
    ActivityState.RUNNING,
    ActivityState.READY,
    ActivityState.BLOCKED,
    ActivityState.TERMINATED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityPage:
    """A page of the activities: those that have not ended first, of each state the latest first."""

    folder: str
    """The agent's folder."""
    rows: tuple[tuple[Activity, str], ...]
    """Each with the key of its run; empty where it has none among these runs."""
    counts: Mapping[ActivityState, int]
    total: int
    page: int
    pages: int


class ActivityReader:
    """Reads the store of the agent to whose folder a folder of logs belongs.

    That is the folder itself, or where it is an agent's `runs`, the one that holds it. The store is
    read beside the agent and never changed. It may be used from several threads.
    """

    def __init__(self, logs: Path) -> None:
        inside = logs.resolve().name == RUNS_NAME and file_stamp(logs / STORE_NAME) is None
        self._path = (logs.resolve().parent if inside else logs) / STORE_NAME
        self._runs = "" if inside else f"{RUNS_NAME}/"
        """Where the runs of activities are, as seen from the folder of logs."""
        self._lock = Lock()
        self._stamps: tuple[FileStamp | None, ...] = ()
        """Of the store's files when it was read."""
        self._read: list[Activity] = []

    @property
    def there(self) -> bool:
        """Whether there is a store; links are not followed."""
        return file_stamp(self._path) is not None

    def page(self, number: int, runs: Mapping[str, str]) -> ActivityPage:
        """A page of the activities, from 1; `runs` gives the keys of runs by their folders.

        Raises:
            ActivityStoreError: There is no store, or it cannot be read.
        """
        activities = self._activities()
        pages = max(-(-len(activities) // _SIZE), 1)
        number = min(max(number, 1), pages)
        shown = activities[(number - 1) * _SIZE : number * _SIZE]
        keys = ((one, one.run and runs.get(f"{self._runs}{one.run}")) for one in shown)
        return ActivityPage(
            folder=str(self._path.parent),
            rows=tuple((one, key or "") for one, key in keys),
            counts=Counter(one.state for one in activities),
            total=len(activities),
            page=number,
            pages=pages,
        )

    def _activities(self) -> list[Activity]:
        """All activities in order; read again where the store has changed."""
        with self._lock:
            ahead = self._path.with_name(f"{STORE_NAME}-wal")
            stamps = (file_stamp(self._path), file_stamp(ahead))
            if stamps[0] is None:
                raise ActivityStoreError(
                    f"There is no store of activities at {str(self._path)!r}, or a link, which is "
                    "not followed."
                )
            if stamps != self._stamps:
                store = ActivityStore(self._path, owner=False)
                try:
                    found = store.find()
                finally:
                    store.close()
                found.sort(key=lambda one: one.updated, reverse=True)
                found.sort(key=lambda one: _ORDER.index(one.state))
                self._read, self._stamps = found, stamps
            return self._read
