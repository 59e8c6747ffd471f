"""A memory whose recall breaks: a record that is needed does not come, or untrue ones do."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType

from coag.errors import RecordStoreError
from coag.proof import Cause
from coag.schema import MemoryKind, RecalledRecord, Record
from coag.store import RecordStore, Search, WrappedStore
from vacuum_world.world import Cell, cells_of, inside, neighbour

from ._fault import Breaker
from ._stage import Stage, remembered, rule_record, wall_record

Hits = list[RecalledRecord]

NEEDED_LEFT_OUT = "needed record left out"
NOTHING_COMES = "nothing comes"
EPISODES_UNASKED = "episodes not asked"
OUT_OF_REACH = "memory out of reach"
MISSED = (NEEDED_LEFT_OUT, NOTHING_COMES, EPISODES_UNASKED, OUT_OF_REACH)
"""The ways in which recall misses what it should bring."""

CELL_SHIFTED, NEGATED = "cell shifted", "negated"
CHANGED = (CELL_SHIFTED, NEGATED)
"""The ways in which the needed record comes changed."""


def _false_rule(stage: Stage, dice: random.Random) -> tuple[Record, ...]:
    """A cell of the task is said to be forbidden."""
    facts = stage.setup.facts
    return (rule_record(dice.choice([c for c in facts.dirty if c != facts.forbidden])),)


def _false_wall(stage: Stage, dice: random.Random) -> tuple[Record, ...]:
    """A free cell between start and work is said to be blocked."""
    facts, world = stage.setup.facts, stage.setup.world
    near = _around(facts.start, world.grid)
    cells = [cell for cell in near if cell not in (*facts.dirty, facts.wall, world.charger)]
    return (wall_record(facts.start, dice.choice(cells)),) if cells else ()


def _walled_in(stage: Stage, dice: random.Random) -> tuple[Record, ...]:
    """All cells around one cell of the task are said to be blocked."""
    facts, world = stage.setup.facts, stage.setup.world
    targets = [cell for cell in facts.dirty if cell not in (facts.start, facts.forbidden)]
    if not targets:
        return ()
    target = dice.choice(targets)
    return tuple(wall_record(target, cell) for cell in _around(target, world.grid))


UNTRUE: Mapping[str, Callable[[Stage, random.Random], tuple[Record, ...]]] = MappingProxyType(
    {
        "false rule": _false_rule,
        "false wall": _false_wall,
        "walled in": _walled_in,
    }
)
"""The untrue records that come besides the true ones, by variant."""


class BrokenStore(WrappedStore):
    """A store whose searches break; all else goes to the true one.

    Args:
        store: The true one.
        breaker: Says what breaks when.
        stage: Says which records are needed.
    """

    def __init__(self, store: RecordStore, breaker: Breaker, stage: Stage) -> None:
        super().__init__(store)
        self._breaker = breaker
        self._stage = stage

    async def search(self, search: Search) -> list[RecalledRecord]:
        """The most similar records, as far as recall works."""
        hits = await super().search(search)
        if search.text is None:
            return hits
        cycle = self._breaker.now() + 1  # Retrieval is the first phase of the next cycle
        for cause, broken in (
            (Cause.MISSED_RETRIEVAL, self._missing),
            (Cause.WRONG_FACT, self._untrue),
        ):
            if self._breaker.due(cause, cycle):
                told = broken(hits, search)
                if told != hits:
                    self._breaker.strike(cycle)
                return told
        return hits

    def _missing(self, hits: Hits, search: Search) -> Hits:
        variant = self._breaker.variant
        episodes = search.kind is MemoryKind.EPISODIC
        if variant == OUT_OF_REACH and episodes:
            self._breaker.strike(self._breaker.now() + 1)
            raise RecordStoreError("The memory cannot be reached: the connection was refused.")
        if variant == NOTHING_COMES or (variant == EPISODES_UNASKED and episodes):
            return []
        return [hit for hit in hits if hit.record.id not in self._stage.needed]

    def _untrue(self, hits: Hits, search: Search) -> Hits:
        if search.kind is not MemoryKind.EPISODIC:
            return hits
        variant, dice = self._breaker.variant, self._breaker.dice()
        if variant in CHANGED:
            return [self._changed(hit) for hit in hits]
        score = max((hit.score for hit in hits), default=0.5)
        untrue = UNTRUE[variant](self._stage, dice)
        return [*(RecalledRecord(record=one, score=score) for one in untrue), *hits][: search.k]

    def _changed(self, hit: RecalledRecord) -> RecalledRecord:
        """The needed record with another content under its id."""
        if hit.record.id not in self._stage.needed:
            return hit
        facts = self._stage.setup.facts
        true = facts.wall or facts.forbidden or (0, 0)
        if self._breaker.variant == NEGATED:
            x, y = true
            told = remembered(f"Cell ({x}, {y}) was looked at again: nothing is there.")
        else:
            cells = [cell for cell in cells_of(self._stage.setup.world.grid) if cell != true]
            cell = self._breaker.dice().choice(cells)
            told = wall_record(facts.start, cell) if facts.wall else rule_record(cell)
        update = {"text": told.text, "metadata": told.metadata}
        return hit.model_copy(update={"record": hit.record.model_copy(update=update)})


def _around(cell: Cell, grid: Cell) -> list[Cell]:
    near = [neighbour(cell, way) for way in ("north", "east", "south", "west")]
    return [one for one in near if inside(one, grid)]
