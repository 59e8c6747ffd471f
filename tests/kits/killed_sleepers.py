"""Remembers, recalls, sleeps, restores and revokes until it is killed, and says what it does.

    python -m kits.killed_sleepers FOLDER

For each line `SEED NUMBER` that it reads, a child of it works on the folder. It prints lines of
JSON: `{"pid": NUMBER}`, `{"begun": {...}}` before a change, `{"step": true}` within a sleep and
`{"done": true}` once a change is acknowledged; and its parent `{"ended": STATUS}`. A change maps
ids to the texts of the records that it stores, or to null for those that it removes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from kits.killing import fork_for_each_line, repeat, say
from kits.remembered import START
from kits.sleepers import LONG, Calendar
from kits.statements import ANN

from coag.memory import LongTermMemory, ToRemember
from coag.memory.consolidation import sleep
from coag.memory.dynamics import (
    DYNAMICS_FILE,
    Forgetting,
    Gist,
    Graduation,
    MemoryDynamics,
    MemoryDynamicsSettings,
    Reconsolidation,
    RetrievalInducedForgetting,
)
from coag.models import ScriptedModel, ScriptedRequest, StructuredModel
from coag.schema import Fact, MemoryKind, Record, record_id
from coag.store import ChromaStore, HashEmbedder

SETTINGS = MemoryDynamicsSettings.preset("assistant").model_copy(
    update={
        "forgetting": Forgetting(retention=60.0),
        "gist": Gist(age=20.0, words=20),
        "graduation": Graduation(uses=2, age=5.0),
        "reconsolidation": Reconsolidation(),
        "retrieval_induced_forgetting": RetrievalInducedForgetting(),
    }
)
"""Everything happens within weeks."""


def opened(folder: Path, number: int) -> tuple[LongTermMemory, Calendar]:
    """The memory of a folder, at the time of the process of that number."""
    clock = Calendar(START + timedelta(days=20 * number))
    dynamics = MemoryDynamics(SETTINGS, path=folder / DYNAMICS_FILE, owner="alice", clock=clock)
    store = ChromaStore(folder / "long_term", HashEmbedder(16))
    return LongTermMemory(store, scope="alice", clock=clock, dynamics=dynamics), clock


@dataclass(kw_only=True)
class Promised:
    """What was acknowledged: the texts of records, by their ids; and what was begun."""

    held: dict[str, str] = field(default_factory=dict[str, str])
    begun: Mapping[str, str | None] = field(default_factory=dict[str, str | None])

    def hear(self, lines: Iterable[str]) -> None:
        """Takes in what a process said until it was killed."""
        for line in lines:
            try:
                said = json.loads(line)
            except json.JSONDecodeError:
                return  # cut off
            if "begun" in said:
                self.begun = said["begun"]
            elif "done" in said:
                whole = {**self.held, **self.begun}
                self.held = {one: text for one, text in whole.items() if text is not None}
                self.begun = {}


class Worker:
    """One who does this and that, as its seed says."""

    def __init__(self, folder: Path, seed: int, number: int) -> None:
        self._dice = random.Random(seed)
        self._count = 1_000 * number
        self._memory, self._clock = opened(folder, number)
        assert self._memory.dynamics is not None
        self._dynamics = self._memory.dynamics
        self._whole = self._dynamics.whole(self._memory.store)
        self._known: dict[str, Record] = {}

    async def work(self) -> None:
        """One thing of some sort; some days pass."""
        if not self._known:
            await self._look()
        sorts = {
            self.event: 6,
            self.fact: 3,
            self.conclusion: 2,
            self.again: 2,
            self.recall: 5,
            self.sleep: 5,
            self.restore: 1,
            self.revoke: 1,
        }
        chosen = self._dice.choices(list(sorts), list(sorts.values()))[0]
        await (chosen if len(self._known) > 5 else self.event)()
        self._clock.passes(self._dice.random() * 4)

    async def _look(self) -> None:
        self._known = {one.id: one async for some in self._whole.scan() for one in some}

    def _next(self) -> int:
        self._count += 1
        return self._count

    async def _remember(self, kind: MemoryKind, text: str, **more: Any) -> None:
        say({"begun": {record_id(kind, "alice", text): text}})
        done = await self._memory.remember(kind, text, provenance=ANN, **more)
        assert done.record.text == text
        say({"done": True})
        self._known[done.record.id] = done.record

    async def event(self) -> None:
        count = self._dice.choice([1, 1, 4])
        wishes = [
            ToRemember(
                kind=MemoryKind.EPISODIC,
                text=f"event number {self._next()} {self._dice.choice(['', LONG])}".strip(),
                provenance=ANN,
            )
            for _ in range(count)
        ]
        say({"begun": {record_id(one.kind, "alice", one.text): one.text for one in wishes}})
        async for batch in self._memory.remember_all(wishes):
            self._known |= {one.record.id: one.record for one in batch}
        say({"done": True})

    async def fact(self) -> None:
        thing, number = self._dice.choice(["door", "lamp"]), self._next()
        fact = Fact(subject=thing, attribute="state", value=f"v{number}")
        await self._remember(MemoryKind.SEMANTIC, f"The {thing} is v{number}.", fact=fact)

    async def conclusion(self) -> None:
        source = self._dice.choice(list(self._known))
        text = f"conclusion number {self._next()}"
        await self._remember(MemoryKind.EPISODIC, text, derived_from=[source])

    async def again(self) -> None:
        """A text that is known, perhaps one that has faded."""
        old = self._dice.choice(list(self._known.values()))
        if old.fact is None and old.kind is MemoryKind.EPISODIC:
            await self._remember(MemoryKind.EPISODIC, old.text)

    async def recall(self) -> None:
        await self._memory.recall(self._dice.choice(list(self._known.values())).text, k=3)

    async def sleep(self) -> None:
        say({"step": True})
        await sleep(
            self._memory,
            model=StructuredModel(ScriptedModel(self._gist)) if self._dice.random() < 0.5 else None,
            most_records=self._dice.choice([None, None, 7]),
            allow_clock_jump=True,  # the process before may have been some weeks ahead
            on_progress=lambda _step, _examined: say({"step": True}),
        )
        await self._look()

    def _gist(self, request: ScriptedRequest) -> str:
        say({"step": True})
        gists = ["Ann promised to bring the red ladder back by 5 May.", "", "Nonsense entirely."]
        return json.dumps({"gist": self._dice.choice(gists)})

    async def restore(self) -> None:
        faded = self._dynamics.archive.entries(most=5)
        await self._whole.bring_back([one.record for one in faded[:2]])

    async def revoke(self) -> None:
        root = self._dice.choice(list(self._known))
        gone, new = set[str](), {root}
        while new:
            gone |= new
            known = self._known.values()
            new = {one.id for one in known if new & {*one.lineage.derived_from}} - gone
        if len(gone) < 10:
            say({"begun": dict.fromkeys(gone)})
            await self._memory.revoke(root, "It was wrong.")
            say({"done": True})
            self._known = {n: one for n, one in self._known.items() if n not in gone}


async def _work(numbers: list[int]) -> None:
    seed, number = numbers
    await repeat(Worker(Path(sys.argv[1]), seed, number).work)


if __name__ == "__main__":
    fork_for_each_line(_work)
