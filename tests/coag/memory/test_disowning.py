"""Taking back all that one source said, and finding out beforehand what that means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import RecordStoreError
from coag.memory import (
    LongTermMemory,
    Revocation,
    retract_source,
    revoke_again,
    said_by_person,
    would_revoke,
)
from coag.schema import Fact, MemoryKind, Provenance, Record, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore, RecordStore, WrappedStore

SEMANTIC = MemoryKind.SEMANTIC
SOURCES = {
    "ann": Trust.USER,
    "ben": Trust.USER,
    "web": Trust.UNTRUSTED,
    "dev": Trust.DEVELOPER,
}


def by(source: str) -> Provenance:
    return Provenance(
        run="", activity="", cycle=0, source=source, source_kind="message", trust=SOURCES[source]
    )


def fresh(store: RecordStore | None = None) -> LongTermMemory:
    own = store or InMemoryStore(HashEmbedder(16))
    return LongTermMemory(own, scope="alice", clock=SteppingClock(), ranking=None)


async def tell(
    memory: LongTermMemory, text: str, source: str, value: str = "", *rests_on: Record
) -> Record:
    fact = Fact(subject="door", attribute="state", value=value) if value else None
    told = await memory.remember(
        SEMANTIC,
        text,
        provenance=by(source),
        fact=fact,
        derived_from=[one.id for one in rests_on],
    )
    return told.record


async def everything(memory: LongTermMemory) -> dict[str, Record]:
    return {one.id: one async for some in memory.store.scan() for one in some}


def essence(done: Revocation) -> Revocation:
    """What it took back, whenever and why."""
    unordered = {
        name: tuple(sorted(getattr(done, name)))
        for name in ("records", "restored", "lowered", "cleared")
    }
    return replace(done, reason="", at=SteppingClock().now(), **unordered)


async def test_all_that_a_source_said_goes_but_what_others_said_too() -> None:
    memory = fresh()
    shared = await tell(memory, "The key is under the mat.", "web")
    await tell(memory, "The key is under the mat.", "ann")
    drawn = await tell(memory, "So it is outside.", "dev", "", shared)
    sound = await tell(memory, "The door is open.", "web", "open")
    alone = await tell(memory, "The door is shut.", "ann", "shut")
    rest = await tell(memory, "One must ring.", "ann", "", alone)
    other = await tell(memory, "The bell is loud.", "ben")

    done = await retract_source(memory, None, "ann", "She meant another house.")

    assert (done.record_id, done.source) == ("", "ann")
    assert set(done.records) == {alone.id, rest.id}
    assert set(done.lowered) == {shared.id, drawn.id}
    assert done.restored == (sound.id,)
    left = await everything(memory)
    assert left.keys() == {shared.id, drawn.id, sound.id, other.id}
    assert {left[one].provenance.trust for one in done.lowered} == {Trust.UNTRUSTED}
    (line,) = done.written()
    assert (line.what, line.id, line.content["source"]) == ("revoked", "", "ann")
    assert line.content["lowered"] == list(done.lowered)
    with pytest.raises(ValueError, match="Nothing in 'alice' stems from 'ann'"):
        await retract_source(memory, None, "ann", "Again.")


async def test_a_user_s_word_on_a_conclusion_s_text_stays_where_another_source_goes() -> None:
    memory = fresh()
    ground = await tell(memory, "The page says so.", "web")
    drawn = await tell(memory, "It is so.", "web", "", ground)
    await tell(memory, "It is so.", "ann")
    await tell(memory, "It is so.", "ben")

    done = await retract_source(memory, drawn.id, "ben", "He did not look.")

    assert done.lowered == (drawn.id,)
    (held,) = await memory.store.get([drawn.id])
    assert held.provenance == by("ann")


async def test_a_trial_names_a_record_or_a_source_and_no_others_are_taken() -> None:
    memory = fresh()
    only = await tell(memory, "It is shut.", "ann")
    with pytest.raises(ValueError, match="Name a record, or the source"):
        await would_revoke(memory, None)
    with pytest.raises(ValueError, match="not from 'web'"):
        await would_revoke(memory, only.id, source="web")
    assert await everything(memory) == {only.id: only}


WORDS = st.tuples(
    st.sampled_from(("fact", "note", "conclusion")),
    st.sampled_from(tuple(SOURCES)),
    st.integers(0, 2),
    st.lists(st.integers(0, 9), max_size=2),
)


async def filled(said: list[tuple[str, str, int, list[int]]]) -> LongTermMemory:
    memory = fresh()
    known: list[Record] = []
    for what, source, number, on in said:
        value = f"v{number}" if what == "fact" else ""
        ground = [known[one] for one in on if one < len(known)] if what == "conclusion" else []
        known.append(await tell(memory, f"{what} {number}", source, value, *ground))
    return memory


@given(
    said=st.lists(WORDS, min_size=1, max_size=8),
    source=st.sampled_from(tuple(SOURCES)),
    of_one=st.booleans(),
    pick=st.integers(0, 7),
)
async def test_what_a_trial_tells_is_what_a_revocation_does_and_nothing_of_the_word_is_left(
    said: list[tuple[str, str, int, list[int]]], source: str, of_one: bool, pick: int
) -> None:
    memory = await filled(said)
    before = await everything(memory)
    name = sorted(before)[pick % len(before)] if of_one else None
    mine = [
        one.id
        for one in before.values()
        if name in (None, one.id)
        and source in {each.source for each in (one.provenance, *one.lineage.also_from)}
    ]
    if not mine:
        with pytest.raises(ValueError, match="stems from"):
            await would_revoke(memory, name, source=source)
        return

    plan, changed = await would_revoke(memory, name, source=source)

    assert await everything(memory) == before
    done = await retract_source(memory, name, source, "A test.")
    after = await everything(memory)
    assert essence(done) == essence(plan)
    assert after.keys() == before.keys() - set(done.records)
    touched = {one.id: one for one in changed if one.id in after}
    assert {name: one for name, one in after.items() if one != before[name]} == {
        name: one for name, one in touched.items() if one != before[name]
    }
    for one in after.values():
        sources = {each.source for each in (one.provenance, *one.lineage.also_from)}
        assert one.id not in mine or source not in sources
        assert one.superseded_by is None or one.superseded_by in after
    await revoke_again(memory, done.written()[0])
    assert await everything(memory) == after


class Failing(WrappedStore):
    """A store that fails after so many writes."""

    left = 0

    async def update(self, records: object) -> list[Record]:
        self._count()
        return await self.store.update(records)  # pyright: ignore[reportArgumentType]

    async def delete(self, ids: object) -> list[str]:
        self._count()
        return await self.store.delete(ids)  # pyright: ignore[reportArgumentType]

    def _count(self) -> None:
        if self.left == 0:
            raise RecordStoreError("The disk is full.")
        self.left -= 1


@pytest.mark.parametrize("left", range(4))
async def test_one_that_was_broken_off_is_completed_by_doing_it_again(left: int) -> None:
    store = Failing(InMemoryStore(HashEmbedder(16)))
    store.left = 100
    memory = fresh(store)
    shared = await tell(memory, "The key is under the mat.", "web")
    await tell(memory, "The key is under the mat.", "ann")
    sound = await tell(memory, "The door is open.", "web", "open")
    alone = await tell(memory, "The door is shut.", "ann", "shut")
    await tell(memory, "One must ring.", "ben", "", alone)
    store.left = left
    with pytest.raises(RecordStoreError, match="disk is full"):
        await retract_source(memory, None, "ann", "She meant another house.")
    store.left = 100

    await retract_source(memory, None, "ann", "She meant another house.")

    left_over = await everything(memory)
    assert left_over.keys() == {shared.id, sound.id}
    assert {one.provenance.trust for one in left_over.values()} == {Trust.UNTRUSTED}
    assert left_over[sound.id].superseded_by is None


async def test_a_person_s_word_is_taken_back_by_the_name_it_was_said_under() -> None:
    memory = fresh()
    await memory.remember(SEMANTIC, "Tea is at four.", provenance=said_by_person("eve"))
    done = await retract_source(memory, None, "eve", "She left.")
    assert len(done.records) == 1
