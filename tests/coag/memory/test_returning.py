"""A value that holds again, and a call that is repeated only because it broke off."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from coag.memory import LongTermMemory, Remembered, ToRemember
from coag.schema import Event, Fact, MemoryKind, Provenance, Record, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore

SEMANTIC = MemoryKind.SEMANTIC


def by(who: str = "ann", *, run: str = "run", cycle: int = 1, kind: str = "message") -> Provenance:
    return Provenance(
        run=run, activity="main", cycle=cycle, source=who, source_kind=kind, trust=Trust.USER
    )


def day(number: int) -> datetime:
    return datetime(2025, 5, number, tzinfo=UTC)


@pytest.fixture
def memory() -> LongTermMemory:
    store = InMemoryStore(HashEmbedder())
    return LongTermMemory(store, scope="alice", clock=SteppingClock(), ranking=None)


def mayor(
    name: str, origin: Provenance, *, since: datetime | None = None, at: datetime | None = None
) -> ToRemember:
    return ToRemember(
        kind=SEMANTIC,
        text=f"The mayor is {name}.",
        provenance=origin,
        fact=Fact(subject="town", attribute="mayor", value=name, valid_from=since),
        event=None if at is None else Event(at=at),
    )


async def told(memory: LongTermMemory, *words: ToRemember) -> list[Remembered]:
    return [
        await memory.remember(
            one.kind, one.text, provenance=one.provenance, fact=one.fact, event=one.event
        )
        for one in words
    ]


async def current(memory: LongTermMemory) -> Record:
    (hit,) = (await memory.recall("the mayor is", k=9)).records
    return hit.record


def value_of(record: Record) -> str:
    assert record.fact is not None
    return record.fact.value


NOBODY = by(run="")
"""Said in no run, as a person says things by hand."""


@pytest.mark.parametrize("in_bulk", [False, True])
@pytest.mark.parametrize(
    ("ann", "ben"),
    [
        (by(), by()),
        (by(), by("eve")),
        (NOBODY, NOBODY),
        (NOBODY, by("eve", run="")),
        (by(), by("eve", run="another")),
        (by(kind="agent"), by("eve", kind="agent")),
    ],
)
async def test_what_is_said_again_after_something_else_holds_again_whoever_said_that(
    memory: LongTermMemory, ann: Provenance, ben: Provenance, in_bulk: bool
) -> None:
    words = [mayor("ann", ann), mayor("ben", ben), mayor("ann", ann)]
    if in_bulk:
        done = [one async for some in memory.remember_all(words) for one in some]
    else:
        done = await told(memory, *words)

    held = await current(memory)
    assert value_of(held) == "ann"
    assert done[-1].new
    assert held.fact is not None
    assert held.fact.valid_until is None
    assert held.fact.valid_from is not None
    assert held.fact.valid_from > done[1].record.created_at


async def test_call_of_an_earlier_cycle_that_is_repeated_revives_nothing(
    memory: LongTermMemory,
) -> None:
    await told(memory, mayor("ann", by(cycle=1)), mayor("ben", by(cycle=2)))
    before = await current(memory)
    (again,) = await told(memory, mayor("ann", by(cycle=1)))

    assert await current(memory) == before
    assert not again.merged
    await told(memory, mayor("ann", by(cycle=3)))
    assert value_of(await current(memory)) == "ann"
    await told(memory, mayor("ben", by(cycle=2)))
    assert value_of(await current(memory)) == "ann"


async def test_agents_call_that_is_repeated_after_another_run_spoke_revives_nothing(
    memory: LongTermMemory,
) -> None:
    mine = by("robbie", kind="agent")
    await told(memory, mayor("ann", mine), mayor("ben", by("tilly", run="other", kind="agent")))
    await told(memory, mayor("ann", mine))

    assert value_of(await current(memory)) == "ben"


async def test_call_that_tells_its_moment_is_repeated_where_the_moment_is_the_same(
    memory: LongTermMemory,
) -> None:
    ann, eve = by(), by("eve")
    for word in ({"since": day(1)}, {"at": day(1)}):
        await memory.forget()
        await told(memory, mayor("ann", ann, **word))
        await told(memory, mayor("ben", eve, **dict.fromkeys(word, day(2))))
        await told(memory, mayor("ann", ann, **word))
        assert value_of(await current(memory)) == "ben"

        await told(memory, mayor("ann", ann, **dict.fromkeys(word, day(3))))
        held = await current(memory)
        assert value_of(held) == "ann"
        assert held.fact is not None
        assert held.fact.valid_from == day(3)
        await told(memory, mayor("ben", eve, **dict.fromkeys(word, day(2))))
        assert value_of(await current(memory)) == "ann"
