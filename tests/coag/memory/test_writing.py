"""Many texts remembered together: the rules of one, in few steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kits.statements import memory_over, origin, stored

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory, Remembered, ToRemember
from coag.schema import Fact, MemoryKind, Record, Trust
from coag.store import HashEmbedder, InMemoryStore

SEMANTIC = MemoryKind.SEMANTIC
COLOURS = ("red", "blue", "green", "brown")


def note(
    text: str,
    *,
    who: str = "ann",
    trust: Trust = Trust.USER,
    value: str = "",
    about: str = "door",
    since: datetime | None = None,
) -> ToRemember:
    fact = None
    if value:
        fact = Fact(subject=about, attribute="colour", value=value, valid_from=since)
    return ToRemember(kind=SEMANTIC, text=text, provenance=origin(who, trust), fact=fact)


async def all_of(
    memory: LongTermMemory, texts: Sequence[ToRemember], batch: int = 500
) -> list[Remembered]:
    batches = memory.remember_all(texts, batch=batch)
    return [one async for some in batches for one in some]


class CountingStore(InMemoryStore):
    """Counts what it is asked; fails at the write whose number is given."""

    def __init__(self, fails_at: int = 0) -> None:
        super().__init__(HashEmbedder())
        self.asked: list[str] = []
        self.fails_at = fails_at

    async def get(self, ids: Sequence[str]) -> list[Record]:
        self.asked.append("get")
        return await super().get(ids)

    async def add(self, records: Sequence[Record]) -> list[str]:
        self._write("add")
        return await super().add(records)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        self._write("update")
        return await super().update(records)

    def _write(self, what: str) -> None:
        self.asked.append(what)
        writes = [one for one in self.asked if one != "get"]
        if len(writes) == self.fails_at:
            raise RecordStoreError("The disk is full.")


async def test_new_texts_take_one_question_and_one_write_a_batch() -> None:
    store = CountingStore()
    done = await all_of(memory_over(store), [note(f"note {n}") for n in range(100)], batch=50)
    assert store.asked == ["get", "add"] * 2
    assert all(one.new for one in done)
    assert [one.record.text for one in done] == [f"note {n}" for n in range(100)]


async def test_near_duplicates_are_looked_for_only_where_that_is_asked() -> None:
    memory = memory_over()
    texts = [note("The door is shut."), note("the door is shut", who="eve")]
    done = [one async for some in memory.remember_all(texts) for one in some]
    assert [one.new for one in done] == [True, True]
    other = memory_over()
    looking = other.remember_all(texts, near_duplicates=True)
    assert [one.new async for some in looking for one in some] == [True, False]


async def test_bad_text_is_refused_before_anything_of_its_batch_is_written() -> None:
    memory = memory_over()
    with pytest.raises(ValueError, match="text is empty"):
        await all_of(memory, [note("one"), note("two"), note("three"), note(" ")], batch=2)
    assert {record.text for record in (await stored(memory)).values()} == {"one", "two"}
    with pytest.raises(ValueError, match="batch must be at least 1"):
        await all_of(memory, [note("one")], batch=0)


async def test_a_failure_in_the_middle_says_how_many_were_written_and_repeating_completes() -> None:
    store = CountingStore(fails_at=2)
    memory = memory_over(store)
    texts = [note(f"note {n}") for n in range(5)]
    with pytest.raises(RecordStoreError, match=r"^2 text.* The disk is full"):
        await all_of(memory, texts, batch=2)
    assert len(await stored(memory)) == 2
    await all_of(memory, texts, batch=2)
    assert sorted(one.text for one in (await stored(memory)).values()) == [
        one.text for one in texts
    ]


async def test_text_derived_from_one_of_the_same_batch_is_trusted_no_more() -> None:
    memory = memory_over()
    rumour = note("the bridge is closed", trust=Trust.UNTRUSTED)
    (first,) = await all_of(memory, [rumour])
    concluded = ToRemember(
        kind=SEMANTIC,
        text="take the ferry",
        provenance=note("").provenance,
        derived_from=[first.record.id],
    )
    *_, last = await all_of(memory, [rumour, note("it rains"), concluded])
    assert last.record.provenance.trust is Trust.UNTRUSTED
    with pytest.raises(ValueError, match="Nothing can be derived"):
        await all_of(memory, [replace(concluded, derived_from=["nothing"])])


@st.composite
def words(draw: st.DrawFn) -> ToRemember:
    who = draw(st.sampled_from(("ann", "bob", "eve")))
    if draw(st.booleans()):
        return note(f"note {draw(st.integers(0, 3))}", who=who)
    about, value = draw(st.sampled_from(("door", "wall"))), draw(st.sampled_from(COLOURS))
    trust = draw(st.sampled_from((Trust.USER, Trust.USER, Trust.UNTRUSTED)))
    how = draw(st.sampled_from(("is", "was painted")))
    since = draw(st.sampled_from((None, None, *(datetime(2025, 5, n, tzinfo=UTC) for n in (1, 2)))))
    text = f"{about} {how} {value}"
    return note(text, who=who, trust=trust, value=value, about=about, since=since)


stories = st.lists(words(), max_size=12)


@given(story=stories, batch=st.integers(1, 13))
async def test_batches_leave_what_single_writes_leave(story: list[ToRemember], batch: int) -> None:
    one_by_one = memory_over()
    singly = [
        await one_by_one.remember(one.kind, one.text, provenance=one.provenance, fact=one.fact)
        for one in story
    ]
    together = memory_over()
    assert await all_of(together, story, batch) == singly
    assert await stored(together) == await stored(one_by_one)


@example(
    story=[
        note("door is red", value="red"),
        note("wall is blue", value="blue", about="wall"),
        note("note 0"),
        note("door is red", value="red"),
        note("door is blue", value="blue"),
        note("wall is red", trust=Trust.UNTRUSTED, value="red", about="wall"),
        note("door is red", value="red"),
        note("wall was painted red", value="red", about="wall"),
    ],
    batch=1,
    fails_at=8,
)
@given(story=stories, batch=st.integers(1, 5), fails_at=st.integers(1, 8))
async def test_an_interrupted_write_is_completed_by_repeating(
    story: list[ToRemember], batch: int, fails_at: int
) -> None:
    whole = memory_over()
    await all_of(whole, story, batch)
    store = CountingStore(fails_at)
    memory = memory_over(store)
    done: list[Remembered] = []
    with suppress(RecordStoreError):
        async for some in memory.remember_all(story, batch=batch):
            done += some
    await all_of(memory, story[len(done) :], batch)
    assert _without_times(await stored(memory)) == _without_times(await stored(whole))


def _without_times(records: dict[str, Record]) -> dict[str, object]:
    """What the records say and how they hang together; a repetition is later than what it is."""
    return {
        one.id: (
            one.text,
            one.supersedes,
            one.superseded_by,
            one.lineage.model_copy(update={"earlier": ()}),
            len(one.lineage.earlier),
            one.provenance,
        )
        for one in records.values()
    }
