"""Writes into a store until it is killed, and prints each write before and after it.

    python -m kits.store_writer FOLDER

For each line `SEED FIRST DIMENSION` that it reads, a child of it writes, with the embedder of that
dimension at first. It prints lines of JSON: `{"pid": NUMBER}` first, `{"begun": CHANGE, "again":
CALL}` before a write, `{"step": true}` within a long one and `{"done": true}` once it is
acknowledged; and its parent `{"ended": STATUS}`. The parent has imported all that takes long, so
that many can be killed within a short time.

A change maps ids to the mark of the record that is stored (see `mark`), or to null for one that is
removed. `left_by` gives what has to be there, and what may be there instead.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kits.killing import fork_for_each_line, repeat, say
from kits.remembered import remembered

from coag.memory import LongTermMemory
from coag.schema import MemoryKind, Provenance, Record, Trust, record_id
from coag.store import ChromaStore, HashEmbedder, reembed

Change = Mapping[str, str | None]
SIZES = (16, 24)
"""Dimensions of the embedders between which is changed."""


def mark(record: Record) -> str:
    """What of a record changes when it is written over or merged."""
    return f"{record.type} of {1 + len(record.lineage.also_from)}"


@dataclass(kw_only=True)
class Left:
    """What a process left when it was killed."""

    held: dict[str, str] = field(default_factory=dict[str, str])
    """Marks of the records that were acknowledged, by id."""
    begun: Change = field(default_factory=dict[str, str | None])
    """The change that was begun and not acknowledged."""
    again: Sequence[Any] = ()
    """The call that made it."""
    dimension: int = SIZES[0]
    """Of the embedder that the store was last known to have."""

    def hear(self, line: str) -> bool:
        """Takes in a line; False if it was cut off, as that of a write that was not begun."""
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            return False
        if "begun" in said:
            self.begun, self.again = said["begun"], said["again"]
        elif "done" in said:
            self.acknowledge()
        return True

    def acknowledge(self) -> None:
        """The change that was begun has been made."""
        held = {**self.held, **self.begun}
        self.held = {one: kept for one, kept in held.items() if kept is not None}
        if self.again and self.again[0] == "reembed":
            self.dimension = self.again[1]
        self.begun, self.again = {}, ()


def left_by(lines: Iterable[str], before: Left) -> Left:
    """What a process left that said these lines and found that before."""
    left = Left(held=dict(before.held), dimension=before.dimension)
    for line in lines:
        if not left.hear(line):
            break
    return left


async def call(store: ChromaStore, again: Sequence[Any]) -> None:
    """Makes a change, for the first time or again."""
    memory = LongTermMemory(store, scope="alice")
    match again:
        case ["add", records]:
            await store.add([Record.model_validate(one) for one in records])
        case ["supersede", old, new]:
            await store.supersede(old, Record.model_validate(new))
        case ["update", records]:
            await store.update([Record.model_validate(one) for one in records])
        case ["delete", ids]:
            await store.delete(ids)
        case ["forget", scope]:
            await store.forget(scope)
        case ["remember", text, run, derived_from]:
            await memory.remember(
                MemoryKind.EPISODIC, text, provenance=origin_in(run), derived_from=derived_from
            )
        case ["revoke", name]:
            await memory.revoke(name, "It was wrong.")
        case _:
            raise ValueError(again)


def origin_in(run: str) -> Provenance:
    """The origin of what is remembered in a run."""
    return Provenance(
        run=run, activity="main", cycle=1, source="alice", source_kind="agent", trust=Trust.USER
    )


class Writer:
    """One who writes at random, as its seed says.

    Args:
        folder: Where.
        seed: Of the dice.
        first: Number of the first text, so that processes after each other say new things.
        dimension: Of the embedder that the store has.
    """

    def __init__(self, folder: Path, seed: int, first: int, dimension: int) -> None:
        self._folder = folder
        self._dice = random.Random(seed)
        self._number = first
        self._dimension = dimension
        self._store: ChromaStore | None = None
        self._held: dict[str, Record] = {}
        self._concluded: dict[str, set[str]] = {}
        """Ids of the records that were concluded from one, by its id."""

    async def write(self) -> None:
        """One write of some sort."""
        if self._store is None:
            self._store = await ChromaStore.open(self._folder, HashEmbedder(self._dimension))
        sorts = {
            self.add: 6,
            self.supersede: 3,
            self.update: 3,
            self.delete: 2,
            self.forget: 0.5,
            self.merge: 2,
            self.conclude: 3,
            self.revoke: 2,
            self.reembed: 1,
        }
        chosen = self._dice.choices(list(sorts), list(sorts.values()))[0]
        await (chosen if len(self._held) > 3 else self.add)()

    def _new(self) -> Record:
        self._number += 1
        kind = self._dice.choice(list(MemoryKind))
        scope = self._dice.choice(["alice", "bob"])
        return remembered(f"event number {self._number}", kind=kind, scope=scope, run="r")

    async def _do(self, change: Change, *again: Any) -> None:
        say({"begun": change, "again": again})
        assert self._store is not None
        await call(self._store, again)
        ids = list(self._held.keys() | change.keys())
        self._held = {record.id: record for record in await self._store.get(ids)}
        say({"done": True})

    async def add(self) -> None:
        records = [self._new() for _ in range(self._dice.randint(1, 5))]
        await self._do({one.id: mark(one) for one in records}, "add", as_json(records))

    async def supersede(self) -> None:
        old = self._dice.choice([r for r in self._held.values() if r.superseded_by is None])
        new = remembered(f"{old.text}, again", kind=old.kind, scope=old.scope)
        change = {old.id: mark(old), new.id: mark(new)}
        await self._do(change, "supersede", old.id, new.model_dump(mode="json"))

    async def update(self) -> None:
        some = self._dice.sample(list(self._held.values()), 2)
        self._number += 1
        changed = [one.model_copy(update={"type": f"type {self._number}"}) for one in some]
        await self._do({one.id: mark(one) for one in changed}, "update", as_json(changed))

    async def delete(self) -> None:
        ids = self._dice.sample(list(self._held), 2)
        await self._do(dict.fromkeys(ids), "delete", ids)

    async def forget(self) -> None:
        assert self._store is not None
        records = [one async for batch in self._store.scan(scopes=["bob"]) for one in batch]
        await self._do(dict.fromkeys(record.id for record in records), "forget", "bob")

    async def conclude(self) -> None:
        """Something new, derived from a record."""
        some = [one for one, record in self._held.items() if record.scope == "alice"]
        if not some:
            return await self.add()
        self._number += 1
        old = self._dice.choice(some)
        text = f"conclusion number {self._number}"
        new = record_id(MemoryKind.EPISODIC, "alice", text)
        self._concluded.setdefault(old, set()).add(new)
        await self._do({new: "note of 1"}, "remember", text, "r", [old])

    async def merge(self) -> None:
        """The same text from another run: a further origin of its record."""
        some = [
            one
            for one in self._held.values()
            if (one.kind, one.scope, one.type) == (MemoryKind.EPISODIC, "alice", "note")
            and one.superseded_by is None
            and one.event is None
        ]
        if not some:
            return await self.add()
        self._number += 1
        old = self._dice.choice(some)
        merged = f"note of {2 + len(old.lineage.also_from)}"
        await self._do({old.id: merged}, "remember", old.text, f"run {self._number}", [])

    async def revoke(self) -> None:
        """A record is taken back with all that was concluded from it."""
        some = [one for one, record in self._held.items() if record.scope == "alice"]
        if not some:
            return await self.add()
        root = self._dice.choice(some)
        gone, new = set[str](), {root}
        while new:
            gone |= new
            new = {child for one in new for child in self._concluded.get(one, ())} - gone
        await self._do(dict.fromkeys(one for one in gone if one in self._held), "revoke", root)

    async def reembed(self) -> None:
        """All records get vectors of another embedder."""
        assert self._store is not None
        await self._store.close()
        self._store = None
        (wanted,) = (size for size in SIZES if size != self._dimension)
        say({"begun": {}, "again": ["reembed", wanted]})
        await reembed(
            self._folder, HashEmbedder(wanted), batch=10, progress=lambda _: say({"step": True})
        )
        self._dimension = wanted
        say({"done": True})


def as_json(records: Iterable[Record]) -> list[Any]:
    return [record.model_dump(mode="json") for record in records]


async def _write(numbers: list[int]) -> None:
    seed, first, dimension = numbers
    await repeat(Writer(Path(sys.argv[1]), seed, first, dimension).write)


if __name__ == "__main__":
    fork_for_each_line(_write)
