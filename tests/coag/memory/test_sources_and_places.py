"""Whose word counts, what comes back, and that memories over one place wait for each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from coag.memory import LongTermMemory, Remembered, Scopes, ToRemember
from coag.schema import Fact, MemoryKind, Provenance, SteppingClock, Trust, is_own_id
from coag.store import HashEmbedder, InMemoryStore

SEMANTIC = MemoryKind.SEMANTIC
USER, UNTRUSTED = Trust.USER, Trust.UNTRUSTED


def said_by(trust: Trust = USER, cycle: int = 1, who: str = "ann") -> Provenance:
    return Provenance(
        run="run", activity="main", cycle=cycle, source=who, source_kind="message", trust=trust
    )


def door(value: str) -> Fact:
    return Fact(subject="door", attribute="state", value=value)


@pytest.fixture
def memory() -> LongTermMemory:
    return LongTermMemory(InMemoryStore(HashEmbedder()), scope="a", clock=SteppingClock())


async def texts(memory: LongTermMemory, query: str) -> set[str]:
    recall = await memory.recall(query, k=10, min_score=0.0)
    return {hit.record.text for hit in recall.records}


async def test_a_value_that_holds_anew_comes_back_whoever_said_it(memory: LongTermMemory) -> None:
    for value in ("open", "shut", "open"):
        await memory.remember(
            SEMANTIC, f"The door is {value}.", provenance=said_by(), fact=door(value)
        )

    assert await texts(memory, "door") == {"The door is open."}


async def test_an_untrusted_source_adds_no_fact_to_what_a_user_said(
    memory: LongTermMemory,
) -> None:
    code = Fact(subject="vault", attribute="code", value="1234")
    await memory.remember(SEMANTIC, "Robbie likes tea.", provenance=said_by())
    await memory.remember(SEMANTIC, "The code is 1234.", provenance=said_by(), fact=code)
    poison = code.model_copy(update={"value": "0000"})
    await memory.remember(
        SEMANTIC, "Robbie likes tea.", provenance=said_by(UNTRUSTED, 2, "web"), fact=poison
    )

    again = await memory.remember(SEMANTIC, "Robbie likes tea.", provenance=said_by(cycle=9))

    assert again.record.fact is None
    assert again.superseded == ()


async def test_a_users_own_words_are_kept_beside_an_untrusted_record(
    memory: LongTermMemory,
) -> None:
    poison = await memory.remember(
        SEMANTIC,
        "The door is open, and every visitor gets a key.",
        provenance=said_by(UNTRUSTED),
        fact=door("open"),
    )
    own = await memory.remember(
        SEMANTIC, "I checked: the door is open.", provenance=said_by(cycle=2), fact=door("open")
    )

    assert own.superseded == (poison.record.id,)
    await memory.revoke(poison.record.id, "It was planted.")
    assert await texts(memory, "door") == {"I checked: the door is open."}


async def test_untrusted_repetitions_do_not_push_out_a_users_confirmation(
    memory: LongTermMemory,
) -> None:
    async def tell(value: str, origin: Provenance) -> Remembered:
        return await memory.remember(
            SEMANTIC, f"The door is {value}.", provenance=origin, fact=door(value)
        )

    shut = await tell("shut", said_by(UNTRUSTED, 1, "web"))
    await tell("shut", said_by(USER, 2))
    for cycle in range(3, 25):
        await tell("shut", said_by(UNTRUSTED, cycle, "web"))

    blue = await tell("blue", said_by(UNTRUSTED, 99, "web"))

    assert blue.superseded == ()
    assert blue.contradicts == (shut.record.id,)


async def test_what_is_trusted_less_stands_beside_what_it_was_to_supersede(
    memory: LongTermMemory,
) -> None:
    old = await memory.remember(SEMANTIC, "The charger is at (0,0).", provenance=said_by())
    new = await memory.remember(
        SEMANTIC,
        "The charger is at (9,9).",
        provenance=said_by(UNTRUSTED, 2, "sign"),
        supersedes=old.record.id,
    )

    assert new.superseded == ()
    assert new.contradicts == (old.record.id,)
    assert await texts(memory, "charger") == {old.record.text, new.record.text}


async def test_earlier_news_does_not_beat_what_was_said_without_a_time(
    memory: LongTermMemory,
) -> None:
    await memory.remember(SEMANTIC, "The door is shut.", provenance=said_by(), fact=door("shut"))
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    told = await memory.remember(
        SEMANTIC,
        "The door is open.",
        provenance=said_by(cycle=2),
        fact=door("open").model_copy(update={"valid_from": long_ago}),
    )

    assert told.superseded == ()
    assert await texts(memory, "door") == {"The door is shut."}


@pytest.mark.parametrize("in_bulk", [False, True])
async def test_one_text_tells_two_facts(memory: LongTermMemory, in_bulk: bool) -> None:
    window = Fact(subject="window", attribute="state", value="shut")
    told = [
        ("It is shut.", door("shut")),
        ("The window is open.", window.model_copy(update={"value": "open"})),
        ("It is shut.", window),
        ("It is shut.", window),
    ]
    texts = [
        ToRemember(kind=SEMANTIC, text=text, provenance=said_by(cycle=n), fact=fact)
        for n, (text, fact) in enumerate(told)
    ]
    if in_bulk:
        _ = [batch async for batch in memory.remember_all(texts)]
    else:
        for one in texts:
            await memory.remember(SEMANTIC, one.text, provenance=one.provenance, fact=one.fact)

    recall = await memory.recall("shut", k=10, min_score=0.0)
    facts = {
        (hit.record.fact.subject, hit.record.fact.value)
        for hit in recall.records
        if hit.record.fact
    }
    assert facts == {("door", "shut"), ("window", "shut")}
    assert len(recall.records) == 2
    assert all(is_own_id(hit.record) for hit in recall.records)


async def test_two_memories_of_one_team_lose_no_origin_and_name_each_contradiction() -> None:
    store = InMemoryStore(HashEmbedder())
    one, two = (
        LongTermMemory(store, scope=Scopes(own=name, writes=("team",))) for name in ("a", "b")
    )
    await asyncio.gather(
        *(
            memory.remember(
                SEMANTIC, f"Door {n} is used.", provenance=said_by(cycle=n, who=who), scope="team"
            )
            for n in range(10)
            for memory, who in ((one, "a"), (two, "b"))
        )
    )

    recall = await two.recall("door used", k=10, min_score=0.0)
    assert len(recall.records) == 10
    for hit in recall.records:
        lineage = hit.record.lineage
        assert {hit.record.provenance.source, *(o.source for o in lineage.also_from)} == {"a", "b"}


def test_a_memory_is_used_from_the_loops_of_two_threads() -> None:
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="a")

    def writing(who: str) -> Callable[[], None]:
        async def write() -> None:
            for n in range(20):
                await memory.remember(
                    SEMANTIC, f"{who} says {n}.", provenance=said_by(cycle=n, who=who)
                )

        return lambda: asyncio.run(write())

    threads = [threading.Thread(target=writing(who)) for who in ("ann", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert not any(thread.is_alive() for thread in threads)
    assert asyncio.run(memory.store.count(SEMANTIC)) == 40
