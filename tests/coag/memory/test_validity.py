"""Facts that hold from a day on, until a day, not yet or no longer; and news that come late."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import SEMANTIC, UNTRUSTED, USER, origin, stored

from coag.memory import LongTermMemory, Remembered, ToRemember, held_when
from coag.schema import Fact, Record, Trust
from coag.store import HashEmbedder, InMemoryStore

TODAY = 10


def day(number: int) -> datetime:
    return datetime(2025, 5, 1, tzinfo=UTC) + timedelta(days=number)


class Calendar:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.today = TODAY

    def now(self) -> datetime:
        return day(self.today)

    def monotonic(self) -> float:
        return float(self.today)


class Mayors:
    """A memory of who is mayor since when."""

    def __init__(self) -> None:
        self.calendar = Calendar()
        store = InMemoryStore(HashEmbedder())
        self.memory = LongTermMemory(store, scope="alice", clock=self.calendar, ranking=None)

    async def learn(
        self, name: str, since: int | None = None, until: int | None = None, **how: Any
    ) -> Remembered:
        supersedes = how.pop("supersedes", None)
        word = word_of(name, since, until, **how)
        return await self.memory.remember(
            SEMANTIC,
            word.text,
            provenance=word.provenance,
            fact=word.fact,
            supersedes=supersedes,
        )

    async def values(self, k: int = 9) -> list[str]:
        """The values that are recalled."""
        recall = await self.memory.recall("the mayor is", k=k)
        return sorted(hit.record.fact.value for hit in recall.records if hit.record.fact)

    async def on(self, number: int) -> list[str]:
        """The values that are recalled on a day, from which on it stays."""
        self.calendar.today = number
        return await self.values()

    async def everything(self) -> dict[str, Record]:
        return {one.text: one for one in (await stored(self.memory)).values()}

    async def history(self, record: Record) -> list[Interval]:
        return [interval_of(one) for one in await self.memory.history(record.id)]


class Interval(NamedTuple):
    """From when until when what a text says holds."""

    text: str
    since: datetime | None
    until: datetime | None


def interval_of(record: Record) -> Interval:
    assert record.fact is not None
    return Interval(record.text, record.fact.valid_from, record.fact.valid_until)


def word_of(
    name: str,
    since: int | None,
    until: int | None = None,
    *,
    trust: Trust = USER,
    who: str = "ann",
    text: str = "",
) -> ToRemember:
    fact = Fact(
        subject="town",
        attribute="mayor",
        value=name,
        valid_from=None if since is None else day(since),
        valid_until=None if until is None else day(until),
    )
    text = text or f"the mayor is {name}"
    return ToRemember(kind=SEMANTIC, text=text, provenance=origin(who, trust, run=""), fact=fact)


@pytest.fixture
def mayors() -> Mayors:
    return Mayors()


async def test_fact_of_the_future_supersedes_the_present_one_only_when_its_time_comes(
    mayors: Mayors,
) -> None:
    now = await mayors.learn("ann", 1)
    next_one = await mayors.learn("ben", 20)
    assert next_one.superseded == ()
    assert next_one.contradicts == ()
    assert next_one.decision is not None
    assert "holds from 2025-05-21" in next_one.decision.why
    assert await mayors.values() == ["ann"]
    assert await mayors.on(19) == ["ann"]
    assert await mayors.on(20) == ["ben"]
    expected = [
        Interval("the mayor is ann", day(1), day(20)),
        Interval("the mayor is ben", day(20), None),
    ]
    assert await mayors.history(now.record) == expected
    assert await mayors.history(next_one.record) == expected


async def test_present_word_takes_the_present_ones_place_and_leaves_the_future(
    mayors: Mayors,
) -> None:
    await mayors.learn("ann", 1)
    await mayors.learn("ben", 20)
    cid = await mayors.learn("cid")
    assert len(cid.superseded) == 1
    assert await mayors.values() == ["cid"]
    assert [one.text[-3:] for one in await mayors.history(cid.record)] == ["ann", "cid", "ben"]
    assert await mayors.on(20) == ["ben"]
    await mayors.learn("dan")
    assert await mayors.values() == ["dan"]
    assert [one.text[-3:] for one in await mayors.history(cid.record)] == [
        *("ann", "cid", "ben", "dan"),
    ]


async def test_what_was_to_be_superseded_holds_on_when_the_future_is_revoked(
    mayors: Mayors,
) -> None:
    now = await mayors.learn("ann", 1)
    next_one = await mayors.learn("ben", 20)
    last = await mayors.learn("cid", 30)
    await mayors.memory.revoke(next_one.record.id, "She withdrew.")
    assert await mayors.history(now.record) == [
        Interval("the mayor is ann", day(1), day(30)),
        Interval("the mayor is cid", day(30), None),
    ]
    await mayors.memory.revoke(last.record.id, "So did he.")
    assert await mayors.on(40) == ["ann"]


async def test_future_that_is_trusted_less_contradicts_once_it_is_there(mayors: Mayors) -> None:
    sure = await mayors.learn("ann", 1)
    rumour = await mayors.learn("ben", 20, trust=UNTRUSTED)
    assert rumour.contradicts == (sure.record.id,)
    recall = await mayors.memory.recall("the mayor is")
    assert [hit.record.id for hit in recall.records] == [sure.record.id]
    assert recall.contradictions == ()
    mayors.calendar.today = 20
    recall = await mayors.memory.recall("the mayor is")
    assert {hit.record.id for hit in recall.records} == {sure.record.id, rumour.record.id}
    assert len(recall.contradictions) == 1


async def test_explicit_successor_of_the_future_waits_too(mayors: Mayors) -> None:
    now = await mayors.learn("ann", 1)
    await mayors.learn("ben", 20, supersedes=now.record.id)
    await mayors.learn("cid", 30)
    assert (await mayors.values(), await mayors.on(20)) == (["ann"], ["ben"])
    await mayors.learn("cid")  # the future one, said again, holds now
    assert await mayors.values() == ["cid"]


async def test_a_fact_whose_time_is_over_is_not_recalled_and_contradicts_nothing(
    mayors: Mayors,
) -> None:
    sure = await mayors.learn("ann", 1, 12)
    assert await mayors.values() == ["ann"]
    assert await mayors.on(12) == []
    rumour = await mayors.learn("ben", trust=UNTRUSTED)
    assert rumour.contradicts == ()
    assert await mayors.values() == ["ben"]
    (kept,) = await mayors.memory.store.get([sure.record.id])
    assert kept == sure.record


async def test_a_fact_that_is_over_when_it_is_stated_ends_nothing(mayors: Mayors) -> None:
    now = await mayors.learn("ann", 1)
    over = await mayors.learn("ben", 3, 5)
    assert (over.superseded, over.contradicts) == ((), ())
    assert await mayors.values() == ["ann"]
    assert await mayors.history(now.record) == [Interval("the mayor is ann", day(1), None)]


async def test_recall_looks_further_where_what_is_over_comes_first(mayors: Mayors) -> None:
    for number in range(40):
        await mayors.learn(f"m{number}", 1, 2, text="the mayor is " + "x" * number)
    await mayors.learn("ann", 3, text="the mayor is ann of the house by the sea")
    assert await mayors.values(k=2) == ["ann"]


async def test_later_date_of_an_untrusted_source_moves_nothing(mayors: Mayors) -> None:
    await mayors.learn("ann", 1)
    await mayors.learn("ben", 4)
    await mayors.learn("ann", 8, trust=UNTRUSTED, who="web")
    assert await mayors.values() == ["ben"]
    await mayors.learn("dan", 9, trust=UNTRUSTED, who="web")
    await mayors.learn("dan", 2)
    assert await mayors.values() == ["ben"]


async def test_value_that_a_user_confirms_ends_what_contradicted_it(mayors: Mayors) -> None:
    sure = await mayors.learn("ann")
    rumour = await mayors.learn("ben", trust=UNTRUSTED, who="web")
    mayors.calendar.today += 1
    confirmed = await mayors.learn("ben")
    assert confirmed.record.id == rumour.record.id
    assert confirmed.superseded == (sure.record.id,)
    assert await mayors.values() == ["ben"]
    first, second = await mayors.history(rumour.record)
    assert first.until == second.since == day(TODAY + 1)


class Statement(NamedTuple):
    """What one word says."""

    name: str
    since: int
    trust: Trust
    text: str


@st.composite
def dated(draw: st.DrawFn, *, own_texts: bool, trusts: Sequence[Trust]) -> list[Statement]:
    """Words on different days, in any order."""
    days = draw(st.lists(st.integers(0, 2 * TODAY), unique=True, min_size=1, max_size=6))
    statements: list[Statement] = []
    for number in days:
        name = draw(st.sampled_from(("ann", "ben", "cid")))
        text = f"on day {number} {name} became mayor" if own_texts else f"the mayor is {name}"
        statements.append(Statement(name, number, draw(st.sampled_from(trusts)), text))
    return statements


async def after(statements: Sequence[Statement], batch: int) -> Mayors:
    """The memory after all statements, one by one (`batch=0`) or some at a time."""
    mayors = Mayors()
    if batch == 0:
        for one in statements:
            await mayors.learn(one.name, one.since, trust=one.trust, text=one.text)
        return mayors
    words = [word_of(o.name, o.since, trust=o.trust, text=o.text) for o in statements]
    async for _ in mayors.memory.remember_all(words, batch=batch):
        pass
    return mayors


@given(own_texts=st.booleans(), data=st.data(), batch=st.integers(0, 3))
async def test_in_any_order_dated_facts_become_the_same_history_without_overlap(
    own_texts: bool, data: st.DataObject, batch: int
) -> None:
    statements = data.draw(dated(own_texts=own_texts, trusts=[USER]))
    mayors = await after(statements, batch)
    last = {one.text: one for one in sorted(statements, key=lambda one: one.since)}
    order = sorted(last.values(), key=lambda one: one.since)
    ends = [*(day(one.since) for one in order[1:]), None]
    expected = [
        Interval(one.text, day(one.since), end) for one, end in zip(order, ends, strict=True)
    ]
    records = await mayors.everything()
    for record in records.values():
        assert await mayors.history(record) == expected
    begun = [one for one in order if one.since <= TODAY]
    assert await mayors.values() == [one.name for one in begun[-1:]]
    assert await mayors.on(2 * TODAY) == [order[-1].name]


def timeline(statements: Sequence[Statement]) -> list[Interval]:
    """Who was mayor when, each until the next one began; who follows himself stays."""
    found: list[Interval] = []
    for one in sorted(statements, key=lambda one: one.since):
        if found and found[-1].text == one.text:
            continue
        if found:
            found[-1] = found[-1]._replace(until=day(one.since))
        found.append(Interval(one.text, day(one.since), None))
    return found


async def held(mayors: Mayors, record: Record) -> list[Interval]:
    chain = await mayors.memory.history(record.id)
    return [Interval(one.record.text, one.since, one.until) for one in held_when(chain)]


@given(data=st.data(), batch=st.integers(0, 3))
async def test_in_any_order_all_the_times_in_which_a_text_held_are_kept(
    data: st.DataObject, batch: int
) -> None:
    statements = data.draw(dated(own_texts=False, trusts=[USER]))
    mayors = await after(statements, batch)
    other = await after(data.draw(st.permutations(statements)), 0)
    records = await mayors.everything()
    for record in records.values():
        assert await held(mayors, record) == timeline(statements)
    again = {name: one.lineage.earlier for name, one in (await other.everything()).items()}
    assert again == {name: one.lineage.earlier for name, one in records.items()}
    for one in statements:  # said once more, nothing changes
        await mayors.learn(one.name, one.since, trust=one.trust, text=one.text)
    assert await mayors.everything() == records


async def test_a_value_that_returns_keeps_the_time_in_which_it_held_before(mayors: Mayors) -> None:
    first = await mayors.learn("ann")
    mayors.calendar.today += 1
    await mayors.learn("ben")
    mayors.calendar.today += 1
    await mayors.learn("ann")
    assert await held(mayors, first.record) == [
        Interval("the mayor is ann", day(TODAY), day(TODAY + 1)),
        Interval("the mayor is ben", None, day(TODAY + 2)),
        Interval("the mayor is ann", day(TODAY + 2), None),
    ]


async def test_a_stated_end_is_kept_and_cut_where_something_else_begins(
    mayors: Mayors,
) -> None:
    first = await mayors.learn("ann", 1, 3)
    await mayors.learn("ben", 5, 19)
    await mayors.learn("ann", 8)
    assert await held(mayors, first.record) == [
        Interval("the mayor is ann", day(1), day(3)),
        Interval("the mayor is ben", day(5), day(8)),
        Interval("the mayor is ann", day(8), None),
    ]


async def test_only_the_best_trusted_of_a_texts_sources_say_when_it_held(mayors: Mayors) -> None:
    first = await mayors.learn("ann", 1, trust=UNTRUSTED, who="web")
    await mayors.learn("ann", 3, trust=UNTRUSTED, who="web")
    assert len((await mayors.everything())[first.record.text].lineage.earlier) == 1
    await mayors.learn("ann", 5)
    await mayors.learn("ann", 2, trust=UNTRUSTED, who="web")
    assert await held(mayors, first.record) == [Interval("the mayor is ann", day(5), None)]


async def test_of_very_many_earlier_times_the_latest_are_kept(mayors: Mayors) -> None:
    mayors.calendar.today = 100
    remembered = [await mayors.learn(("ann", "ben")[number % 2], number) for number in range(60)]
    earlier = remembered[-1].record.lineage.earlier
    assert [one.since for one in earlier] == [day(number) for number in range(19, 59, 2)]


@given(data=st.data())
async def test_in_any_order_a_word_holds_until_one_that_is_trusted_no_less(
    data: st.DataObject,
) -> None:
    drawn = data.draw(dated(own_texts=True, trusts=[USER, UNTRUSTED]))
    statements = [one._replace(name=f"mayor{one.since}") for one in drawn]  # nobody twice
    mayors = await after(statements, 0)
    ends = {
        one.text: min(
            (
                day(other.since)
                for other in statements
                if other.since > one.since and (other.trust is USER or one.trust is UNTRUSTED)
            ),
            default=None,
        )
        for one in statements
    }
    found = await mayors.everything()
    assert {name: interval_of(record).until for name, record in found.items()} == ends
    for one in statements:
        end, record = ends[one.text], found[one.text]
        assert (record.superseded_by is None) == (end is None or end > day(TODAY))
