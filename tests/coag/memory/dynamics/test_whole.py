"""What has faded is still found by its id, and taken back with all the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from kits.remembered import remembered
from kits.statements import ANN, SEMANTIC, door, memory_over, tell

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory
from coag.memory.dynamics import DynamicsFile, MemoryArchive, StoreWithArchive
from coag.schema import Record
from coag.store import HashEmbedder, InMemoryStore, Search


@dataclass
class Place:
    """A store and an archive, and a memory over both."""

    store: InMemoryStore = field(default_factory=lambda: InMemoryStore(HashEmbedder()))
    archive: MemoryArchive = field(default_factory=lambda: MemoryArchive(DynamicsFile()))
    returned: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.whole = StoreWithArchive(self.store, self.archive, self.returned.extend)
        self.plain: LongTermMemory = memory_over(self.store)
        self.memory: LongTermMemory = memory_over(self.whole)

    async def fade(self, *ids: str) -> list[Record]:
        records = await self.store.get(ids)
        self.archive.put(records, owner="alice", at=0.0)
        await self.store.delete(ids)
        self.archive.finish(ids)
        return records


@pytest.fixture
def place() -> Place:
    return Place()


async def test_a_chain_is_whole_wherever_its_records_are(place: Place) -> None:
    stored = [(await tell(place.plain, f"door {n}", value=f"v{n}")).record for n in range(4)]
    chain = await place.plain.history(stored[0].id)
    assert len(chain) == 4
    await place.fade(chain[1].id, chain[3].id)
    assert len(await place.plain.history(stored[0].id)) == 1
    for record in chain:
        assert await place.memory.history(record.id) == chain
        assert await place.memory.history(record.id[:8]) == chain


async def test_what_comes_back_is_equal_and_current_again(place: Place) -> None:
    record = (await tell(place.plain, "The door is shut.", value="shut")).record
    faded = await place.fade(record.id)
    assert (await place.memory.recall("door shut")).records == ()
    assert await place.whole.bring_back([record.id, "unknown"]) == faded
    assert await place.store.get([record.id]) == faded
    assert place.archive.empty
    assert place.returned == [record.id]
    assert [hit.record for hit in (await place.memory.recall("door shut")).records] == faded


async def test_bringing_back_may_be_interrupted_and_repeated(place: Place) -> None:
    record = (await tell(place.plain, "The door is shut.")).record
    faded = await place.fade(record.id)
    await place.store.add(faded)  # as after the first half
    assert await place.whole.bring_back([record.id]) == faded
    assert await place.store.count(SEMANTIC) == 1
    assert place.archive.empty


async def test_a_fact_that_comes_back_to_another_value_holds_beside_it(place: Place) -> None:
    shut = (await tell(place.plain, "The door is shut.", value="shut")).record
    await place.fade(shut.id)
    wide = (await tell(place.plain, "The door is open.", value="open")).record
    await place.whole.bring_back([shut.id])
    records = {one.id: one for one in await place.store.get([shut.id, wide.id])}
    assert records[shut.id].lineage.contradicts == (wide.id,)
    assert records[wide.id].lineage.contradicts == (shut.id,)


async def test_a_new_value_takes_the_place_of_one_that_had_faded(place: Place) -> None:
    shut = (await tell(place.plain, "The door is shut.", value="shut")).record
    await place.fade(shut.id)
    wide = remembered("The door is open.", kind=SEMANTIC, fact=door("open"))
    await place.whole.bring_back_for([wide])
    new = (await tell(place.plain, "The door is open.", value="open")).record
    assert new.supersedes == shut.id
    assert [one.id for one in await place.memory.history(new.id)] == [shut.id, new.id]


async def test_nothing_is_looked_up_where_nothing_has_faded(place: Place) -> None:
    await place.whole.bring_back_for([remembered("a")])
    assert place.returned == []


async def test_revoking_takes_what_was_concluded_wherever_it_is(place: Place) -> None:
    root = (await tell(place.plain, "root")).record
    middle = (await tell(place.plain, "middle", ANN, "", root)).record
    last = (await tell(place.plain, "last", ANN, "", middle)).record
    bystander = (await tell(place.plain, "bystander")).record
    await place.fade(middle.id, bystander.id)
    done = await place.memory.revoke(root.id, "It was wrong.")
    assert set(done.records) == {root.id, middle.id, last.id}
    assert await place.whole.get([root.id, middle.id, last.id]) == []
    assert await place.whole.get([bystander.id]) == [bystander]


async def test_what_has_faded_is_relinked_when_its_neighbour_is_forgotten(place: Place) -> None:
    for n in range(3):
        await tell(place.plain, f"door {n}", value=f"v{n}")
    records = [one async for batch in place.store.scan() for one in batch]
    await place.fade(records[0].id)
    assert await place.memory.forget_record(records[1].id)
    assert [one.id for one in await place.memory.history(records[0].id)] == [
        records[0].id,
        records[2].id,
    ]


async def test_forgetting_a_scope_forgets_what_has_faded(place: Place) -> None:
    one = (await tell(place.plain, "one")).record
    await tell(place.plain, "two")
    await place.fade(one.id)
    assert await place.whole.count(SEMANTIC) == 2
    assert await place.memory.forget() == 2
    assert place.archive.empty


async def test_adding_or_superseding_what_has_faded_brings_it_back_first(place: Place) -> None:
    old = (await tell(place.plain, "old")).record
    known = (await tell(place.plain, "known")).record
    await place.fade(old.id, known.id)
    assert await place.whole.add([known]) == []
    new = known.model_copy(update={"id": "f" * 32, "text": "new"})
    assert (await place.whole.supersede(old.id, new)).supersedes == old.id
    (marked,) = await place.store.get([old.id])
    assert marked.superseded_by == new.id


async def test_a_record_in_both_comes_once_and_as_the_store_has_it(place: Place) -> None:
    record = (await tell(place.plain, "one", value="v")).record
    place.archive.put([record], owner="alice", at=0.0)
    changed = record.model_copy(update={"type": "other"})
    assert await place.whole.update([changed]) == [changed]
    assert await place.whole.get([record.id]) == [changed]
    assert [one async for batch in place.whole.scan() for one in batch] == [changed]
    every = Search(text=None, kind=SEMANTIC, where={"subject": "door"})
    assert [hit.record for hit in await place.whole.search(every)] == [changed]
    assert await place.whole.count(SEMANTIC) == 1
    assert await place.whole.delete([record.id, "unknown"]) == [record.id]
    assert place.archive.empty


async def test_updating_what_is_nowhere_is_refused(place: Place) -> None:
    record = (await tell(place.plain, "one")).record
    await place.whole.delete([record.id])
    with pytest.raises(RecordStoreError, match="There is no record"):
        await place.whole.update([record])
