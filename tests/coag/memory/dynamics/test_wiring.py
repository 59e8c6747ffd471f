"""Each mechanism through the memory's public face: on, an output differs as the theory says."""

from __future__ import annotations

from typing import Any

import pytest
from kits.sleepers import Calendar, dynamics_of, note, sleeper, state_in

from coag.memory import LongTermMemory, Recall, Scopes, said_by_person
from coag.memory.consolidation import sleep
from coag.memory.dynamics import (
    FeelingOfKnowing,
    Forgetting,
    Gist,
    InvoluntaryRecall,
    MemoryDynamics,
    MemoryDynamicsSettings,
    Reconsolidation,
    RetrievalInducedForgetting,
    SchemaEncoding,
    SourceConfidence,
    Traits,
)
from coag.memory.dynamics.aging import TraitChange
from coag.schema import MemoryKind, Mood, Record, Trust
from coag.store import HashEmbedder, InMemoryStore, RecordStore

EPISODIC = MemoryKind.EPISODIC
SAD = Mood(valence=-0.8, arousal=0.6)
GLAD = Mood(valence=0.9, arousal=0.6)


def feels(text: str) -> Mood:
    """An appraisal that knows two words."""
    if "wept" in text:
        return SAD
    return GLAD if "laughed" in text else Mood(valence=0.0, arousal=0.2)


def memory_with(
    clock: Calendar,
    store: RecordStore | None = None,
    *,
    scope: str | Scopes = "ann",
    **settings: Any,
) -> LongTermMemory:
    """A memory in which only these mechanisms are at work."""
    how = MemoryDynamicsSettings(**settings)
    said = feels if how.mood else None
    return sleeper(store, settings=how, scope=scope, owner="ann", clock=clock, appraise=said)


def texts(recall: Recall) -> list[str]:
    return [hit.record.text for hit in recall.records]


# ---- Off ----


async def lived(memory: LongTermMemory) -> list[object]:
    """What a small life gives: writes, recalls, a revocation, and all that is stored then."""
    given: list[object] = []
    for number in range(12):
        given.append(await note(memory, f"Ann saw gull number {number} at the pier."))
    given.append(await note(memory, "Ann saw gull number 3 at the pier!"))
    given += [(await memory.recall("gull at the pier", k=4)) for _ in range(2)]
    one = await note(memory, "The pier is closed.")
    other = await note(memory, "So the gulls went.", derived_from=[one.id])
    given.append(await memory.revoke(one.id, "It was a joke."))
    given += [await memory.find(EPISODIC, other.id), await memory.history(one.id)]
    given.append(await memory.recall("closed pier"))
    given += [records async for records in memory.store.scan()]
    return [one.model_dump_json() if isinstance(one, Record) else repr(one) for one in given]


async def test_a_plain_memory_is_equal_to_the_byte_to_one_without_dynamics() -> None:
    clock = Calendar()
    without = LongTermMemory(InMemoryStore(HashEmbedder()), scope="ann", clock=clock)
    plain = memory_with(clock)
    assert await lived(plain) == await lived(without)
    assert dynamics_of(plain).states.count() == 0


# ---- Writing and forgetting ----


async def test_a_note_that_is_never_used_is_no_longer_recalled_and_one_that_is_used_stays() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting(retention=30))
    await note(memory, "The red bicycle stands in the shed.")
    await note(memory, "The blue kettle stands in the kitchen.")
    for _ in range(3):
        clock.passes(20)
        assert texts(await memory.recall("red bicycle", k=1)) == [
            "The red bicycle stands in the shed."
        ]
    clock.passes(10)
    found = await memory.recall("bicycle or kettle", k=2)
    assert texts(found) == ["The red bicycle stands in the shed."]
    assert 0 < found.records[0].state.strength < 1  # pyright: ignore[reportOptionalMemberAccess]
    assert len(await memory.store.get([found.records[0].record.id])) == 1
    without = LongTermMemory(memory.store, scope="ann", clock=clock)
    assert len((await without.recall("bicycle or kettle", k=2)).records) == 2


async def test_as_many_as_asked_for_come_where_faded_ones_are_in_front() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting(retention=30))
    for number in range(20):
        await note(memory, f"gull {number}")
    clock.passes(60)
    late = [await note(memory, f"A gull and many more words of no weight, {n}.") for n in range(3)]
    found = await memory.recall("gull", k=3)
    assert sorted(texts(found)) == sorted(one.text for one in late)


async def test_what_is_important_or_of_an_exempt_type_stays() -> None:
    clock = Calendar()
    memory = memory_with(
        clock, forgetting=Forgetting(retention=1, exempt_types=frozenset({"address"}))
    )
    await note(memory, "Ann lives in Pier Street.", type="address")
    await note(memory, "Ann waits in Pier Street.")
    clock.passes(100)
    assert texts(await memory.recall("Pier Street")) == ["Ann lives in Pier Street."]


async def test_the_stronger_of_two_that_answer_alike_comes_first() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting(retention=100, weight=0.2))
    await note(memory, "A gull sat on post one.")
    await note(memory, "A gull sat on post two.")
    clock.passes(50)
    await memory.recall("post one", k=1)
    clock.passes(1)
    await note(memory, "Nothing else happened.")
    assert texts(await memory.recall("gull sat on post", k=2))[0] == "A gull sat on post one."
    (hit, *_) = (await memory.recall("gull sat on post", k=2)).records
    assert hit.why is not None
    assert hit.why.strength > 0
    assert "strength" in hit.why.describe()


async def test_what_is_said_again_is_used_and_its_source_is_sure_again() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting(), source_confidence=SourceConfidence())
    first = await note(memory, "The shed is green.")
    clock.passes(100)
    before = state_in(memory, first)
    again = await note(memory, "The shed is green.")
    assert again.id == first.id
    after = state_in(memory, first)
    assert after.stability > before.stability
    assert after.uses == 1
    assert after.heard_at > before.heard_at


async def test_records_from_before_get_a_state_at_first_recall_and_are_not_forgotten() -> None:
    clock = Calendar()
    plain = LongTermMemory(InMemoryStore(HashEmbedder()), scope="ann", clock=clock)
    old = await note(plain, "The key lies under the mat.")
    clock.passes(1_000)
    memory = memory_with(clock, plain.store, forgetting=Forgetting(retention=30))
    (hit,) = (await memory.recall("key under the mat")).records
    assert hit.state is not None
    assert hit.state.age == pytest.approx(1_000)
    assert state_in(memory, old).uses == 1


async def test_the_same_answer_within_a_minute_is_one_recall() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting())
    one = await note(memory, "The key lies under the mat.")
    for _ in range(6):
        await memory.recall("key")
        clock.passes(0.0001)
    assert state_in(memory, one).uses == 1
    clock.passes(0.001)
    await memory.recall("key")
    assert state_in(memory, one).uses == 2


async def test_a_record_that_comes_because_it_contradicts_is_not_used() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting())
    from coag.schema import Fact

    def said(value: str, trust: Trust) -> dict[str, Any]:
        origin = said_by_person("ann").model_copy(update={"trust": trust, "source": value})
        fact = Fact(subject="door", attribute="colour", value=value)
        return {"provenance": origin, "fact": fact}

    sure = await memory.remember(MemoryKind.SEMANTIC, "The door is red.", **said("red", Trust.USER))
    rumour = await memory.remember(
        MemoryKind.SEMANTIC,
        "It was painted lately, they claim.",
        **said("blue", Trust.UNTRUSTED),
    )
    clock.passes(1)
    found = await memory.recall("door is red", k=1)
    assert len(found.records) == 2
    assert found.contradictions
    assert state_in(memory, sure.record).uses == 1
    assert state_in(memory, rumour.record).uses == 0
    assert all(hit.state is not None for hit in found.records)


# ---- The nine mechanisms ----


async def test_reconsolidation_moves_the_feeling_of_what_is_recalled_towards_the_mood() -> None:
    clock = Calendar()
    memory = memory_with(clock, mood=True, reconsolidation=Reconsolidation())
    still = memory_with(clock, mood=True)
    for each in (memory, still):
        one = await note(each, "Ann wept at the pier.")
        before = state_in(each, one).valence
        dynamics_of(each).feel(GLAD)
        for _ in range(5):
            await each.recall("wept at the pier")
            clock.passes(0.01)
        moved = state_in(each, one).valence - before
        assert moved > 0 if each is memory else moved == 0


async def test_recall_weakens_rivals_that_are_alike_and_no_others() -> None:
    clock = Calendar()
    memory = memory_with(
        clock,
        forgetting=Forgetting(),
        retrieval_induced_forgetting=RetrievalInducedForgetting(),
    )
    kept = await note(memory, "the old key of the shed hangs in the hall 1")
    rival = await note(memory, "the old key of the shed hangs in the hall 2")
    stranger = await note(memory, "a key")
    before = {one.id: state_in(memory, one).stability for one in (kept, rival, stranger)}
    (hit,) = (await memory.recall("old key of the shed hangs in the hall 1", k=1)).records
    assert hit.record.id == kept.id
    assert state_in(memory, rival).stability == pytest.approx(0.88 * before[rival.id])
    assert state_in(memory, stranger).stability == before[stranger.id]
    assert state_in(memory, kept).stability >= before[kept.id]


async def test_something_old_comes_unasked_now_and_then_and_only_to_whom_it_belongs() -> None:
    clock = Calendar()
    store = InMemoryStore(HashEmbedder())
    both = Scopes(own="team", reads=("ann",))
    memory = memory_with(clock, store, scope=both, involuntary_recall=InvoluntaryRecall(chance=0.5))
    await note(memory, "A storm took the pier.")
    secret = memory_with(clock, store, scope="bob", involuntary_recall=InvoluntaryRecall())
    for number in range(20):
        await note(secret, f"Bob's secret number {number}.")
    dynamics_of(memory).states.put(
        dynamics_of(secret).states.get([r.id async for s in store.scan() for r in s]).values()
    )
    clock.passes(20)
    came = [(await memory.recall("soup", k=1)).unasked for _ in range(60)]
    assert 20 < sum(map(len, came)) < 40
    assert {hit.record.text for some in came for hit in some} == {"A storm took the pier."}
    clock.passes(-19)
    assert not any([(await memory.recall("soup", k=1)).unasked for _ in range(20)])


async def test_what_was_found_and_not_kept_is_felt() -> None:
    clock = Calendar()
    memory = memory_with(clock, feeling_of_knowing=FeelingOfKnowing(low=0.1, high=0.99))
    await note(memory, "The key of the shed hangs in the hall.")
    await note(memory, "Of the key of the boathouse nobody knows anything in the hall.")
    found = await memory.recall("key of the shed hall", k=1)
    assert texts(found) == ["The key of the shed hangs in the hall."]
    assert [one.id for one in found.felt] == [
        hit.record.id
        for hit in (await memory.recall("key of the shed hall", k=2)).records
        if hit.record.id != found.records[0].record.id
    ]
    assert (await memory_with(clock, memory.store).recall("key of the shed hall", k=1)).felt == ()


async def test_after_a_sleep_recall_shows_the_gist_of_an_old_note_and_the_text_is_there() -> None:
    clock = Calendar()
    memory = memory_with(clock, gist=Gist(words=10))
    text = "Ann met Bob on 3 May. " + "They talked and walked and looked at the sea for long. " * 3
    one = await note(memory, text)
    clock.passes(61)
    await sleep(memory)
    (hit,) = (await memory.recall("Ann met Bob")).records
    assert hit.state is not None
    assert hit.state.gist == "Ann met Bob on 3 May."
    assert hit.record.text == one.text


async def test_what_fits_nothing_known_is_encoded_more_strongly_than_what_fits() -> None:
    clock = Calendar()
    memory = memory_with(clock, forgetting=Forgetting(), schema_encoding=SchemaEncoding())
    plain = memory_with(clock, forgetting=Forgetting())
    for each in (memory, plain):
        for number in range(6):
            await note(each, f"the ferry left the harbour on time today {number}")
        clock.passes(1)
        await sleep(each)
        usual = await note(each, "the ferry left the harbour on time today again")
        strange = await note(each, "a whale swallowed a lighthouse")
        difference = state_in(each, strange).strength - state_in(each, usual).strength
        assert difference > 0.1 if each is memory else difference == pytest.approx(0)


async def test_confidence_in_a_source_falls_and_recall_says_so() -> None:
    clock = Calendar()
    memory = memory_with(clock, source_confidence=SourceConfidence())
    await note(memory, "The ferry leaves at nine.")
    (fresh,) = (await memory.recall("ferry")).records
    clock.passes(120)
    (stale,) = (await memory.recall("ferry")).records
    assert fresh.state is not None
    assert stale.state is not None
    assert (fresh.state.confidence, fresh.state.doubtful) == (1.0, False)
    assert stale.state.confidence == pytest.approx(0.5)
    assert stale.state.doubtful


async def test_the_honest_doubt_their_own_conclusions_sooner() -> None:
    shown: list[list[float]] = []
    for honesty in (0.0, 0.5, 1.0):
        clock, who = Calendar(), Traits(honesty=honesty)
        memory = memory_with(clock, source_confidence=SourceConfidence(), traits=who)
        heard = await note(memory, "The ferry leaves at nine.")
        await note(memory, "So the ferry is early.", derived_from=[heard.id])
        clock.passes(30)
        found = {hit.record.id: hit.state for hit in (await memory.recall("ferry", k=2)).records}
        said = found.pop(heard.id)
        (concluded,) = found.values()
        assert said is not None
        assert concluded is not None
        shown.append([said.confidence, concluded.confidence])
    (said, *others), (low, middle, high) = zip(*shown, strict=True)
    assert others == [said, said]
    assert low > middle > high


def test_a_persona_changes_by_what_is_applied_and_finds_its_way_back() -> None:
    dynamics = MemoryDynamics(MemoryDynamicsSettings(traits=Traits(openness=0.3)), owner="ann")
    assert dynamics.traits == Traits(openness=0.3)
    warmer = TraitChange(
        trait="agreeableness", before=0.5, after=0.53, confidence=0.6, reason="much warmth"
    )
    proposal = dynamics.persona.propose([warmer], at=1.0)
    assert dynamics.traits == Traits(openness=0.3)
    dynamics.persona.apply(proposal.version)
    assert dynamics.traits == Traits(openness=0.3, agreeableness=0.53)
    refused = dynamics.persona.propose([warmer], at=2.0)
    assert dynamics.persona.refuse(refused.version).state == "refused"
    dynamics.persona.roll_back(0, at=3.0)
    assert dynamics.traits == Traits(openness=0.3)
    assert [one.state for one in dynamics.persona.versions()] == ["applied", "refused", "applied"]
    with pytest.raises(LookupError, match="refused already"):
        dynamics.persona.apply(refused.version)
    with pytest.raises(LookupError, match="never held"):
        dynamics.persona.roll_back(refused.version, at=4.0)
    with pytest.raises(LookupError, match="no version 9"):
        dynamics.persona.apply(9)
    with pytest.raises(ValueError, match="no change"):
        dynamics.persona.propose([], at=5.0)


# ---- Mood ----


def test_a_mood_returns_to_the_baseline_of_the_personality() -> None:
    clock = Calendar()
    warm = Traits(agreeableness=0.9)
    settings = MemoryDynamicsSettings(traits=warm, mood_half_life=1.0)
    dynamics = MemoryDynamics(settings, clock=clock)
    baseline = dynamics.mood
    assert baseline.valence > 0
    assert MemoryDynamics("plain").mood == Mood(valence=0.0, arousal=0.5)
    felt = dynamics.feel(SAD)
    assert felt == dynamics.mood == SAD
    clock.passes(1)
    assert dynamics.mood.valence == pytest.approx((SAD.valence + baseline.valence) / 2)
    clock.passes(100)
    assert dynamics.mood.valence == pytest.approx(baseline.valence)
    half = dynamics.feel(GLAD, 0.5)
    assert baseline.valence < half.valence < GLAD.valence
    with pytest.raises(ValueError, match="share must be"):
        dynamics.feel(GLAD, 2.0)


async def test_in_a_mood_what_feels_alike_comes_first() -> None:
    clock = Calendar()
    memory = memory_with(clock, mood=True, mood_weight=0.3)
    await note(memory, "Ann wept at the pier.")
    await note(memory, "Ann laughed at the pier.")
    dynamics_of(memory).feel(SAD)
    assert texts(await memory.recall("who was at that pier"))[0] == "Ann wept at the pier."
    dynamics_of(memory).feel(GLAD)
    found = await memory.recall("who was at that pier")
    assert texts(found)[0] == "Ann laughed at the pier."
    assert found.records[0].why is not None
    assert found.records[0].why.mood > 0
