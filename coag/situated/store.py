"""Where activities rest: their states, waits, inboxes, focus, and how far each tool was read.

What must be found without opening runs is here. Every call is one short transaction on the event
loop (some 30 microseconds); `together` makes several calls one. A blocked activity is a row: its
value is made when it is asked for.
"""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from coag.errors import UnknownNameError
from coag.schema import Percept, PerceptKind, Value, one_line

from .activities import Activity, ActivityState, InboxEntry, OnActivity, Wait
from .store_file import ActivityStoreError, StoreFile

STORE_NAME = "activities.sqlite"
"""The file of an agent's activities, in its folder."""
RUNS_NAME = "runs"
"""The folder of its activities' runs, beside that file."""
_REMEMBERED = 1_000
"""For each activity: the numbered streams, and as many single ids, whose delivery is known."""
_TIDIED = 61
"""After so many deliveries what is known too much of one activity is removed: it is not cheap. A
prime, so that no rotation of activities passes over one."""
_NUMBERED = re.compile(r"(.*[/-])(\d{1,18})")
"""The id of a percept of a tool: its stream, and its number in it."""
_STREAMS = frozenset({PerceptKind.SIGNAL, PerceptKind.PROPERTY_CHANGE, PerceptKind.GAP})
_SINGLE, _IN_ORDER = 0, 1

_ACTIVITY = """
SELECT json_patch(
    body, json_object('state', state, 'updated', updated, 'wait', json(wait))
) FROM activities
"""
_IN_PLACE = {"state", "updated", "wait"}
"""Fields of an activity that have columns of their own: they change without the others."""
_NEWEST = """
WHERE substr(id, 1, ?1) = ?2 AND (state != 'terminated' OR place IN (
    SELECT place FROM activities WHERE state = 'terminated' AND substr(id, 1, ?1) = ?2
    ORDER BY updated DESC LIMIT ?3
)) ORDER BY updated
"""
_SET = """
UPDATE activities SET state = ?, priority = ?, updated = ?, wait = ?, awaited = ?,
    deadline = ?, body = ? WHERE id = ?
"""
_DELIVERED = """
INSERT INTO delivered (activity, stream, numbered, highest, used) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET highest = excluded.highest, used = excluded.used
WHERE excluded.highest > highest
"""
_FORGOTTEN = """
DELETE FROM delivered WHERE activity = ?1 AND numbered = ?2 AND used <= (
    SELECT used FROM delivered WHERE activity = ?1 AND numbered = ?2
    ORDER BY used DESC LIMIT 1 OFFSET ?3
)
"""

ValueT = TypeVar("ValueT", bound=Value)


class Delivery(NamedTuple):
    """A percept for one activity."""

    activity: str
    percept: Percept
    replaces: bool = False
    """True if property percepts of the same source that are not perceived yet go."""


class Waiting(NamedTuple):
    """What a scheduler must know of a blocked activity: a row, not a value."""

    activity: str
    priority: int
    awaited: str | None
    """The activity whose end is waited for."""
    deadline: float | None
    """Seconds since 1970, UTC."""


class Request(NamedTuple):
    """What another process wants of an activity."""

    number: int
    activity: str
    what: Literal["cancel", "wake"]
    reason: str


class ActivityStore:
    """The activities of an agent in a SQLite file with a write-ahead log, or in RAM.

    Deliveries are known by the ids of their percepts: what was delivered to an activity is not
    delivered to it again, also after it was perceived. Signals, property readings and gaps of a
    tool come in the order of its log, so that the highest number of each epoch is enough; of
    other percepts the last 1,000 ids are known at least.

    Args:
        path: The file, made where there is none; None for a store in RAM.
        owner: Whether this process runs the activities; only one may at a time. Another one may
            read beside it, and leave requests.
        power_safe: Whether each call survives a loss of power. Without that, and faster, all
            survive a killed process, and a loss of power may take the last ones.

    Raises:
        ActivityStoreError: Another process owns it; or the file is damaged, of another program,
            or of a newer version. It is left as it is.
    """

    def __init__(
        self, path: Path | None = None, *, owner: bool = True, power_safe: bool = False
    ) -> None:
        self._file = StoreFile(path, owner=owner, power_safe=power_safe)
        self._writing = self._file.writing
        self._last_number = 0
        if owner:
            with self._writing() as db:
                db.execute("UPDATE activities SET state = 'ready' WHERE state = 'running'")
                row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'inbox'").fetchone()
            self._last_number = row[0] if row else 0

    @property
    def path(self) -> Path | None:
        """The file; None in RAM."""
        return self._file.path

    def close(self) -> None:
        """Closes the file; another process may own it from now on."""
        self._file.close()

    def together(self) -> AbstractContextManager[sqlite3.Connection]:
        """All calls inside are one transaction: nothing of it is stored if one raises."""
        return self._writing()

    # ---- Activities ----

    def add(self, activity: Activity) -> None:
        """Stores a new activity.

        Raises:
            ValueError: There is one with this id.
        """
        with self._writing() as db:
            try:
                db.execute(
                    "INSERT INTO activities (id, state, priority, updated, body) "
                    "VALUES (?, '', 0, '', '')",
                    (activity.id,),
                )
            except sqlite3.IntegrityError as error:
                raise ValueError(f"There is an activity {activity.id!r} already.") from error
            self.save(activity)

    def new_id(self) -> str:
        """An id that no activity has; whoever asks adds the activity before the next asks."""
        rows = self._rows("SELECT coalesce(max(place), 0) FROM activities")
        numbers = itertools.count(next(rows)[0] + 1)
        names = (f"activity-{number:06}" for number in numbers)
        return next(name for name in names if self.get(name) is None)

    def get(self, activity_id: str) -> Activity | None:
        """The activity with this id; None where there is none."""
        rows = self._rows(f"{_ACTIVITY} WHERE id = ?", activity_id)
        return next((_read(Activity, text) for (text,) in rows), None)

    def find(self, *states: ActivityState) -> list[Activity]:
        """The activities in these states, in all if none is given; those added first come first."""
        wanted = states or tuple(ActivityState)
        marks = ", ".join("?" * len(wanted))
        rows = self._rows(f"{_ACTIVITY} WHERE state IN ({marks}) ORDER BY place", *wanted)
        return [_read(Activity, text) for (text,) in rows]

    def newest(self, prefix: str, ended: int) -> list[Activity]:
        """The activities whose ids begin so, in the order of their last changes.

        Args:
            prefix: The beginning of the ids.
            ended: How many that have terminated; all others are given.
        """
        rows = self._rows(f"{_ACTIVITY} {_NEWEST}", len(prefix), prefix, ended)
        return [_read(Activity, text) for (text,) in rows]

    def save(self, activity: Activity) -> None:
        """Stores an activity as it is now; one that has terminated loses inbox and focus.

        Raises:
            ValueError: There is none with this id.
        """
        wait = activity.wait
        condition = wait and wait.condition
        values = (
            activity.state,
            activity.priority,
            activity.updated.isoformat(),
            wait and wait.model_dump_json(),
            condition.activity if isinstance(condition, OnActivity) else None,
            wait and wait.deadline and wait.deadline.timestamp(),
            activity.model_dump_json(exclude=_IN_PLACE),
            activity.id,
        )
        with self._writing() as db:
            if not db.execute(_SET, values).rowcount:
                raise ValueError(f"There is no activity {activity.id!r}; add it first.")
            if activity.over:
                for table in ("inbox", "delivered", "focus"):
                    db.execute(f"DELETE FROM {table} WHERE activity = ?", (activity.id,))

    def name_run(self, activity_id: str, run: str) -> None:
        """Notes the run folder of an activity, as soon as there is one."""
        with self._writing() as db:
            db.execute(
                "UPDATE activities SET body = json_set(body, '$.run', ?) WHERE id = ?",
                (run, activity_id),
            )

    def wake(self, activity_ids: Iterable[str], now: datetime) -> None:
        """Makes blocked activities ready; what they waited for is forgotten."""
        with self._writing() as db:
            db.executemany(
                "UPDATE activities SET state = 'ready', updated = ?, wait = NULL, awaited = NULL, "
                "deadline = NULL WHERE id = ? AND state = 'blocked'",
                [(now.isoformat(), one) for one in activity_ids],
            )

    def wait_of(self, activity_id: str) -> Wait | None:
        """What an activity waits for."""
        rows = self._rows(
            "SELECT wait FROM activities WHERE id = ? AND wait IS NOT NULL", activity_id
        )
        return next((_read(Wait, text) for (text,) in rows), None)

    def ready(self) -> Iterator[tuple[str, int]]:
        """The ready activities with their priorities; those added first come first."""
        yield from self._rows(
            "SELECT id, priority FROM activities WHERE state = 'ready' ORDER BY place"
        )

    def waiting(self) -> Iterator[Waiting]:
        """The blocked activities, as rows."""
        rows = self._rows(
            "SELECT id, priority, awaited, deadline FROM activities WHERE state = 'blocked'"
        )
        yield from map(Waiting._make, rows)

    def count_time_out(self, activity_id: str) -> int:
        """How many deadlines of an activity have passed, with the one that passes now."""
        with self._writing() as db:
            (count,) = db.execute(
                "UPDATE activities SET time_outs = time_outs + 1 WHERE id = ? RETURNING time_outs",
                (activity_id,),
            ).fetchone()
        return count

    # ---- Inboxes ----

    def deliver(self, tool: str | None, cursor: str | None, deliveries: Iterable[Delivery]) -> None:
        """Puts percepts into inboxes, and notes how far the log of a tool was read.

        What was delivered before, or goes to an activity that has terminated, is left out. An
        inbox may belong to no activity, e.g. to what sets goals when a signal comes.

        Args:
            tool: The tool that was read; None where the percepts come from none.
            cursor: How far it was read; None leaves that as it was.
            deliveries: The percepts, those of a tool in the order of its log.
        """
        with self._writing() as db:
            if tool is not None and cursor is not None:
                db.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?)", (tool, cursor))
            texts: dict[int, str] = {}
            for one in deliveries:
                known = id(one.percept)  # one percept for many activities is written out once
                if known not in texts:
                    texts[known] = one.percept.model_dump_json(exclude_defaults=True)
                self._deliver(db, one, texts[known])

    def _deliver(self, db: sqlite3.Connection, delivery: Delivery, text: str) -> None:
        activity, percept, replaces = delivery
        over = "SELECT 1 FROM activities WHERE id = ? AND state = 'terminated'"
        if db.execute(over, (activity,)).fetchone():
            return
        stream, numbered, number = _stream(percept)
        self._last_number += 1
        new = db.execute(_DELIVERED, (activity, stream, numbered, number, self._last_number))
        if not new.rowcount:
            return
        if self._last_number % _TIDIED == 0:
            db.execute(_FORGOTTEN, (activity, numbered, _REMEMBERED))
        if replaces:
            db.execute(
                "DELETE FROM inbox WHERE activity = ? AND kind = ? AND source = ?",
                (activity, PerceptKind.PROPERTY_CHANGE, percept.source),
            )
        db.execute(
            "INSERT INTO inbox VALUES (?, ?, ?, ?, ?, ?)",
            (self._last_number, activity, percept.id, percept.kind, percept.source, text),
        )

    def inbox(self, activity_id: str, after: int = 0) -> tuple[InboxEntry, ...]:
        """What has arrived and is not perceived, in order.

        Args:
            activity_id: Whose inbox.
            after: Only entries with higher numbers.
        """
        rows = self._rows(
            "SELECT number, body FROM inbox WHERE activity = ? AND number > ? ORDER BY number",
            activity_id,
            after,
        )
        return tuple(
            InboxEntry(number=number, percept=_read(Percept, text)) for number, text in rows
        )

    def forget(self, activity_id: str, percept_ids: Iterable[str]) -> None:
        """Removes what was perceived from an inbox."""
        with self._writing() as db:
            db.executemany(
                "DELETE FROM inbox WHERE activity = ? AND percept = ?",
                [(activity_id, one) for one in percept_ids],
            )

    def with_inbox(self) -> list[str]:
        """The activities that have something in their inbox."""
        return [one for (one,) in self._rows("SELECT DISTINCT activity FROM inbox")]

    def cursor(self, tool: str) -> str | None:
        """How far the signals of a tool were read and delivered."""
        rows = self._rows("SELECT cursor FROM cursors WHERE tool = ?", tool)
        return next((cursor for (cursor,) in rows), None)

    # ---- Focus ----

    def focus(self, activity_id: str, tool: str, signals: frozenset[str] | None = None) -> None:
        """Notes that an activity perceives a tool: the named signals of it, or all for None."""
        named = None if signals is None else json.dumps(sorted(signals))
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO focus VALUES (?, ?, ?)", (activity_id, tool, named))

    def unfocus(self, activity_id: str, tool: str) -> None:
        """Notes that an activity does not perceive a tool any more."""
        with self._writing() as db:
            db.execute("DELETE FROM focus WHERE activity = ? AND tool = ?", (activity_id, tool))

    def focuses(self) -> Mapping[str, Mapping[str, frozenset[str] | None]]:
        """For each tool: which activities perceive it, and which of its signals (None: all)."""
        found: dict[str, dict[str, frozenset[str] | None]] = defaultdict(dict)
        for activity, tool, named in self._rows("SELECT activity, tool, signals FROM focus"):
            found[tool][activity] = None if named is None else frozenset(json.loads(named))
        return dict(found)

    # ---- Pins: which description and manual of a tool was accepted ----

    def pin(self, server: str, tool: str, digest: str) -> None:
        """Notes the digest of what a tool says of itself, as it was accepted."""
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO pins VALUES (?, ?, ?)", (server, tool, digest))

    def pins(self, server: str) -> Mapping[str, str]:
        """The accepted digest of each tool of a server."""
        return dict(self._rows("SELECT tool, digest FROM pins WHERE server = ?", server))

    # ---- Requests of other processes ----

    def request(self, activity_id: str, what: Literal["cancel", "wake"], reason: str = "") -> None:
        """Asks the owner of the store to cancel or wake an activity; any process may."""
        with self._writing(request=True) as db:
            db.execute(
                "INSERT INTO requests (activity, what, reason) VALUES (?, ?, ?)",
                (activity_id, what, reason),
            )

    def requests(self) -> list[Request]:
        """What was asked for and is not settled, in order."""
        rows = self._rows("SELECT number, activity, what, reason FROM requests ORDER BY number")
        return list(map(Request._make, rows))

    def settle(self, number: int) -> None:
        """Removes a request that was seen to."""
        with self._writing() as db:
            db.execute("DELETE FROM requests WHERE number = ?", (number,))

    def _rows(self, query: str, *values: object) -> Iterator[Any]:
        with self._file.errors():
            return iter(self._file.db.execute(query, values).fetchall())


def activity_in(store: ActivityStore, activity_id: str) -> Activity:
    """The activity with this id.

    Raises:
        UnknownNameError: There is none; names the last ones that there are.
    """
    activity = store.get(activity_id)
    if activity is None:
        known = [one.id for one in store.find()]
        raise UnknownNameError("activity", activity_id, known[-20:])
    return activity


def _read(kind: type[ValueT], text: str) -> ValueT:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise ActivityStoreError(
            f"The store of activities holds what is no {kind.__name__}: {one_line(text)!r} "
            f"({one_line(str(error))}). The file was written by another version, or by hand."
        ) from error


def _stream(percept: Percept) -> tuple[str, int, int]:
    """What a percept's delivery is known by: a stream, whether it is numbered, and the number."""
    of_a_log = percept.kind in _STREAMS and percept.id.startswith(f"{percept.source}/")
    if of_a_log and (found := _NUMBERED.fullmatch(percept.id)):
        return found[1], _IN_ORDER, int(found[2])
    return f"={percept.id}", _SINGLE, 0
