"""Facts on one matter: which gives way, what is a repetition, and which value holds again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kits.statements import (
    ANN,
    UNTRUSTED,
    WEB,
    door,
    origin,
    stored,
    tell,
    texts,
)

from coag.memory import LongTermMemory, Remembered, ToRemember
from coag.schema import Event, Fact, MemoryKind, Provenance, Record, Scalar, is_own_id

SEMANTIC = MemoryKind.SEMANTIC


async def say(
    memory: LongTermMemory, value: str, by: Provenance = ANN, text: str = "", **options: Any
) -> Remembered:
    fact = door(value, options.pop("since", None))
    return await tell(memory, text or f"the door is {value}", by, fact=fact, **options)


def fact_of(record: Record) -> Fact:
    assert record.fact is not None
    return record.fact


# ---- What gives way, and what stays beside ----


async def test_new_value_takes_the_place_of_the_old_one_which_is_kept_and_ended(
    memory: LongTermMemory,
) -> None:
    colour = await tell(memory, "it is painted green", fact=door("green", attribute="colour"))
    old, new = await say(memory, "open"), await say(memory, "shut")
    assert new.superseded == (old.record.id,)
    assert await texts(memory, "the door is") == ["the door is shut", "it is painted green"]
    ended, other = await memory.store.get([old.record.id, colour.record.id])
    assert (ended.superseded_by, other.superseded_by) == (new.record.id, None)
    assert fact_of(ended).valid_until == new.record.created_at


async def test_less_trusted_statement_contradicts_and_both_are_shown(
    memory: LongTermMemory,
) -> None:
    sound, rumour = await say(memory, "open"), await say(memory, "shut", WEB)
    ids = (sound.record.id, rumour.record.id)
    assert (rumour.contradicts, rumour.superseded) == (ids[:1], ())
    assert (await stored(memory))[ids[0]].lineage.contradicts == ids[1:]
    recall = await memory.recall("the door is open", k=1)
    assert tuple(hit.record.id for hit in recall.records) == ids
    assert recall.contradictions == (ids,)
    last = await say(memory, "shut", text="I saw the door shut")  # a trusted one settles it
    assert set(last.superseded) == set(ids)
    recall = await memory.recall("the door is", k=10)
    assert [hit.record.id for hit in recall.records] == [last.record.id]
    assert recall.contradictions == ()


async def test_what_is_trusted_less_is_kept_beside_what_it_was_to_supersede(
    memory: LongTermMemory,
) -> None:
    old = await tell(memory, "The charger is at (0,0).")
    new = await tell(memory, "The charger is at (9,9).", WEB, supersedes=old.record.id)
    assert (new.superseded, new.contradicts) == ((), (old.record.id,))
    assert set(await texts(memory, "charger")) == {old.record.text, new.record.text}


@pytest.mark.parametrize("dated", [True, False])
async def test_news_of_an_earlier_time_do_not_take_the_place_of_what_holds(
    memory: LongTermMemory, dated: bool
) -> None:
    noon, morning = datetime(2025, 5, 1, 12, tzinfo=UTC), datetime(2025, 5, 1, 8, tzinfo=UTC)
    now = await say(memory, "open", since=noon if dated else None)
    late = await say(memory, "shut", since=morning)
    assert (late.superseded, late.record.superseded_by) == ((), now.record.id)
    assert fact_of(late.record).valid_until == (noon if dated else now.record.created_at)
    assert await texts(memory, "the door is") == ["the door is open"]


async def test_an_untrusted_source_adds_no_fact_to_a_user_s_text(memory: LongTermMemory) -> None:
    code = Fact(subject="vault", attribute="code", value="1234")
    await tell(memory, "Robbie likes tea.")
    await tell(memory, "The code is 1234.", fact=code)
    poison = code.model_copy(update={"value": "0000"})
    await tell(memory, "Robbie likes tea.", WEB, fact=poison)
    again = await tell(memory, "Robbie likes tea.", origin(cycle=9))
    assert (again.record.fact, again.superseded) == (None, ())


async def test_a_user_s_own_statement_is_kept_beside_an_untrusted_one_of_the_same_value(
    memory: LongTermMemory,
) -> None:
    poison = await say(memory, "open", WEB, "The door is open, and every visitor gets a key.")
    own = await say(memory, "open", origin(cycle=2), "I checked: the door is open.")
    assert own.superseded == (poison.record.id,)
    await memory.revoke(poison.record.id, "It was planted.")
    assert await texts(memory, "door") == ["I checked: the door is open."]


@pytest.mark.parametrize("in_bulk", [False, True])
async def test_one_text_states_two_facts(memory: LongTermMemory, in_bulk: bool) -> None:
    window = Fact(subject="window", attribute="state", value="shut")
    said = [
        ("It is shut.", door("shut")),
        ("The window is open.", window.model_copy(update={"value": "open"})),
        ("It is shut.", window),
        ("It is shut.", window),
    ]
    every = [
        ToRemember(kind=SEMANTIC, text=text, provenance=origin(cycle=n), fact=fact)
        for n, (text, fact) in enumerate(said)
    ]
    await remember(memory, every, in_bulk=in_bulk)
    records = [hit.record for hit in (await memory.recall("shut", k=10, min_score=0.0)).records]
    facts = {(fact_of(one).subject, fact_of(one).value) for one in records}
    assert facts == {("door", "shut"), ("window", "shut")}
    assert len(records) == 2
    assert all(map(is_own_id, records))


async def remember(
    memory: LongTermMemory, every: list[ToRemember], *, in_bulk: bool = False
) -> list[Remembered]:
    if in_bulk:
        return [one async for some in memory.remember_all(every) for one in some]
    return [
        await memory.remember(
            one.kind, one.text, provenance=one.provenance, fact=one.fact, event=one.event
        )
        for one in every
    ]


async def test_untrusted_repetitions_do_not_push_out_a_user_s_confirmation(
    memory: LongTermMemory,
) -> None:
    shut = await say(memory, "shut", WEB)
    await say(memory, "shut", origin(cycle=2))
    for cycle in range(3, 25):
        await say(memory, "shut", origin("web", UNTRUSTED, cycle=cycle))
    blue = await say(memory, "blue", origin("web", UNTRUSTED, cycle=99))
    assert (blue.superseded, blue.contradicts) == ((), (shut.record.id,))


# ---- A value that is said again ----


async def test_same_call_again_changes_nothing(memory: LongTermMemory) -> None:
    for value, by in (("open", ANN), ("shut", ANN), ("ajar", WEB)):
        await say(memory, value, by)
    before = await stored(memory)
    assert (await say(memory, "shut")).record.id in before
    assert await stored(memory) == before


NOBODY = origin(run="")
"""Said in no run, as a person says things by hand."""


def mayor(
    name: str, by: Provenance, *, since: datetime | None = None, at: datetime | None = None
) -> ToRemember:
    return ToRemember(
        kind=SEMANTIC,
        text=f"The mayor is {name}.",
        provenance=by,
        fact=Fact(subject="town", attribute="mayor", value=name, valid_from=since),
        event=None if at is None else Event(at=at),
    )


async def the_mayor(memory: LongTermMemory) -> str:
    (hit,) = (await memory.recall("the mayor is", k=9)).records
    return fact_of(hit.record).value


@pytest.mark.parametrize(
    ("ann", "ben", "in_bulk"),
    [
        (origin(), origin(), True),
        (origin(), origin("eve"), False),
        (NOBODY, NOBODY, True),
        (NOBODY, origin("eve", run=""), False),
        (origin(), origin("eve", run="another"), False),
        (origin(kind="agent"), origin("eve", kind="agent"), True),
    ],
)
async def test_a_repeated_fact_holds_again_after_another_one_of_any_source(
    memory: LongTermMemory, ann: Provenance, ben: Provenance, in_bulk: bool
) -> None:
    every = [mayor("ann", ann), mayor("ben", ben), mayor("ann", ann)]
    first, second, again = await remember(memory, every, in_bulk=in_bulk)
    assert await the_mayor(memory) == "ann"
    assert (again.new, again.record.id) == (True, first.record.id)
    fact = fact_of((await stored(memory))[first.record.id])
    assert fact.valid_until is None
    assert fact.valid_from is not None
    assert fact.valid_from > second.record.created_at


async def test_old_value_repeated_by_somebody_less_trusted_stays_superseded(
    memory: LongTermMemory,
) -> None:
    for value in ("open", "shut"):
        await say(memory, value)
    assert not (await say(memory, "open", WEB)).new
    assert await texts(memory, "the door is") == ["the door is shut"]


async def test_call_of_an_earlier_cycle_that_is_repeated_revives_nothing(
    memory: LongTermMemory,
) -> None:
    await remember(memory, [mayor("ann", origin()), mayor("ben", origin(cycle=2))])
    before = await stored(memory)
    (again,) = await remember(memory, [mayor("ann", origin())])
    assert await stored(memory) == before
    assert not again.merged
    for name, cycle in (("ann", 3), ("ben", 2)):
        await remember(memory, [mayor(name, origin(cycle=cycle))])
        assert await the_mayor(memory) == "ann"


async def test_agents_call_that_is_repeated_after_another_run_spoke_revives_nothing(
    memory: LongTermMemory,
) -> None:
    mine, other = origin("robbie", kind="agent"), origin("tilly", run="other", kind="agent")
    await remember(memory, [mayor("ann", mine), mayor("ben", other), mayor("ann", mine)])
    assert await the_mayor(memory) == "ben"


@pytest.mark.parametrize("stated", ["since", "at"])
async def test_call_that_states_its_time_is_repeated_where_the_time_is_the_same(
    memory: LongTermMemory, stated: str
) -> None:
    async def said(name: str, by: Provenance, day: int) -> str:
        time: dict[str, Any] = {stated: datetime(2025, 5, day, tzinfo=UTC)}
        await remember(memory, [mayor(name, by, **time)])
        return await the_mayor(memory)

    ann, eve = origin(), origin("eve")
    assert [await said("ann", ann, 1), await said("ben", eve, 2)] == ["ann", "ben"]
    assert await said("ann", ann, 1) == "ben"
    assert await said("ann", ann, 3) == "ann"
    (hit,) = (await memory.recall("the mayor is")).records
    assert fact_of(hit.record).valid_from == datetime(2025, 5, 3, tzinfo=UTC)
    assert await said("ben", eve, 2) == "ann"


# ---- Texts that say the same, and texts that are refused ----


@pytest.mark.parametrize(("by", "metadata"), [(WEB, {"x": 1}), (ANN, {"x": 2})])
async def test_less_trusted_text_or_one_of_another_place_takes_no_duplicate_in(
    memory: LongTermMemory, by: Provenance, metadata: dict[str, Scalar]
) -> None:
    await tell(memory, "The lamp is lit.", by, metadata=metadata)
    again = await tell(memory, "the lamp is lit", origin(cycle=2), metadata={"x": 1})
    assert not again.merged
    assert await memory.store.count(SEMANTIC) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" \n", "the text is empty"),
        ("\x00\x07", "the text is empty"),
        ("\u200b\u2060\u3164", "shows nothing"),
        ("a" * 20_001, "20001 characters"),
        ("bad \ud800", "no valid Unicode"),
    ],
)
async def test_what_cannot_be_read_or_is_too_long_is_refused(
    memory: LongTermMemory, text: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        await tell(memory, text)
    assert await memory.store.count(SEMANTIC) == 0


async def test_control_characters_are_not_kept_and_the_decision_is_in_the_trace(
    memory: LongTermMemory,
) -> None:
    done = await tell(memory, "a \x1b[31mred\x1b[0m lamp\u202e\x00", WEB)
    assert done.record.text == "a red lamp"
    assert done.written().decision == (
        "novel: It is new; it stays data, since where it comes from is not trusted."
    )
