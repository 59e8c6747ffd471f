"""What arrives for activities: inboxes, how far each tool was read, focus, and accepted tools.

Deliveries are known by the ids of their percepts. So each arrives once, even if several workers
read the tool.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from coag.schema import Percept, PerceptKind, Value, one_line

from .activities import InboxEntry
from .store_file import ActivityStoreError, StoreFile
from .store_postgres import StoreDatabase

_REMEMBERED = 1_000
"""For each activity: the numbered streams, and as many single ids, whose delivery is known."""
_TIDIED = 61
"""After so many deliveries what is known too much of one activity is removed: it is not cheap. A
prime, so that no rotation of activities passes over one."""
_NUMBERED = re.compile(r"(.*[/-])(\d{1,18})")
"""The id of a percept of a tool: its stream, and its number in it."""
_STREAMS = frozenset({PerceptKind.SIGNAL, PerceptKind.PROPERTY_CHANGE, PerceptKind.GAP})
_SINGLE, _IN_ORDER = 0, 1

_DELIVERED = """
INSERT INTO delivered (activity, stream, numbered, highest, used) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (activity, stream) DO UPDATE SET highest = excluded.highest, used = excluded.used
WHERE excluded.highest > delivered.highest
"""
_FORGOTTEN = """
DELETE FROM delivered WHERE activity = ? AND numbered = ? AND used <= (
    SELECT used FROM delivered WHERE activity = ? AND numbered = ?
    ORDER BY used DESC LIMIT 1 OFFSET ?
)
"""
_CURSOR = """
INSERT INTO cursors (tool, cursor) VALUES (?, ?)
ON CONFLICT (tool) DO UPDATE SET cursor = excluded.cursor
"""
_FOCUS = """
INSERT INTO focus (activity, tool, signals) VALUES (?, ?, ?)
ON CONFLICT (activity, tool) DO UPDATE SET signals = excluded.signals
"""
_PIN = """
INSERT INTO pins (server, tool, digest) VALUES (?, ?, ?)
ON CONFLICT (server, tool) DO UPDATE SET digest = excluded.digest
"""

ValueT = TypeVar("ValueT", bound=Value)


class Transaction(Protocol):
    """What runs the statements of a transaction."""

    def execute(self, query: str, values: Sequence[object] = ..., /) -> Any:
        """Runs one, with `?` for values; gives its cursor."""
        ...


class Delivery(NamedTuple):
    """A percept for one activity."""

    activity: str
    percept: Percept
    replaces: bool = False
    """True if property percepts of the same source that are not perceived yet go."""


class Inboxes:
    """The part of a store of activities in which what they perceive is kept."""

    def __init__(self, file: StoreFile | StoreDatabase) -> None:
        self._file = file
        self._seen = 0

    def _writing(self, *, request: bool = False) -> AbstractContextManager[Transaction]:
        return self._file.writing(request=request)

    def _rows(self, query: str, *values: object) -> Iterator[Any]:
        return iter(self._file.rows(query, values))

    def together(self) -> AbstractContextManager[Transaction]:
        """All calls inside are one transaction: nothing of it is stored if one raises."""
        return self._writing()

    # ---- Inboxes ----

    def deliver(self, tool: str | None, cursor: str | None, deliveries: Iterable[Delivery]) -> None:
        """Puts percepts into inboxes, and notes how far the log of a tool was read, where given.

        What was delivered before, or goes to an activity that has terminated, is left out. An
        inbox may belong to no activity, e.g. to what sets goals when a signal comes. Percepts of a
        tool are in the order of its log.
        """
        with self._writing() as db:
            if tool is not None and cursor is not None:
                db.execute(_CURSOR, (tool, cursor))
            texts: dict[int, str] = {}
            for one in deliveries:
                known = id(one.percept)  # one percept for many activities is written out once
                if known not in texts:
                    texts[known] = one.percept.model_dump_json(exclude_defaults=True)
                self._deliver(db, one, texts[known])

    def _deliver(self, db: Transaction, delivery: Delivery, text: str) -> None:
        activity, percept, replaces = delivery
        over = "SELECT 1 FROM activities WHERE id = ? AND state = 'terminated'"
        if db.execute(over, (activity,)).fetchone():
            return
        stream, numbered, number = _stream(percept)
        place = self._file.next_number()
        new = db.execute(_DELIVERED, (activity, stream, numbered, number, place))
        if not new.rowcount:
            return
        if place % _TIDIED == 0:
            mine = (activity, numbered)
            db.execute(_FORGOTTEN, (*mine, *mine, _REMEMBERED))
        if replaces:
            db.execute(
                "DELETE FROM inbox WHERE activity = ? AND kind = ? AND source = ?",
                (activity, PerceptKind.PROPERTY_CHANGE, percept.source),
            )
        db.execute(
            "INSERT INTO inbox VALUES (?, ?, ?, ?, ?, ?)",
            (place, activity, percept.id, percept.kind, percept.source, text),
        )

    def inbox(self, activity_id: str, after: int = 0) -> tuple[InboxEntry, ...]:
        """What has arrived and is not perceived, in order: entries with numbers behind `after`."""
        rows = self._rows(
            "SELECT number, body FROM inbox WHERE activity = ? AND number > ? ORDER BY number",
            activity_id,
            after,
        )
        return tuple(
            InboxEntry(number=number, percept=read(Percept, text)) for number, text in rows
        )

    def forget(self, activity_id: str, percept_ids: Iterable[str]) -> None:
        """Removes what was perceived from an inbox."""
        with self._writing() as db:
            for one in percept_ids:
                db.execute(
                    "DELETE FROM inbox WHERE activity = ? AND percept = ?", (activity_id, one)
                )

    def with_inbox(self) -> list[str]:
        """The activities that have something in their inbox."""
        return [one for (one,) in self._rows("SELECT DISTINCT activity FROM inbox")]

    def highest(self, stream: str) -> int:
        """The highest number of a stream of percepts that was delivered; 0 for none."""
        query = "SELECT coalesce(max(highest), 0) FROM delivered WHERE stream = ?"
        return next(self._rows(query, stream))[0]

    def cursor(self, tool: str) -> str | None:
        """How far the signals of a tool were read and delivered."""
        rows = self._rows("SELECT cursor FROM cursors WHERE tool = ?", tool)
        return next((cursor for (cursor,) in rows), None)

    def advance(self, tool: str, after: str | None, to: str) -> bool:
        """Notes how far a tool was read; False, and nothing, if it is not at `after` any more."""
        with self._writing() as db:
            if self.cursor(tool) != after:
                return False
            db.execute(_CURSOR, (tool, to))
        return True

    def arrivals(self) -> list[str]:
        """Whose inboxes others have put something into since this was asked before.

        Others are workers that share the store.
        """
        if not self._file.shared:
            return []
        seen = self._seen
        found = list(
            self._rows(
                "SELECT activity, max(number) FROM inbox WHERE number > ? GROUP BY activity", seen
            )
        )
        self._seen = max([seen, *(number for _, number in found)])
        return [activity for activity, _ in found]

    # ---- Focus ----

    def focus(self, activity_id: str, tool: str, signals: frozenset[str] | None = None) -> None:
        """Notes that an activity perceives a tool: the named signals of it, or all for None.

        Where it is the first one, signals count from now on: how far the tool was read goes.
        """
        named = None if signals is None else json.dumps(sorted(signals))
        with self._writing() as db:
            if not db.execute("SELECT 1 FROM focus WHERE tool = ?", (tool,)).fetchone():
                db.execute("DELETE FROM cursors WHERE tool = ?", (tool,))
            db.execute(_FOCUS, (activity_id, tool, named))

    def unfocus(self, activity_id: str, tool: str) -> None:
        """Notes that an activity does not perceive a tool any more."""
        with self._writing() as db:
            db.execute("DELETE FROM focus WHERE activity = ? AND tool = ?", (activity_id, tool))

    def focuses(self, only: Set[str] | None = None) -> dict[str, dict[str, frozenset[str] | None]]:
        """For each tool: which activities, `only` these, perceive it, which signals (None: all)."""
        found: dict[str, dict[str, frozenset[str] | None]] = defaultdict(dict)
        for activity, tool, named in self._rows("SELECT activity, tool, signals FROM focus"):
            if only is None or activity in only:
                found[tool][activity] = _names(named)
        return dict(found)

    def perceivers(self, tool: str) -> Mapping[str, frozenset[str] | None]:
        """Which activities of all workers perceive a tool, and which of its signals."""
        rows = self._rows("SELECT activity, signals FROM focus WHERE tool = ?", tool)
        return {activity: _names(named) for activity, named in rows}

    # ---- Pins: which description and manual of a tool was accepted ----

    def pin(self, server: str, tool: str, digest: str) -> None:
        """Notes the digest of what a tool says of itself, as it was accepted."""
        with self._writing() as db:
            db.execute(_PIN, (server, tool, digest))

    def pins(self, server: str) -> Mapping[str, str]:
        """The accepted digest of each tool of a server."""
        return dict(self._rows("SELECT tool, digest FROM pins WHERE server = ?", server))


def read(kind: type[ValueT], text: str) -> ValueT:
    """A value as it is stored; `ActivityStoreError` where it is none of this kind."""
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


def _names(named: str | None) -> frozenset[str] | None:
    return None if named is None else frozenset(json.loads(named))
