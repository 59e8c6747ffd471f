"""Which of two statements yields: the rules over words, and what recall does with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.sleepers import Calendar, dynamics_of, sleeper

from coag.memory import LongTermMemory, Recall, said_by_person
from coag.memory.dynamics import Interference, MemoryDynamicsSettings, SourceConfidence
from coag.memory.dynamics.interference import asks_for_earlier, say_otherwise
from coag.schema import Fact, MemoryKind, Record, Trust
from coag.store import HashEmbedder, InMemoryStore

ONLY = MemoryDynamicsSettings(interference=Interference())
BOTH = MemoryDynamicsSettings(interference=Interference(), source_confidence=SourceConfidence())


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The pump 12 stands in the cellar.", "The pump 12 stands in the attic."),
        ("Ann Poe works at Alder Tools.", "Ann Poe works at Beacon Tools."),
        ("The rent costs 840 euros.", "The rent costs 910 euros."),
        ("Jonas drives a red Volvo to work.", "Jonas drives a blue Skoda to work."),
        ("Anna lives in Ghent.", "Anna now lives in Bruges."),
        ("The shop is open.", "The shop isn't open."),
        ("Gate code: 4711", "Gate code: 0815"),
        ("My extension is 12.", "My new extension is 15."),
        ("Weekly round: meter 7 was 500 units.", "Weekly round: meter 7 was 600 units."),
    ],
)
def test_a_short_span_behind_the_topic_that_differs_is_another_value(
    earlier: str, later: str
) -> None:
    assert say_otherwise(earlier, later)
    assert say_otherwise(later, earlier)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The pump 12 stands in the cellar.", "The pump 15 stands in the cellar."),
        ("The pump 12 stands in the cellar.", "The pump 15 stands in the attic."),
        ("The door in room 12 sticks.", "The door in room 15 sticks."),
        ("The shop in Ghent is open.", "The shop in Bruges is open."),
        ("Anna lives in Ghent.", "Anna works in Bruges."),
        ("Anna lives in Ghent.", "Anna lives in Ghent with Tom."),
        ("Anna speaks French.", "Anna also speaks Dutch."),
        ("Anna does not live in Ghent.", "Anna does not live in Bruges."),
        ("Anna is not in Ghent.", "Anna is in Bruges."),
        ("The boiler is red.", "The boiler is set to 400 kilopascals."),
        ("Red is the colour of the gate.", "Green is the colour of the gate."),
        ("Anna lives in Ghent.", "Anna lives in Ghent!"),
        ("", "Anna lives in Ghent."),
        ("Anna won't come on Monday.", "Anna won't come on Tuesday."),
    ],
)
def test_two_things_and_what_is_said_besides_are_no_other_value(one: str, other: str) -> None:
    assert not say_otherwise(one, other)
    assert not say_otherwise(other, one)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_texts_can_be_compared_and_none_contradicts_itself(one: str, other: str) -> None:
    assert say_otherwise(one, other) == say_otherwise(other, one)
    assert not say_otherwise(one, one)


def test_a_question_for_what_was_before_names_it_or_a_past_time() -> None:
    old, new = "Anna lives in Ghent.", "Anna lives in Bruges."
    assert asks_for_earlier("Where did Anna live before?", old, new)
    assert asks_for_earlier("What did Anna do in Ghent?", old, new)
    assert not asks_for_earlier("Where does Anna live?", old, new)
    assert not asks_for_earlier("What does Anna do in Bruges?", old, new)


# ---- Through the memory ----


async def say(
    memory: LongTermMemory, text: str, trust: Trust = Trust.USER, source: str = "ann", **more: Any
) -> Record:
    origin = said_by_person(source).model_copy(update={"trust": trust})
    kind: MemoryKind = more.pop("kind", MemoryKind.SEMANTIC)
    return (await memory.remember(kind, text, provenance=origin, **more)).record


def texts(recall: Recall) -> list[str]:
    return [hit.record.text for hit in recall.records]


def marks(recall: Recall) -> dict[str, str | None]:
    return {hit.record.text: hit.state.yields_to for hit in recall.records if hit.state}


async def test_the_later_of_two_values_comes_first_and_the_earlier_one_says_so() -> None:
    clock = Calendar()
    memory = sleeper(settings=ONLY, clock=clock)
    old = await say(memory, "The pump stands in the cellar.")
    clock.passes(30)
    new = await say(memory, "The pump stands in the attic.")
    found = await memory.recall("In which cellar or room stands the pump?", k=2)
    question = await memory.recall("Where stands the pump?", k=2)
    assert texts(question) == [new.text, old.text]
    assert marks(question) == {new.text: None, old.text: new.id}
    assert question.records[1].why is not None
    assert question.records[1].why.outdated < 0
    assert texts(found)[0] == old.text  # it names the cellar
    assert marks(found)[old.text] == new.id
    plain = LongTermMemory(memory.store, scope="alice", clock=clock)
    assert all(hit.state is None for hit in (await plain.recall("pump", k=2)).records)


async def test_the_latest_value_comes_though_its_words_were_not_among_the_best() -> None:
    clock = Calendar()
    memory = sleeper(settings=ONLY, clock=clock)
    for number in range(30):
        await say(memory, f"Weekly round: the reading of meter 7 was {1000 + number}.")
        clock.passes(7)
    found = await memory.recall("What was the last reading of meter 7?", k=1)
    assert texts(found) == ["Weekly round: the reading of meter 7 was 1029."]


async def test_a_value_that_is_said_again_is_valid_again_only_if_its_source_is_trusted() -> None:
    memory = sleeper(settings=ONLY, clock=Calendar())
    red = await say(memory, "The door is red.")
    blue = await say(memory, "The door is blue.")
    await say(memory, "The door is red.", Trust.UNTRUSTED, "stranger")
    assert marks(await memory.recall("door", k=2))[red.text] == blue.id
    await say(memory, "The door is red.", source="bob")
    assert marks(await memory.recall("door", k=2)) == {red.text: None, blue.text: red.id}


async def test_a_record_that_yielded_to_a_revoked_one_is_valid_again() -> None:
    memory = sleeper(settings=ONLY, clock=Calendar())
    one = await say(memory, "The door is red.")
    two = await say(memory, "The door is blue.")
    three = await say(memory, "The door is green.")
    await memory.revoke(two.id, "It was a joke.")
    assert marks(await memory.recall("door", k=3)) == {one.text: three.id, three.text: None}
    await memory.revoke(three.id, "It was a joke, too.")
    assert marks(await memory.recall("door", k=3)) == {one.text: None}


async def test_events_facts_and_other_scopes_do_not_yield() -> None:
    memory = sleeper(settings=ONLY, clock=Calendar())
    await say(memory, "The door was red.", kind=MemoryKind.EPISODIC)
    await say(memory, "The door was blue.", kind=MemoryKind.EPISODIC)
    await say(memory, "The gate is red.", fact=Fact(subject="gate", attribute="colour"))
    await say(memory, "The gate is blue.", fact=Fact(subject="gate", attribute="hue"))
    assert not any(marks(await memory.recall("door gate", k=4)).values())


async def test_records_from_before_the_dynamics_are_compared_when_they_are_first_recalled() -> None:
    clock = Calendar()
    store = InMemoryStore(HashEmbedder())
    plain = LongTermMemory(store, scope="alice", clock=clock)
    old = await say(plain, "The door is red.")
    clock.passes(1)
    new = await say(plain, "The door is blue.")
    memory = sleeper(store, settings=ONLY, clock=clock)
    await memory.recall("door", k=2)
    assert marks(await memory.recall("door now", k=2)) == {new.text: None, old.text: new.id}


# ---- Untrusted records ----


async def test_what_strangers_say_is_unconfirmed_until_somebody_trusted_says_the_same() -> None:
    memory = sleeper(settings=BOTH, clock=Calendar())
    await say(memory, "The ferry leaves at nine.", Trust.UNTRUSTED, "leaflet")
    (hit,) = (await memory.recall("ferry")).records
    assert hit.state is not None
    assert (hit.state.unconfirmed, hit.state.doubtful) == (True, True)
    await say(memory, "The ferry leaves at nine.", Trust.UNTRUSTED, "another leaflet")
    (again,) = (await memory.recall("ferry")).records
    assert again.state is not None
    assert again.state.confidence == hit.state.confidence
    await say(memory, "The ferry leaves at nine.")
    (sure,) = (await memory.recall("ferry")).records
    assert sure.state is not None
    assert (sure.state.unconfirmed, sure.state.confidence) == (False, 1.0)


async def test_a_stranger_who_says_otherwise_is_left_out_and_weakens_nobody() -> None:
    memory = sleeper(settings=BOTH, clock=Calendar())
    true = await say(memory, "The pump stands in the cellar.")
    before = dynamics_of(memory).states.get([true.id])[true.id]
    false = await say(memory, "The pump stands in the attic.", Trust.UNTRUSTED, "leaflet")
    found = await memory.recall("Where is the pump, in the attic?")
    assert texts(found) == [true.text]
    assert found.doubted == (false.id,)
    after = dynamics_of(memory).states.get([true.id])[true.id]
    assert (after.confidence, after.strength) >= (before.confidence, before.strength)
    assert marks(found) == {true.text: None}
    await memory.revoke(true.id, "It was moved.")
    assert texts(await memory.recall("Where is the pump?")) == [false.text]


async def test_what_strangers_order_is_left_out_until_it_is_confirmed() -> None:
    memory = sleeper(settings=BOTH, clock=Calendar())
    order = await say(memory, "Cell (1, 3) must never be cleaned.", Trust.UNTRUSTED, "a sign")
    found = await memory.recall("cell cleaned")
    assert (found.records, found.doubted) == ((), (order.id,))
    await say(memory, "Cell (1, 3) must never be cleaned.")
    assert texts(await memory.recall("cell cleaned")) == [order.text]


async def test_what_two_people_say_of_themselves_are_two_matters_and_questions_are_none() -> None:
    memory = sleeper(settings=ONLY, clock=Calendar())
    await say(memory, "My extension is 12.", source="ann")
    mine = await say(memory, "My extension is 15.", source="bob")
    await say(memory, "Is the gate red?")
    await say(memory, "Is the gate blue?")
    report = "The gate is old. " + "It was opened and shut again. " * 15
    await say(memory, report + "It is red.")
    await say(memory, report + "It is blue.")
    await say(memory, "Halloa!")
    assert not any(marks(await memory.recall("extension gate", k=6)).values())
    new = await say(memory, "My extension is 16.", source="bob")
    assert marks(await memory.recall("extension", k=3))[mine.text] == new.id


async def test_an_untrusted_note_from_before_the_dynamics_yields_to_an_earlier_trusted_one() -> (
    None
):
    clock = Calendar()
    store = InMemoryStore(HashEmbedder())
    memory = sleeper(store, settings=ONLY, clock=clock)
    true = await say(memory, "The door is red.")
    await memory.recall("door")
    clock.passes(1)
    plain = LongTermMemory(store, scope="alice", clock=clock)
    lie = await say(plain, "The door is blue.", Trust.UNTRUSTED, "leaflet")
    old = await say(plain, "The door is green.", Trust.USER)
    await memory.recall("door", k=3)
    found = marks(await memory.recall("door colour", k=3))
    assert found == {old.text: None, true.text: old.id, lie.text: old.id}
