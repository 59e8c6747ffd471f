"""What is in a folder after its writer was killed at any point of a write.

`COAG_KILLS=1000 python -m pytest -m long tests/coag/store/test_kills.py` kills as many.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from kits.killing import Killer
from kits.store_writer import Left, call, left_by, mark

from coag.errors import ConfigurationError
from coag.schema import MemoryKind, Record
from coag.store import DEFAULT_RANKING, ChromaStore, HashEmbedder, Search, reembed
from coag.store.lexical import Lexicon, indexed, query_words, same_entry, shelf_of
from coag.store.records import flat_fields

KILLS = int(os.environ.get("COAG_KILLS", "200"))
"""How many kills the long test makes."""
IN_ONE_FOLDER = 25
"""After so many kills a new folder is taken, so that none gets so large that it takes long."""


async def everything(store: ChromaStore) -> dict[str, Record]:
    """All records by id; none is there twice."""
    records = [record async for batch in store.scan() for record in batch]
    there = {record.id: record for record in records}
    assert len(there) == len(records) == sum([await store.count(kind) for kind in MemoryKind])
    return there


def entries_agree(folder: Path, records: dict[str, Record]) -> None:
    """The lexicon knows exactly these records, as they are, and nothing is left to repair."""
    lexicon = Lexicon(folder / "coag-words.sqlite3")
    assert lexicon.pending() == []
    assert lexicon.other_than(list(records)) == []
    entries = lexicon.entries(list(records))
    assert lexicon.count() == len(entries) == len(records)
    for one, record in records.items():
        assert same_entry(indexed(record, flat_fields(record))[0], entries[one])
        found = lexicon.matches(
            query_words(record.text), [shelf_of(record.kind, record.scope)], len(records)
        )
        assert one in [hit.entry.id for hit in found]
    lexicon.close()


async def found_by_meaning(
    store: ChromaStore, there: dict[str, Record], dice: random.Random
) -> None:
    """Some of the records are nearest to their own texts, and both ways of recall agree."""
    current = [record for record in there.values() if record.superseded_by is None]
    for record in dice.sample(current, min(4, len(current))):
        for ranking in (None, DEFAULT_RANKING):
            hits = await store.search(
                Search(text=record.text, kind=record.kind, k=len(there), ranking=ranking)
            )
            found = record in [hit.record for hit in hits]
            assert found, f"{record.id} is there, but not found with ranking={ranking!r}"
            assert all(there[hit.record.id] == hit.record for hit in hits)


async def look_again(folder: Path, left: Left, dice: random.Random) -> Left:
    """Checks the folder, completes what was interrupted, and returns the records."""
    if left.again and left.again[0] == "reembed":
        await either_is_complete_or_refused(folder, left)
        await reembed(folder, HashEmbedder(left.again[1]))
        left.acknowledge()
    store = await ChromaStore.open(folder, HashEmbedder(left.dimension))
    there = await everything(store)
    entries_agree(folder, there)
    for one in left.held.keys() | left.begun.keys() | there.keys():
        found = mark(there[one]) if one in there else None
        before = left.held.get(one)
        assert found in (before, left.begun.get(one, before)), one
    for record in there.values():
        # a revocation that was interrupted may have cleared one side of a pair that it removes
        under_way = {record.id, record.superseded_by} & left.begun.keys()
        if record.superseded_by is not None and not under_way:
            newer = there.get(record.superseded_by)
            assert newer is None or newer.supersedes == record.id
    await found_by_meaning(store, there, dice)
    if left.again:
        await call(store, left.again)
        left.acknowledge()
        there = await everything(store)
        assert {one: mark(record) for one, record in there.items()} == left.held
        entries_agree(folder, there)
    await store.close()
    return left


async def either_is_complete_or_refused(folder: Path, left: Left) -> None:
    """A half re-embedded store opens with all records, or the error names the command."""
    for dimension in (left.dimension, left.again[1]):
        try:
            store = await ChromaStore.open(folder, HashEmbedder(dimension))
        except ConfigurationError as error:
            if "coag memory reembed" not in str(error):
                raise
        else:
            there = await everything(store)
            await store.close()
            assert {one: mark(record) for one, record in there.items()} == left.held


async def kill_many(folder: Path, kills: int, seed: int) -> None:
    left = Left()
    killer = Killer("kits.store_writer", folder, most=14)
    try:
        for number in range(kills):
            numbers = (seed + number, 10_000 * number, left.dimension)
            left = left_by(await asyncio.to_thread(killer.kill_one, *numbers), left)
            left = await look_again(folder, left, random.Random(seed + number))
    finally:
        await asyncio.to_thread(killer.close)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_nothing_acknowledged_is_lost_or_doubled_by_a_kill_and_what_was_begun_completes(
    tmp_path: Path,
) -> None:
    await kill_many(tmp_path, kills=12, seed=1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1000, 1000 + KILLS, IN_ONE_FOLDER))
async def test_nothing_acknowledged_is_lost_at_many_more_points(tmp_path: Path, seed: int) -> None:
    await kill_many(tmp_path, kills=IN_ONE_FOLDER, seed=seed)
