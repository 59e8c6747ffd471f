"""What there is in a memory, and what is wrong with it."""

from __future__ import annotations

from datetime import timedelta

from kits.remembered import START, remembered

from coag.memory.health import MemoryHealth, examine_memory
from coag.schema import Clock, Fact, Lineage, MemoryKind, Record, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore

SEMANTIC = MemoryKind.SEMANTIC
DOOR = remembered("The door is open.", kind=SEMANTIC)


async def health_of(*records: Record, at: Clock | None = None) -> MemoryHealth:
    store = InMemoryStore(HashEmbedder(16))
    await store.add(records)
    return await examine_memory(store, clock=at)


def problems(health: MemoryHealth, level: str) -> str:
    return " ".join(finding.text for finding in health.findings if finding.level == level)


def fact(
    value: str, *contradicts: str, since: int | None = None, until: int | None = None
) -> Record:
    times = {
        name: None if minute is None else START + timedelta(minutes=minute)
        for name, minute in (("valid_from", since), ("valid_until", until))
    }
    return remembered(
        f"The lamp is {value}.",
        kind=SEMANTIC,
        fact=Fact.model_validate(
            {"subject": "lamp", "attribute": "state", "value": value, **times}
        ),
        lineage=Lineage(contradicts=contradicts),
    )


async def test_an_empty_memory_is_healthy() -> None:
    health = await health_of()
    assert (health.verdict, health.healthy, health.oldest) == ("healthy", True, None)
    assert (health.index, health.size, health.embedder) == (None, None, "hash-16")


async def test_a_record_superseded_by_one_that_is_gone_is_damage() -> None:
    health = await health_of(DOOR.model_copy(update={"superseded_by": "gone"}))
    assert not health.healthy
    assert "1 record(s) are superseded by records that are gone" in problems(health, "bad")
    assert health.verdict == "not healthy: 1 thing(s) to repair, 0 to look at"


async def test_an_id_that_is_not_that_of_its_text_is_damage() -> None:
    damaged = [DOOR.model_copy(update={"id": f"{n:032}"}) for n in range(5)]
    health = await health_of(*damaged)
    assert "5 record(s) have an id that is not that of their text" in problems(health, "bad")
    assert "and 2 more" in problems(health, "bad")


async def test_what_only_may_be_wrong_is_to_be_looked_at() -> None:
    lit, dark = fact("lit"), fact("dark")
    health = await health_of(
        DOOR,
        remembered("the DOOR is  open.", kind=SEMANTIC),
        remembered("Somebody said so.", trust=Trust.UNTRUSTED),
        remembered("So it is.", lineage=Lineage(derived_from=("gone",))),
        lit,
        dark,
    )
    assert health.healthy
    assert (health.duplicates, health.contradictions) == (1, 0)
    text = problems(health, "look")
    for part in ("several values", "repeat another one", "untrusted", "something that is gone"):
        assert part in text


async def test_contradictions_count_once_a_pair_and_only_while_both_hold() -> None:
    lit = fact("lit", fact("dark").id)
    dark = fact("dark", lit.id)
    health = await health_of(lit, dark)
    assert health.contradictions == 1
    assert "several values" not in problems(health, "look")
    over = dark.model_copy(update={"superseded_by": lit.id})
    assert (await health_of(lit, over)).contradictions == 0


async def test_facts_that_do_not_hold_at_one_time_contradict_nothing() -> None:
    lit = fact("lit", fact("dark").id, since=0, until=10)
    dark = fact("dark", lit.id, since=5)
    plain = [fact("lit", since=0, until=10), fact("dark", since=5)]
    found: list[tuple[int, int, bool]] = []
    for minute in (1, 7, 12):
        clock = SteppingClock(START + timedelta(minutes=minute))
        marked, unmarked = await health_of(lit, dark, at=clock), await health_of(*plain, at=clock)
        several = "several values" in problems(unmarked, "look")
        found.append((marked.contradictions, unmarked.contradictions, several))
    assert found == [(0, 0, False), (1, 0, True), (0, 0, False)]
