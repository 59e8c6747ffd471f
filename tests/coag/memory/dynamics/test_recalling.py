"""What recall does to memory: mood, rivals, the unasked, the tip of the tongue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.record_states import (
    COMPANION,
    NOW,
    PLAIN,
    days_later,
    encoded,
    moods,
    settings,
    state_of,
    traits,
)
from kits.remembered import remembered

from coag.memory.dynamics import (
    InvoluntaryRecall,
    MemoryDynamicsSettings,
    RecordState,
    RetrievalInducedForgetting,
    Traits,
    felt,
    has_faded,
)
from coag.memory.dynamics.forgetting import neutral_stability
from coag.memory.dynamics.recalling import (
    cue_of,
    moved_feeling,
    pick_involuntary,
    rivals,
    suppressed,
)
from coag.schema import Fact, Mood, RecalledRecord

SETTINGS_AND_STATES = settings().flatmap(lambda how: st.tuples(st.just(how), encoded(how)))
GLAD = Mood(valence=1.0, arousal=0.5, dominance=0.0)


def hit(id: str, score: float, text: str = "text", **fields: Any) -> RecalledRecord:
    record = remembered(text, **fields).model_copy(update={"id": id})
    return RecalledRecord(record=record, score=score)


# ---- Reconsolidation ----


def reconsolidated(
    state: RecordState, mood: Mood | None, how: MemoryDynamicsSettings, who: Traits | None = None
) -> RecordState:
    return state._replace(**moved_feeling(state, mood, how, who))


def test_a_recall_moves_the_feeling_by_5_percent_of_the_way_to_the_mood() -> None:
    state = state_of(valence=-0.6)
    after = reconsolidated(state, GLAD, COMPANION)
    assert after.valence == pytest.approx(-0.6 + 0.05 * 1.6)
    assert after.drift == pytest.approx(0.08)
    perspective = reconsolidated(state._replace(perspective=True), GLAD, COMPANION)
    assert perspective.drift == pytest.approx(0.04)


def test_the_emotional_drift_further() -> None:
    drifts = [
        reconsolidated(state_of(), GLAD, COMPANION, Traits(emotionality=e)).drift
        for e in (0.0, 0.5, 1.0)
    ]
    assert drifts == pytest.approx([0.025, 0.05, 0.075])


@given(SETTINGS_AND_STATES, st.lists(moods(), max_size=40), traits())
def test_drift_never_exceeds_its_cap_and_feelings_stay_in_range(
    one: tuple[MemoryDynamicsSettings, RecordState], lived: list[Mood], who: Traits
) -> None:
    how, first = one
    assert how.reconsolidation is not None
    state, moved = first, 0.0
    for mood in lived:
        before, state = state, reconsolidated(state, mood, how, who)
        moved += abs(state.valence - before.valence)
        moved += abs(state.arousal - before.arousal) + abs(state.dominance - before.dominance)
        assert before.drift <= state.drift <= how.reconsolidation.cap
        assert -1.0 <= state.valence <= 1.0
        assert 0.0 <= state.arousal <= 1.0
        assert -1.0 <= state.dominance <= 1.0
    assert moved <= how.reconsolidation.cap + 1e-9


def test_a_thousand_recalls_drift_to_the_cap_and_stop_there() -> None:
    state = state_of(valence=-1.0, arousal=0.9)
    for _ in range(1_000):
        state = reconsolidated(state, GLAD, COMPANION)
    assert state.drift == pytest.approx(0.4)
    assert state.valence < 0.0


def test_flashbulbs_do_not_drift_and_a_strong_record_that_is_none_does() -> None:
    flash, strong = state_of(flashbulb=True), state_of(strength=1.0)
    assert reconsolidated(flash, GLAD, COMPANION) == flash
    assert reconsolidated(strong, GLAD, COMPANION) != strong


def test_without_a_mood_or_switched_off_or_in_the_same_mood_nothing_drifts() -> None:
    state = state_of(arousal=0.5)
    assert reconsolidated(state, None, COMPANION) == state
    assert reconsolidated(state, GLAD, PLAIN) == state
    assert reconsolidated(state, Mood(valence=0.0, arousal=0.5), COMPANION) == state


# ---- Retrieval-induced forgetting ----


def unit(*vector: float) -> list[float]:
    length = math.hypot(*vector)
    return [one / length for one in vector]


VECTORS = {
    "kept": unit(1.0, 0.0),
    "likest": unit(2.0, 0.1),
    "alike": unit(1.0, 0.9),
    "just not": unit(0.69, 0.73),
    "other": unit(0.0, 1.0),
    "nothing": [0.0, 0.0],
}


def test_rivals_are_those_above_the_cosine_the_likest_first_and_not_the_first_that_were_found() -> (
    None
):
    others = ["other", "just not", "alike", "likest", "nothing", "no vector"]
    assert rivals(["kept"], others, VECTORS, COMPANION) == ("likest", "alike")
    assert rivals(["kept", "likest"], ["kept", "likest"], VECTORS, COMPANION) == ()
    assert rivals(["no vector"], others, VECTORS, COMPANION) == ()
    assert rivals(["kept"], others, VECTORS, PLAIN) == ()
    strict = RetrievalInducedForgetting(similarity=0.99)
    how = MemoryDynamicsSettings(retrieval_induced_forgetting=strict)
    assert rivals(["kept"], ["likest", "alike"], VECTORS, how) == ("likest",)
    many = {str(n): unit(1.0, n / 1_000) for n in range(20)}
    found = rivals(["0"], [str(n) for n in range(19, 0, -1)], many, COMPANION)
    assert found == ("1", "2", "3", "4", "5")


def test_a_rival_loses_12_percent_of_its_stability_and_fades_sooner() -> None:
    state = state_of()
    after = suppressed(state, COMPANION)
    assert after.stability == pytest.approx(0.88 * state.stability)
    assert has_faded(after, days_later(170), COMPANION)
    assert not has_faded(state, days_later(170), COMPANION)


def test_flashbulbs_and_exempt_records_are_not_suppressed_nor_is_anything_when_off() -> None:
    for kept in (state_of(flashbulb=True), state_of(exempt=True)):
        assert suppressed(kept, COMPANION) == kept
    assert suppressed(state_of(), PLAIN) == state_of()


@given(SETTINGS_AND_STATES, traits(), st.integers(0, 200))
def test_asking_often_never_erases_a_rival(
    one: tuple[MemoryDynamicsSettings, RecordState], who: Traits, often: int
) -> None:
    how, first = one
    state = first
    for _ in range(often):
        state = suppressed(state, how, who)
    assert min(first.stability, 0.1 * neutral_stability(how)) <= state.stability <= first.stability
    assert state.strength == first.strength


# ---- Involuntary recall ----

ALWAYS = COMPANION.model_copy(update={"involuntary_recall": InvoluntaryRecall(chance=1.0)})


def test_something_old_comes_unasked_in_8_of_100_recalls_by_the_seed() -> None:
    old = [state_of("old", encoded_at=days_later(-20), used_at=days_later(-20))]

    def came(seed: int) -> list[bool]:
        random = Random(seed)
        return [pick_involuntary(old, NOW, COMPANION, random) is not None for _ in range(2_000)]

    assert came(1) == came(1) != came(2)
    assert 0.06 < sum(came(1)) / 2_000 < 0.10


def test_what_is_young_or_faded_or_taken_out_does_not_come() -> None:
    long_ago = {"encoded_at": days_later(-400), "used_at": days_later(-400)}
    young = state_of(encoded_at=days_later(-13.9))
    faded = state_of(**long_ago)
    taken_out = state_of(**long_ago, exempt=True, faded_at=NOW)
    assert pick_involuntary([young, faded, taken_out], NOW, ALWAYS, Random(0)) is None
    exempt = state_of("exempt", **long_ago, exempt=True)
    assert pick_involuntary([young, exempt], NOW, ALWAYS, Random(0)) == exempt


def test_what_stirs_comes_more_often_and_what_does_not_comes_too() -> None:
    plain = state_of("plain", encoded_at=days_later(-20))
    stirring = plain._replace(record="stirring", valence=-0.5, arousal=0.6)
    random = Random(0)
    came = [pick_involuntary([plain, stirring], NOW, ALWAYS, random) for _ in range(2_000)]
    names = [state.record for state in came if state is not None]
    assert 0 < names.count("plain") < 0.1 * names.count("stirring")


def test_the_open_are_visited_more_often() -> None:
    old = [state_of(encoded_at=days_later(-20))]

    def visits(openness: float) -> int:
        random, who = Random(3), Traits(openness=openness)
        came = (pick_involuntary(old, NOW, COMPANION, random, who) for _ in range(2_000))
        return sum(state is not None for state in came)

    assert visits(0.0) < visits(0.5) < visits(1.0)


def test_memory_is_read_only_if_chance_wills_and_not_at_all_when_off() -> None:
    def unread() -> Iterator[RecordState]:
        raise AssertionError("was read")
        yield state_of()

    never = COMPANION.model_copy(update={"involuntary_recall": InvoluntaryRecall(chance=0.0)})
    assert pick_involuntary(unread(), NOW, never, Random(0)) is None
    untouched = Random(0)
    assert pick_involuntary(unread(), NOW, PLAIN, untouched) is None
    assert untouched.random() == Random(0).random()


# ---- Feeling of knowing ----


def test_what_scored_between_the_limits_is_felt_the_best_three_first() -> None:
    hits = [hit("low", 0.29), hit("b", 0.3), hit("a", 0.69), hit("c", 0.25), hit("high", 0.7)]
    assert [one.id for one in felt(hits, COMPANION)] == ["a", "b"]
    assert felt(hits, PLAIN) == []
    many = [hit(str(n), 0.4 + n / 100) for n in range(9)]
    assert [one.id for one in felt(many, COMPANION)] == ["8", "7", "6"]


def test_a_cue_says_what_a_record_is_about_and_not_what_it_says() -> None:
    fact = Fact(subject="the  boat", attribute="owner", value="Bob")
    (of_fact,) = felt([hit("f", 0.5, "The boat is Bob's", fact=fact)], COMPANION)
    assert of_fact.cue == "the boat owner"
    text = "We were at the harbour (in Lisbon) when the storm sank every boat."
    assert cue_of(hit("t", 0.5, text).record) == "harbour Lisbon storm sank"
    assert cue_of(hit("t", 0.5, "I was there", type="visit").record) == "visit"


def test_a_cue_is_short_and_steers_no_terminal() -> None:
    cue = cue_of(hit("t", 0.5, "\x1b[31mred " + "x" * 10_000).record)
    assert cue.startswith("red xxx")
    assert len(cue) == 60
