"""Prospective memory: what is to be remembered at a time, at an event, or in a context.

An *intention* fires when its trigger is met (Einstein and McDaniel 1990, "Normal aging and
prospective memory"). A firing is a reminder: a percept that is stored in the same transaction as
the note that its intention has fired, and that is given until somebody perceived it. So a kill at
any moment loses no reminder, and none is made twice.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from coag.errors import ConfigurationError
from coag.memory.dynamics import MemoryDynamics, moment_of, seconds
from coag.memory.facts import at_least
from coag.schema import Moment, Percept, PerceptKind, Trust, Value, content_id, folded, one_line
from coag.store import Embedder, RecordStore, embedder_within, text_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_INTENTIONS = 1_000
"""That wait at the same time."""
REMINDERS = "intentions"
"""The source of the percepts that remind."""
SIMILAR_ENOUGH = 0.3
"""Cosine from which on a text is about the cue of a context. Of eight cues with wordllama and
MiniLM, texts that were about them had 0.35 to 0.76, others at most 0.26."""
_LONGEST = 1_000
"""Characters of an intention, a cue or the name of an event."""
_CONTEXT = 2_000
"""Characters of a text that are compared with cues."""
OCCURRENCES = 100
"""Occurrences of which an intention knows that they do not fire it again; the last ones."""


class AtTime(Value):
    """Fires at a time, or as soon as possible after it."""

    kind: Literal["time"] = "time"
    at: Moment
    every: float | None = Field(default=None, ge=1.0, allow_inf_nan=False)
    """Seconds from one time to the next; None for once. Of times that were missed, e.g. while
    nothing ran, one is made up for; the next is where the rhythm has it."""


class AtEvent(Value):
    """Fires when something of this name happens; case and blanks do not matter."""

    kind: Literal["event"] = "event"
    event: str = Field(min_length=1, max_length=_LONGEST)
    """The source of a percept (`anna`, `read_mail`), its kind and source (`message:anna`), the
    source and name of a signal (`door/opened`), or what `Intentions.happened` is given."""
    recurring: bool = False
    """Whether it fires each time."""


class InContext(Value):
    """Fires when a text is about something."""

    kind: Literal["context"] = "context"
    cue: str = Field(min_length=1, max_length=_LONGEST)
    """What it is about."""
    similarity: float = Field(default=SIMILAR_ENOUGH, ge=0.0, le=1.0)
    """Cosine from which on a text is about it."""
    rest: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    """Seconds after which it may fire again; None for once."""


Trigger = Annotated[AtTime | AtEvent | InContext, Field(discriminator="kind")]
"""When an intention fires."""


class Intention(Value):
    """Something to be remembered when its trigger is met."""

    id: str
    text: str = Field(min_length=1, max_length=_LONGEST)
    trigger: Trigger
    created_at: Moment
    importance: float = Field(default=0.5, ge=0.0, le=1.0)
    """Of several that fire together the most important comes first."""
    record: str | None = None
    """Id of the record it follows from, with which it goes."""
    trust: Trust = Trust.USER
    """How far its text is trusted when it comes back."""


_TABLES = """
CREATE TABLE IF NOT EXISTS intentions (
  owner TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, wish TEXT NOT NULL, record TEXT,
  due REAL, event TEXT, context INTEGER NOT NULL, fired INTEGER NOT NULL DEFAULT 0,
  last_at REAL, last_key TEXT, waits INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intentions_due ON intentions (owner, due) WHERE waits;
CREATE INDEX IF NOT EXISTS intentions_record ON intentions (record);
CREATE TABLE IF NOT EXISTS reminders (
  owner TEXT NOT NULL, id TEXT NOT NULL, intention TEXT NOT NULL, body TEXT NOT NULL,
  importance REAL NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, record TEXT,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID
"""


class Intentions:
    """The intentions of one owner, in the file of its memory's dynamics.

    `check`, `happened` and `mentioned` fire what is due; `unperceived` gives the reminders, and
    `perceived` ends them. Several processes may do so over one file.

    Args:
        dynamics: Names the owner, the file and the clock.
        store: Where the records are; it gives the embedder for contexts, and says whether the
            record of an intention is still there. None for intentions by time and event only.
        embedder: In place of the store's.
    """

    def __init__(
        self,
        dynamics: MemoryDynamics,
        *,
        store: RecordStore | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.owner = dynamics.owner
        self.clock = dynamics.clock
        self._file = dynamics.file
        self._archive = dynamics.archive
        self._store = store
        self._embedder = embedder or (None if store is None else embedder_within(store))
        self._claims: dict[str, str] = {}
        """Who was given a reminder first, in this process, by its id."""
        self._cues: dict[str, NDArray[np.float32]] = {}
        """The vectors of the cues that wait."""
        self._file.create(
            _TABLES,
            records=("intentions.record", "reminders.record"),
            scopes=("intentions.owner", "reminders.owner"),
        )

    # ---- What is intended ----

    def add(
        self,
        text: str,
        trigger: AtTime | AtEvent | InContext,
        *,
        importance: float = 0.5,
        record: str | None = None,
        trust: Trust = Trust.USER,
        after: Sequence[str] = (),
    ) -> Intention:
        """Remembers to do something; one that waits with this text and trigger is given back.

        It is not where that is trusted less, or goes with a record that this does not follow from.

        A time that has passed fires at the next check. `after` has the keys of occurrences that
        are over: they do not fire it if they are given again.

        Raises:
            ValueError: The text or the importance is out of bounds, or too many intentions wait.
            ConfigurationError: A context, and there is no embedder.
        """
        if isinstance(trigger, InContext) and self._embedder is None:
            raise ConfigurationError(
                "An intention with a context needs an embedder: give Intentions the store of the "
                "memory (store=memory.store), or an embedder."
            )
        text, now = text.strip(), self.clock.now()
        wish = content_id(text, trigger.model_dump_json())
        with self._file.transaction():
            for one in map(_intention, self._rows("waits AND wish = ?", wish)):
                if one.record in (None, record) and at_least(one.trust, trust):
                    return one
            count = "SELECT COUNT(*) FROM intentions WHERE owner = ? AND waits"
            if self._file.rows(count, self.owner)[0][0] >= MOST_INTENTIONS:
                raise ValueError(
                    f"{MOST_INTENTIONS:,} intentions wait already, which is the most. "
                    "Cancel some (`cancel`)."
                )
            made = self._rows("wish = ?", wish)
            one = Intention(
                id=content_id(self.owner, wish, str(len(made)))[:16],
                text=text,
                trigger=trigger,
                created_at=now,
                importance=importance,
                record=record,
                trust=trust,
            )
            known = (_written(after), *_columns(trigger))
            self._file.write(
                "INSERT INTO intentions (owner, id, body, wish, record, last_key, due, event, "
                "context) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(self.owner, one.id, one.model_dump_json(), wish, record, *known)],
            )
        return one

    def cancel(self, name: str) -> bool:
        """Gives an intention up, with its reminders that nobody perceived; False if none waits."""
        with self._file.transaction() as db:
            there = bool(self._rows("waits AND id = ?", name))
            self._set(name, "waits", 0)
            gone = "DELETE FROM reminders WHERE owner = ? AND intention = ?"
            return db.execute(gone, (self.owner, name)).rowcount > 0 or there

    def pending(self) -> tuple[Intention, ...]:
        """The intentions that wait for their trigger, oldest first."""
        found = [_intention(row) for row in self._rows("waits")]
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))

    def next_at(self) -> datetime | None:
        """When the next one is due by time; None if none is."""
        due = [row["due"] for row in self._rows("waits AND due IS NOT NULL")]
        return moment_of(min(due)) if due else None

    # ---- Firing ----

    def check(self) -> int:
        """Fires what is due by the clock, and says how many did.

        One that recurs is at most two periods away: where the clock was set back by more than
        one, its rhythm continues from there.
        """
        now = seconds(self.clock.now())
        fired = 0
        with self._file.transaction():
            for row in self._rows("waits AND due IS NOT NULL AND (due <= ? OR fired > 0)", now):
                trigger = _intention(row).trigger
                assert isinstance(trigger, AtTime)
                due, following, missed = _rhythm(row["due"], trigger, now)
                if due <= now:
                    self._fire(row, now, due=due, missed=missed, again=following is not None)
                    fired += 1
                if following is not None:
                    self._set(row["id"], "due", following)
        return fired

    def happened(self, *events: str, key: str = "") -> int:
        """Fires what waits for one of these events, and says how many did.

        Args:
            events: Names of what has happened, now.
            key: Names the occurrence: the same one does not fire an intention again.
        """
        names = sorted({folded(one) for one in events} - {""})
        if not names:
            return 0
        marks, now = ",".join("?" * len(names)), seconds(self.clock.now())
        with self._file.transaction():
            found = self._rows(f"waits AND event IN ({marks})", *names)
            rows = [row for row in found if key not in _occurrences(row)]
            for row in rows:
                trigger = _intention(row).trigger
                assert isinstance(trigger, AtEvent)
                self._fire(row, now, key=key, again=trigger.recurring)
        return len(rows)

    async def mentioned(self, text: str, *, key: str = "") -> int:
        """Fires what waits for a context that this text is about; `key` is as in `happened`."""
        rows = self._rows("waits AND context")
        if not rows or not text.strip() or self._embedder is None:
            return 0
        cues = [_intention(row).trigger for row in rows]
        texts = [cue.cue for cue in cues if isinstance(cue, InContext)]
        new = [cue for cue in texts if cue not in self._cues]
        given = [text[:_CONTEXT], *new]
        vectors = await asyncio.to_thread(text_vectors, self._embedder, given)
        known = {**self._cues, **dict(zip(new, vectors[1:], strict=True))}
        self._cues = {cue: known[cue] for cue in texts}
        similar = [float(self._cues[cue] @ vectors[0]) for cue in texts]
        near = {row["id"]: score for row, score in zip(rows, similar, strict=True)}
        now, fired = seconds(self.clock.now()), 0
        with self._file.transaction():
            for row in self._rows("waits AND context"):  # others may have fired meanwhile
                cue = _intention(row).trigger
                assert isinstance(cue, InContext)
                last = row["last_at"]  # of a clock that was set back no time has passed since
                rested = last is None or now - min(last, now) >= (cue.rest or 0.0)
                about = near.get(row["id"], -1.0) >= cue.similarity
                if about and rested and key not in _occurrences(row):
                    self._fire(row, now, key=key, again=cue.rest is not None)
                    fired += 1
                elif last is not None and last > now:
                    self._set(row["id"], "last_at", now)
        return fired

    def _fire(
        self,
        row: sqlite3.Row,
        now: float,
        *,
        again: bool,
        key: str = "",
        due: float | None = None,
        missed: int = 0,
    ) -> None:
        one = _intention(row)
        percept = _reminder(one, row["fired"] + 1, now, due, missed)
        known = _written((*_occurrences(row), key)) if key else row["last_key"]
        self._file.write(
            "UPDATE intentions SET fired = fired + 1, last_at = ?, last_key = ?, waits = ? "
            "WHERE owner = ? AND id = ?",
            [(now, known, again, self.owner, one.id)],
        )
        about = (one.importance, now, one.trigger.kind, one.record)
        self._file.write(
            "INSERT OR IGNORE INTO reminders VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(self.owner, percept.id, one.id, percept.model_dump_json(), *about)],
        )

    # ---- Reminding ----

    async def unperceived(
        self, taker: str = "", *, kinds: Collection[str] = ("time", "event", "context")
    ) -> list[Percept]:
        """The reminders that nobody has perceived, the most important first.

        Those whose record is neither in the store nor in the archive any more are dropped.

        Args:
            taker: Who asks; what another taker of this process was given is left out.
            kinds: The kinds of triggers.
        """
        rows = self._file.rows("SELECT * FROM reminders WHERE owner = ?", self.owner)
        named = {row["record"] for row in rows if row["record"] is not None}
        if gone := await self._gone(sorted(named)):
            pairs = [(self.owner, one) for one in sorted(gone)]
            with self._file.transaction():
                for table in ("intentions", "reminders"):
                    self._file.write(f"DELETE FROM {table} WHERE owner = ? AND record = ?", pairs)
        mine = [
            row
            for row in rows
            if row["kind"] in kinds
            and row["record"] not in gone
            and self._claims.setdefault(row["id"], taker) == taker
        ]
        mine.sort(key=lambda row: (-row["importance"], row["at"], row["id"]))
        return [Percept.model_validate_json(row["body"]) for row in mine]

    def perceived(self, percepts: Iterable[str]) -> None:
        """Ends the reminders with these ids: they were perceived, and that is on disk."""
        ids = list(percepts)
        pairs = [(self.owner, one) for one in ids]
        self._file.write("DELETE FROM reminders WHERE owner = ? AND id = ?", pairs)
        for one in ids:
            self._claims.pop(one, None)

    def release(self, taker: str) -> None:
        """Lets others take what this taker was given and has not perceived."""
        self._claims = {one: who for one, who in self._claims.items() if who != taker}

    async def _gone(self, records: Sequence[str]) -> set[str]:
        if not records or self._store is None:
            return set()
        there = {record.id for record in await self._store.get(records)}
        return set(records) - there - self._archive.has(records)

    # ---- Rows ----

    def _rows(self, condition: str, *values: object) -> list[sqlite3.Row]:
        query = f"SELECT * FROM intentions WHERE owner = ? AND {condition} ORDER BY id"
        return self._file.rows(query, self.owner, *values)

    def _set(self, name: str, column: str, value: float) -> None:
        update = f"UPDATE intentions SET {column} = ? WHERE owner = ? AND id = ?"
        self._file.write(update, [(value, self.owner, name)])


def _intention(row: sqlite3.Row) -> Intention:
    return Intention.model_validate_json(row["body"])


def _occurrences(row: sqlite3.Row) -> list[str]:
    """The keys of the last occurrences; files of older versions have one, not in a list."""
    known: str | None = row["last_key"]
    if not known:
        return []
    return json.loads(known) if known.startswith('["') else [known]


def _written(keys: Sequence[str]) -> str | None:
    return json.dumps(keys[-OCCURRENCES:]) if keys else None


def _columns(trigger: AtTime | AtEvent | InContext) -> tuple[float | None, str | None, bool]:
    due = seconds(trigger.at) if isinstance(trigger, AtTime) else None
    event = folded(trigger.event) if isinstance(trigger, AtEvent) else None
    return due, event, isinstance(trigger, InContext)


def _rhythm(due: float, trigger: AtTime, now: float) -> tuple[float, float | None, int]:
    """When it is due, when the time after that, and how many times were missed by now."""
    every, start = trigger.every, seconds(trigger.at)
    if every is None:
        return due, None, 0
    if due - now > 2 * every:  # the clock was set back by more than a period: the next from now
        due = max(start, start + ((now - start) // every + 1) * every)
    if now < due:
        return due, due, 0
    missed = int((now - due) // every)
    return due, due + (missed + 1) * every, missed


def _reminder(one: Intention, number: int, now: float, due: float | None, missed: int) -> Percept:
    """What reminds; its id follows from the intention and the number of the firing."""
    when = "" if due is None else f", due {datetime.fromtimestamp(due, UTC):%Y-%m-%d %H:%M:%S} UTC"
    late = f", {missed} more missed" if missed else ""
    return Percept(
        id=f"{one.id}/{number}",
        at=datetime.fromtimestamp(now, UTC),
        kind=PerceptKind.REMINDER,
        source=REMINDERS,
        trust=one.trust,
        content=f"To be remembered now (noted {one.created_at:%Y-%m-%d}{when}{late}): "
        f"{one_line(one.text, _LONGEST)}",
        data={
            "intention": one.id,
            "text": one.text,
            "trigger": one.trigger.model_dump(mode="json"),
            "missed": missed,
        },
    )
