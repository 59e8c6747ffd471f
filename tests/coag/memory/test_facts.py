from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coag.memory import LongTermMemory, Remembered
from coag.schema import Fact, MemoryKind, Provenance, SteppingClock, Trust
from coag.store import ChromaStore, HashEmbedder, InMemoryStore

SEMANTIC = MemoryKind.SEMANTIC


def said_by(who: str, trust: Trust = Trust.USER, kind: str = "message") -> Provenance:
    return Provenance(
        run="run", activity="main", cycle=1, source=who, source_kind=kind, trust=trust
    )


@pytest.fixture
async def memory() -> AsyncIterator[LongTermMemory]:
    memory = LongTermMemory(
        InMemoryStore(HashEmbedder()), scope="alice", clock=SteppingClock(), ranking=None
    )
    yield memory
    await memory.close()


async def tell(
    memory: LongTermMemory,
    value: str,
    text: str = "",
    *,
    who: str = "alice",
    trust: Trust = Trust.USER,
    since: datetime | None = None,
) -> Remembered:
    fact = Fact(subject="the Door", attribute="state", value=value, valid_from=since)
    return await memory.remember(
        SEMANTIC, text or f"the door is {value}", provenance=said_by(who, trust), fact=fact
    )


async def doors(memory: LongTermMemory) -> list[str]:
    recall = await memory.recall("the door is", k=10)
    return sorted(hit.record.text for hit in recall.records)


async def test_new_value_takes_the_place_of_the_old_one_which_is_kept_and_ended(
    memory: LongTermMemory,
) -> None:
    old = await tell(memory, "open")
    new = await tell(memory, "shut")

    assert new.superseded == (old.record.id,)
    assert await doors(memory) == ["the door is shut"]
    (ended,) = await memory.store.get([old.record.id])
    assert ended.superseded_by == new.record.id
    assert ended.fact is not None
    assert ended.fact.valid_until == new.record.created_at


async def test_change_of_a_fact_survives_in_chroma_on_disk(tmp_path: Path) -> None:
    for value in ("open", "shut"):
        store = await ChromaStore.open(tmp_path, HashEmbedder())
        memory = LongTermMemory(store, scope="alice")
        told = await tell(memory, value)
        await memory.close()

    memory = LongTermMemory(await ChromaStore.open(tmp_path, HashEmbedder()), scope="alice")
    assert [one.text for one in await memory.history(told.record.id)] == [
        "the door is open",
        "the door is shut",
    ]
    assert await doors(memory) == ["the door is shut"]
    await memory.close()


async def test_value_in_other_spelling_and_words_is_a_repetition(memory: LongTermMemory) -> None:
    first = await tell(memory, "open")
    again = await tell(memory, " OPEN", "it stands open", who="bob")

    assert again.merged
    assert not again.new
    assert again.record.id == first.record.id
    assert again.record.lineage.also_from == (said_by("bob"),)


async def test_less_trusted_word_contradicts_and_both_are_shown(memory: LongTermMemory) -> None:
    sound = await tell(memory, "open")
    rumour = await tell(memory, "shut", trust=Trust.UNTRUSTED)

    assert rumour.contradicts == (sound.record.id,)
    (held,) = await memory.store.get([sound.record.id])
    assert held.lineage.contradicts == (rumour.record.id,)
    recall = await memory.recall("the door is open", k=1)
    assert [hit.record.id for hit in recall.records] == [sound.record.id, rumour.record.id]
    assert recall.contradictions == ((sound.record.id, rumour.record.id),)


async def test_contradiction_is_settled_by_a_later_trusted_word(memory: LongTermMemory) -> None:
    sound = await tell(memory, "open")
    rumour = await tell(memory, "shut", trust=Trust.UNTRUSTED)
    last = await tell(memory, "shut", "I saw the door shut")

    assert set(last.superseded) == {sound.record.id, rumour.record.id}
    recall = await memory.recall("the door is", k=10)
    assert [hit.record.id for hit in recall.records] == [last.record.id]
    assert recall.contradictions == ()


async def test_value_that_holds_anew_comes_back_with_its_new_time(memory: LongTermMemory) -> None:
    first = await tell(memory, "open")
    await tell(memory, "shut")
    back = await tell(memory, "open", who="bob")

    assert back.new
    assert back.record.id == first.record.id
    assert await doors(memory) == ["the door is open"]
    (stored,) = await memory.store.get([first.record.id])
    assert stored.fact is not None
    assert stored.fact.valid_until is None
    assert stored.fact.valid_from is not None
    assert stored.fact.valid_from > first.record.created_at
    assert stored.lineage.also_from == (said_by("bob"),)


async def test_old_word_repeated_by_somebody_less_trusted_stays_superseded(
    memory: LongTermMemory,
) -> None:
    await tell(memory, "open")
    await tell(memory, "shut")
    rumour = await tell(memory, "open", who="sign", trust=Trust.UNTRUSTED)

    assert not rumour.new
    assert await doors(memory) == ["the door is shut"]


async def test_news_of_an_earlier_time_do_not_take_the_place_of_what_holds(
    memory: LongTermMemory,
) -> None:
    noon, morning = datetime(2025, 5, 1, 12, tzinfo=UTC), datetime(2025, 5, 1, 8, tzinfo=UTC)
    now = await tell(memory, "open", since=noon)
    late = await tell(memory, "shut", since=morning)

    assert late.record.superseded_by == now.record.id
    assert late.record.fact is not None
    assert late.record.fact.valid_until == noon
    assert await doors(memory) == ["the door is open"]


async def test_same_write_again_changes_nothing(memory: LongTermMemory) -> None:
    await tell(memory, "open")
    new = await tell(memory, "shut")
    await tell(memory, "ajar", trust=Trust.UNTRUSTED)
    (before,) = await memory.store.get([new.record.id])

    again = await tell(memory, "shut")

    assert again.record == before
    assert await memory.store.get([new.record.id]) == [before]
    assert await doors(memory) == ["the door is ajar", "the door is shut"]


async def test_facts_of_other_scopes_and_other_matters_are_let_alone(
    memory: LongTermMemory,
) -> None:
    other = LongTermMemory(memory.store, scope="bob", clock=SteppingClock())
    theirs = await tell(other, "open")
    colour = await memory.remember(
        SEMANTIC,
        "the door is green",
        provenance=said_by("alice"),
        fact=Fact(subject="the door", attribute="colour", value="green"),
    )
    mine = await tell(memory, "shut")

    assert mine.superseded == mine.contradicts == ()
    held = await memory.store.get([theirs.record.id, colour.record.id])
    assert [record.superseded_by for record in held] == [None, None]


async def test_record_derived_from_others_is_trusted_no_more_than_they_are(
    memory: LongTermMemory,
) -> None:
    poor = await tell(memory, "open", trust=Trust.UNTRUSTED)
    made = await memory.remember(
        SEMANTIC,
        "one can walk in",
        provenance=said_by("alice"),
        derived_from=[poor.record.id],
    )

    assert made.record.provenance.trust is Trust.UNTRUSTED
    assert made.record.lineage.derived_from == (poor.record.id,)
    with pytest.raises(ValueError, match="'nothing'"):
        await memory.remember(
            SEMANTIC, "x y", provenance=said_by("alice"), derived_from=["nothing"]
        )


async def test_only_the_newest_origins_are_kept_beside_the_first(memory: LongTermMemory) -> None:
    for number in range(29):
        await tell(memory, "open", who=f"witness {number}")
    told = await tell(memory, "open", who="witness 29")

    assert told.record.provenance.source == "witness 0"
    others = [one.source for one in told.record.lineage.also_from]
    assert others == [f"witness {number}" for number in range(10, 30)]
