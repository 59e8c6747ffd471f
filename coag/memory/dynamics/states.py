"""What the dynamics of one owner know of each record, and the table that keeps it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple, cast, get_type_hints

from .file import DynamicsFile

DAY = 86_400.0
"""Seconds."""
_LOOKED_AT = 1_000
"""States among which a sample looks for old ones."""


class RecordState(NamedTuple):
    """What the dynamics of one owner know of one record. Times are POSIX seconds.

    A tuple, as SQLite reads and writes it: every recall makes some dozens.
    """

    record: str
    """The record's id."""
    encoded_at: float
    strength: float
    """Encoding strength, 0..1: what is left of it now is `forgetting.strength_now`."""
    stability: float
    """Days in which the strength falls to 1/e."""
    used_at: float
    """When it was last recalled and kept, or encoded."""
    uses: int = 0
    importance: float = 0.5
    valence: float = 0.0
    """-1..1."""
    arousal: float = 0.0
    """0..1."""
    dominance: float = 0.0
    """-1..1."""
    flashbulb: bool = False
    """Stored once, at encoding: it does not drift, is not suppressed, and does not fade."""
    exempt: bool = False
    """It never fades."""
    perspective: bool = False
    """Encoded from a witness's point of view: it drifts at half the rate."""
    drift: float = 0.0
    """All that reconsolidation moved it by, over its three axes."""
    heard_at: float = 0.0
    """When its source last said it or was checked: confidence falls from here."""
    confidence: float = 1.0
    """How sure it is where it comes from, as of `heard_at`; see `aging.confidence_now`."""
    schema: str = ""
    """Id of the cluster that it joined in a sleep; empty for none yet."""
    gist: str | None = None
    """What recall shows in place of the text."""
    gist_at: float | None = None
    faded_at: float | None = None
    """When sleep took it out of recall."""

    @property
    def intensity(self) -> float:
        """How strong its feeling is, 0..1."""
        return abs(self.valence) * self.arousal


def _literal(value: object) -> str:
    """A default as SQLite reads it."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(float(cast("float", value)))


_NAMES = RecordState._fields
_TYPES = get_type_hints(RecordState)
_FLAGS = tuple(at for at, name in enumerate(_NAMES) if _TYPES[name] is bool)
"""Places of the fields that SQLite keeps as 0 or 1."""
_KINDS = {float: "REAL", float | None: "REAL"}
"""A column of this kind keeps whole numbers, as most are, in a byte."""
_COLUMNS = ", ".join(f"{name} {_KINDS.get(_TYPES[name], '')}".strip() for name in _NAMES)
_LATER = {
    name: f"{_KINDS.get(_TYPES[name], '')} DEFAULT {_literal(default)}"
    for name, default in RecordState._field_defaults.items()
}
"""Columns that the table of an older file may lack; its rows get the default of the field."""
_STATES = f"""
CREATE TABLE IF NOT EXISTS states (
  owner TEXT NOT NULL, {_COLUMNS}, PRIMARY KEY (record, owner)
)
"""
"""Rows lie in the order of writing: ids are random, and a batch would touch a page for each row."""
_PUT = (
    f"INSERT INTO states (owner, {', '.join(_NAMES)}) "
    f"VALUES ({','.join('?' * (len(_NAMES) + 1))}) ON CONFLICT DO UPDATE SET "
    + ", ".join(f"{one} = excluded.{one}" for one in _NAMES if one != "record")
)
"""A row stays in its place: to replace it would write two more pages, at its end and of the key."""
_USED = (  # what recalls change
    "strength",
    "stability",
    "used_at",
    "uses",
    "valence",
    "arousal",
    "dominance",
    "drift",
)
_USE = (
    f"UPDATE states SET {', '.join(f'{one} = ?' for one in _USED)} WHERE record = ? AND owner = ?"
)
_used_values = attrgetter(*_USED, "record")


def seconds(at: datetime) -> float:
    """A moment as it is kept here."""
    return at.timestamp()


def moment_of(at: float) -> datetime:
    """A kept time as a moment; one that no calendar has is the nearest that there is."""
    least, most = (one.replace(tzinfo=UTC).timestamp() for one in (datetime.min, datetime.max))
    return datetime.fromtimestamp(min(max(at, least + DAY), most - DAY), UTC)


def days_since(then: float, now: float) -> float:
    """Days between two times; 0 where the clock jumped back."""
    return max(0.0, now - then) / DAY


class RecordStates:
    """The states of one owner."""

    def __init__(self, file: DynamicsFile, owner: str) -> None:
        self.file = file
        self.owner = owner
        file.create(_STATES, records=("states.record",))
        there = file.add_columns("states", _LATER)
        defaults = RecordState._field_defaults
        values = (one if one in there else _literal(defaults[one]) for one in _NAMES)
        self._select = f"SELECT {', '.join(values)} FROM states WHERE owner"

    def get(self, ids: Sequence[str]) -> dict[str, RecordState]:
        """The states of these records, by their ids; those without one are left out."""
        rows = self.file.rows_of(f"{self._select} = ? AND record IN ({{}})", ids, self.owner)
        return {row[0]: _state_of(row) for row in rows}

    def put(self, states: Iterable[RecordState]) -> None:
        """Stores states, in place of what was known of their records."""
        self.file.write(_PUT, ((self.owner, *state) for state in states))

    def use(self, states: Iterable[RecordState]) -> None:
        """Stores what recalls change of states that are there; takes half as long as `put`."""
        self.file.write(_USE, ((*_used_values(state), self.owner) for state in states))

    def drop(self, ids: Iterable[str]) -> None:
        """Forgets states."""
        rows = [(self.owner, one) for one in ids]
        self.file.write("DELETE FROM states WHERE owner = ? AND record = ?", rows)

    def distrust(self, ids: Iterable[str]) -> None:
        """Lets records fade that are untrusted now, of every owner: see `encode`."""
        update = "UPDATE states SET flashbulb = 0, exempt = 0 WHERE record = ?"
        self.file.write(update, [(one,) for one in ids])

    def scan(self, *, after: str = "", batch: int = 500) -> Iterator[list[RecordState]]:
        """All states in the order of their records' ids, some at a time, behind one id."""
        query = f"{self._select} = ? AND record > ? ORDER BY record LIMIT ?"
        while rows := self.file.rows(query, self.owner, after, batch):
            yield [_state_of(row) for row in rows]
            after = rows[-1][0]

    def of_others(self, ids: Sequence[str]) -> list[RecordState]:
        """What other owners know of these records."""
        query = f"{self._select} != ? AND record IN ({{}})"
        return [*map(_state_of, self.file.rows_of(query, ids, self.owner))]

    def times(self, since: float | None) -> list[float]:
        """When records were last used, each time once, in order; from a time on, if given."""
        query = """SELECT DISTINCT used_at FROM states
            WHERE owner = ? AND (? IS NULL OR used_at >= ?) ORDER BY used_at"""
        return [row["used_at"] for row in self.file.rows(query, self.owner, since, since)]

    def set_back(self, now: float) -> None:
        """Takes what is said to be after a time as of that time: an earlier clock was ahead."""
        columns = ("encoded_at", "used_at", "heard_at")
        values = ", ".join(f"{one} = MIN({one}, :now)" for one in columns)
        later = " OR ".join(f"{one} > :now" for one in columns)
        with self.file.transaction() as db:
            db.execute(
                f"UPDATE states SET {values} WHERE owner = :owner AND ({later})",
                {"now": now, "owner": self.owner},
            )

    def find(self, condition: str, *values: object) -> list[RecordState]:
        """Traces that meet a condition in SQL, e.g. `valence < ? ORDER BY encoded_at LIMIT 1`."""
        rows = self.file.rows(f"{self._select} = ? AND {condition}", self.owner, *values)
        return [*map(_state_of, rows)]

    def sample(self, beginning: str, since: float, most: int) -> list[RecordState]:
        """Those that have not faded and were encoded until a time, behind an id, then before it.

        On either side it looks at a bounded number only, so a young memory may give none.
        """
        found: list[RecordState] = []
        for side in (">=", "<"):
            some = f"SELECT record FROM states WHERE record {side} ? ORDER BY record LIMIT ?"
            old = f"record IN ({some}) AND encoded_at <= ? AND faded_at IS NULL"
            limits = (beginning, _LOOKED_AT, since, most - len(found))
            found += self.find(f"{old} ORDER BY record LIMIT ?", *limits)
        return found

    def count(self) -> int:
        """How many there are."""
        query = "SELECT COUNT(*) AS n FROM states WHERE owner = ?"
        return int(self.file.rows(query, self.owner)[0]["n"])


def _state_of(row: sqlite3.Row) -> RecordState:
    values = [*row]
    for at in _FLAGS:
        values[at] = bool(values[at])
    return RecordState._make(values)
