"""Where activities rest: their states and waits, and what other processes ask for.

What must be found without opening runs is here. Every call is one short transaction on the event
loop (some 30 microseconds in SQLite); `together` makes several calls one. A blocked activity is a
row: its value is made when it is asked for.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from coag._util.text import well_formed
from coag.errors import UnknownNameError

from .activities import Activity, ActivityState, OnActivity, Wait
from .store_file import ActivityStoreError, StoreFile
from .store_inboxes import Inboxes, read
from .store_postgres import LEASE_SECONDS, StoreDatabase, is_database

STORE_NAME = "activities.sqlite"
"""The file of an agent's activities, in its folder."""
RUNS_NAME = "runs"
"""The folder of its activities' runs, beside that file."""
_ACTIVITY = "SELECT body, state, updated, wait FROM activities"
_IN_PLACE = {"state", "updated", "wait"}
"""Fields of an activity that have columns of their own: they change without the others."""
_NEWEST = """
WHERE substr(id, 1, ?) = ? AND (state <> 'terminated' OR place IN (
    SELECT place FROM activities WHERE state = 'terminated' AND substr(id, 1, ?) = ?
    ORDER BY updated DESC LIMIT ?
)) ORDER BY updated
"""
_ADD = """
INSERT INTO activities (state, priority, updated, wait, awaited, deadline, body, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""
_SET = """
UPDATE activities SET state = ?, priority = ?, updated = ?, wait = ?, awaited = ?,
    deadline = ?, body = ? WHERE id = ?
"""
_WAKE = """
UPDATE activities SET state = 'ready', updated = ?, wait = NULL, awaited = NULL, deadline = NULL
WHERE id = ? AND state = 'blocked'"""
_REQUESTS = """
SELECT number, activity, what, reason FROM requests WHERE NOT EXISTS (
    SELECT 1 FROM activities WHERE id = activity AND state <> 'terminated'
) OR (1 = 1{mine}) ORDER BY number
"""


class Woken(NamedTuple):
    """An activity that was blocked and is ready: what a scheduler must know of it."""

    activity: str
    priority: int


class Request(NamedTuple):
    """What another process wants of an activity."""

    number: int
    activity: str
    what: Literal["cancel", "wake"]
    reason: str


class ActivityStore(Inboxes):
    """The activities of an agent: in a SQLite file with a write-ahead log, in RAM, or in Postgres.

    A file is owned by one process. A database (the extra `coag[postgres]`) may have any number of
    workers: each takes a share of the activities, keeps them by a lease, and those of a dead
    worker are taken by the others.

    Deliveries are known by the ids of their percepts: what was delivered to an activity is not
    delivered to it again, also after it was perceived. Signals, property readings and gaps of a
    tool come in the order of its log, so that the highest number of each epoch is enough; of
    other percepts the last 1,000 ids are known at least.

    Args:
        path: The file, made where there is none; or `postgresql://HOST/DATABASE`; None for a
            store in RAM.
        owner: Whether this process runs activities. Another one may read beside it, and leave
            requests.
        power_safe: Whether each call survives a loss of power. Without that, and faster, all
            survive a killed process, and a loss of power may take the last ones.
        lease: In a database: seconds without a sign of life after which this worker is taken for
            dead.

    Raises:
        ActivityStoreError: Another process owns the file; or it is damaged, of another program,
            or of a newer version. It is left as it is. Or the database cannot be reached.
        ConfigurationError: A database is named, and psycopg is not installed.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        owner: bool = True,
        power_safe: bool = False,
        lease: float = LEASE_SECONDS,
    ) -> None:
        if is_database(path):
            super().__init__(
                StoreDatabase(str(path), owner=owner, power_safe=power_safe, lease=lease)
            )
        else:
            file = None if path is None else Path(path)
            super().__init__(StoreFile(file, owner=owner, power_safe=power_safe))

    @property
    def path(self) -> Path | None:
        """The file; None in RAM and in a database."""
        return self._file.path

    @property
    def shared(self) -> bool:
        """Whether other workers may pursue activities of this store."""
        return self._file.shared

    @property
    def lasts(self) -> bool:
        """Whether it outlives the process."""
        return self.path is not None or self.shared

    def close(self) -> None:
        """Closes it; another process may own the file, or take the activities, from now on."""
        self._file.close()

    # ---- Who pursues which ----

    def claim(self, free: int) -> Sequence[str]:
        """Takes activities that nobody pursues, up to a fair share, and gives their ids.

        The lease is renewed. The owner of a file has all its activities, and takes none. Of those
        that are ready as many are taken as are free. A worker that was taken for dead gets a
        `WorkerLeaseError`.
        """
        return self._file.claim(free)

    def of_another(self, activity_id: str) -> bool:
        """Whether an activity is not this worker's, where several share the store."""
        rows = self._rows(f"SELECT 1 FROM activities WHERE id = ?{self._mine}", activity_id)
        return self.shared and next(rows, None) is None

    def hold(self) -> None:
        """Renews the lease of this worker, before something acts outside; raises as `claim`."""
        self._file.hold()

    @property
    def _mine(self) -> str:
        return self._file.mine("activities.id")

    # ---- Activities ----

    def add(self, activity: Activity) -> None:
        """Stores a new activity; `ValueError` where there is one with this id."""
        with self._writing() as db:
            if not db.execute(_ADD, _columns(activity)).rowcount:
                raise ValueError(f"There is an activity {activity.id!r} already.")

    def new_id(self) -> str:
        """An id that no activity has; add the activity before the next call."""
        rows = self._rows("SELECT coalesce(max(place), 0) FROM activities")
        numbers = itertools.count(next(rows)[0] + 1)
        names = (f"activity-{number:06}" for number in numbers)
        return next(name for name in names if self.get(name) is None)

    def get(self, activity_id: str) -> Activity | None:
        """The activity with this id; None where there is none."""
        rows = self._rows(f"{_ACTIVITY} WHERE id = ?", activity_id)
        return next((_activity(*row) for row in rows), None)

    def find(self, *states: ActivityState) -> list[Activity]:
        """The activities in these states, in all if none is given; those added first come first."""
        wanted = states or tuple(ActivityState)
        marks = ", ".join("?" * len(wanted))
        rows = self._rows(f"{_ACTIVITY} WHERE state IN ({marks}) ORDER BY place", *wanted)
        return [_activity(*row) for row in rows]

    def agent(self) -> str | None:
        """The agent whose activities it has; None where there are none."""
        rows = self._rows(f"{_ACTIVITY} ORDER BY place LIMIT 1")
        return next((_activity(*row).agent for row in rows), None)

    def newest(self, prefix: str, ended: int) -> list[Activity]:
        """The activities whose ids begin so, in the order of their last changes.

        Of those that have terminated only so many are given.
        """
        begins = (len(prefix), prefix)
        rows = self._rows(f"{_ACTIVITY} {_NEWEST}", *begins, *begins, ended)
        return [_activity(*row) for row in rows]

    def save(self, activity: Activity) -> None:
        """Stores an activity as it is now; one that has terminated loses inbox and focus.

        Raises:
            ValueError: There is none with this id.
        """
        with self._writing() as db:
            if not db.execute(_SET + self._mine, _columns(activity)).rowcount:
                if self.get(activity.id) is None:
                    raise ValueError(f"There is no activity {activity.id!r}; add it first.")
                raise ActivityStoreError(
                    f"Activity {activity.id!r} is not pursued by this worker; nothing was written."
                )
            if activity.over:
                for table in self._file.until_end:
                    db.execute(f"DELETE FROM {table} WHERE activity = ?", (activity.id,))

    def name_run(self, activity_id: str, run: str) -> None:
        """Notes the run folder of an activity, as soon as there is one."""
        with self._writing() as db:
            if (activity := self.get(activity_id)) is not None:
                body = activity.model_copy(update={"run": run}).model_dump_json(exclude=_IN_PLACE)
                query = f"UPDATE activities SET body = ? WHERE id = ?{self._mine}"
                db.execute(query, (body, activity_id))

    def wake(self, activity_ids: Iterable[str], now: datetime) -> list[Woken]:
        """Makes those of this worker's activities ready that are blocked, and gives these.

        What they waited for is forgotten.
        """
        woken: list[Woken] = []
        with self._writing() as db:
            for one in activity_ids:
                rows = db.execute(
                    f"{_WAKE}{self._mine} RETURNING id, priority", (now.isoformat(), one)
                )
                woken += map(Woken._make, rows.fetchall())
        return woken

    def wait_of(self, activity_id: str) -> Wait | None:
        """What an activity waits for."""
        rows = self._rows(
            "SELECT wait FROM activities WHERE id = ? AND wait IS NOT NULL", activity_id
        )
        return next((read(Wait, text) for (text,) in rows), None)

    def ready(self) -> Iterator[tuple[str, int]]:
        """This worker's ready activities with their priorities; those added first come first."""
        yield from self._rows(
            f"SELECT id, priority FROM activities WHERE state = 'ready'{self._mine} ORDER BY place"
        )

    def due(self, now: datetime) -> list[tuple[str, Wait]]:
        """This worker's blocked activities whose deadline has passed, the oldest first."""
        query = f"SELECT id, wait FROM activities WHERE deadline <= ?{self._mine} ORDER BY deadline"
        return [(one, read(Wait, wait)) for one, wait in self._rows(query, now.timestamp())]

    def next_deadline(self) -> float | None:
        """When the next deadline of this worker's activities is, in seconds since 1970."""
        query = f"SELECT min(deadline) FROM activities WHERE deadline IS NOT NULL{self._mine}"
        return next(self._rows(query))[0]

    def waiters(self, activity_id: str) -> list[str]:
        """The blocked activities of all workers that wait for the end of this one."""
        query = "SELECT id FROM activities WHERE awaited = ? AND state = 'blocked' ORDER BY place"
        return [one for (one,) in self._rows(query, activity_id)]

    def count_time_out(self, activity_id: str) -> int:
        """How many deadlines of an activity have passed, with the one that passes now."""
        with self._writing() as db:
            (count,) = db.execute(
                "UPDATE activities SET time_outs = time_outs + 1 WHERE id = ? RETURNING time_outs",
                (activity_id,),
            ).fetchone()
        return count

    # ---- Requests of other processes ----

    def request(self, activity_id: str, what: Literal["cancel", "wake"], reason: str = "") -> None:
        """Asks the owner of the store to cancel or wake an activity; any process may."""
        with self._writing(request=True) as db:
            db.execute(
                "INSERT INTO requests (activity, what, reason) VALUES (?, ?, ?)",
                (activity_id, what, well_formed(reason)),
            )

    def requests(self) -> list[Request]:
        """What was asked of this worker's activities, and of ended ones, and is not settled."""
        rows = self._rows(_REQUESTS.format(mine=self._file.mine("requests.activity")))
        return list(map(Request._make, rows))

    def settle(self, number: int) -> None:
        """Removes a request that was seen to."""
        with self._writing() as db:
            db.execute("DELETE FROM requests WHERE number = ?", (number,))


def activity_in(store: ActivityStore, activity_id: str) -> Activity:
    """The activity with this id; an `UnknownNameError` names the last ones that there are."""
    activity = store.get(activity_id)
    if activity is None:
        known = [one.id for one in store.find()]
        raise UnknownNameError("activity", activity_id, known[-20:])
    return activity


def _columns(activity: Activity) -> tuple[object, ...]:
    """What is stored of an activity, in the order of `_SET`."""
    wait = activity.wait
    condition = wait and wait.condition
    return (
        activity.state,
        activity.priority,
        activity.updated.isoformat(),
        wait and wait.model_dump_json(),
        condition.activity if isinstance(condition, OnActivity) else None,
        wait and wait.deadline and wait.deadline.timestamp(),
        activity.model_dump_json(exclude=_IN_PLACE),
        activity.id,
    )


def _activity(body: str, state: str, updated: str, wait: str | None) -> Activity:
    """An activity from its columns; what is in place is added to the object that is stored."""
    place = f'"state":{json.dumps(state)},"updated":{json.dumps(updated)},"wait":{wait or "null"}'
    return read(Activity, body.removesuffix("}") + f",{place}}}")
