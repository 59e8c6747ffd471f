"""Encoding: what makes a record strong, and which are flashbulbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from kits.record_states import (
    COMPANION,
    NOW,
    PLAIN,
    days_later,
    features,
    moods,
    settings,
    shares,
    times,
    traits,
)

from coag.memory.dynamics import (
    Forgetting,
    MemoryDynamicsSettings,
    RecordState,
    Traits,
    encode,
    has_faded,
    strength_now,
)
from coag.memory.dynamics.appraisal import AT_REST
from coag.memory.dynamics.encoding import attention, yerkes_dodson
from coag.memory.dynamics.features import ContentFeatures
from coag.memory.dynamics.forgetting import neutral_stability
from coag.schema import Mood

STRONG = ContentFeatures(sentiment=-1.0, arousal=1.0, emotion=1.0)


def encoded(content: ContentFeatures | None = None, **options: Any) -> RecordState:
    options.setdefault("settings", COMPANION)
    return encode("r", content or ContentFeatures(), at=NOW, **options)


def test_a_neutral_record_begins_at_half_strength_and_neutral_stability() -> None:
    for settings_ in (COMPANION, PLAIN):
        state = encoded(settings=settings_)
        assert state.strength == 0.5
        assert state.stability == pytest.approx(neutral_stability(settings_))
    assert (state.encoded_at, state.used_at, state.heard_at) == (NOW, NOW, NOW)
    assert (state.uses, state.flashbulb, state.exempt) == (0, False, False)


@given(features(), traits(), moods(), shares(), settings(), times())
def test_all_values_stay_in_range_whatever_is_encoded(
    content: ContentFeatures,
    who: Traits,
    mood: Mood,
    importance: float,
    how: MemoryDynamicsSettings,
    at: float,
) -> None:
    state = encode("r", content, at=at, settings=how, traits=who, mood=mood, importance=importance)
    assert how.forgetting is not None
    assert 0.0 < state.strength <= 1.0
    assert strength_now(state, at, how) > how.forgetting.floor
    most = max(how.forgetting.ceiling, neutral_stability(how))
    assert 0.0 < state.stability <= most < float("inf")
    assert -1.0 <= state.valence <= 1.0
    assert 0.0 <= state.arousal <= 1.0
    assert -1.0 <= state.dominance <= 1.0
    assert state.flashbulb == (state.intensity > 0.8)
    assert 0.0 <= attention(content, importance, who) <= 1.0


@pytest.mark.parametrize(
    ("trait", "feature"),
    [
        ("openness", "novelty"),
        ("conscientiousness", "procedure"),
        ("conscientiousness", "commitment"),
        ("emotionality", "emotion"),
        ("extraversion", "social"),
        ("agreeableness", "social"),
        ("agreeableness", "cooperation"),
        ("honesty", "ethical"),
    ],
)
def test_each_trait_strengthens_the_content_that_it_cares_for(trait: str, feature: str) -> None:
    def strength(high: float, content: Mapping[str, float]) -> float:
        # The other of the two traits that social content uses must not stand in for this one.
        who = Traits.model_validate({"extraversion": 0.0, "agreeableness": 0.0, trait: high})
        return encoded(ContentFeatures(**content), traits=who).strength

    assert strength(1.0, {feature: 1.0}) > strength(0.5, {feature: 1.0})
    assert strength(0.5, {feature: 1.0}) > strength(0.0, {feature: 1.0})
    assert strength(1.0, {}) == strength(0.0, {}) == 0.5


@pytest.mark.parametrize(
    "feature", [name for name in ContentFeatures._fields if name not in ("sentiment",)]
)
def test_each_feature_makes_a_record_stronger_and_more_stable_by_its_degree(feature: str) -> None:
    sad = {"sentiment": -0.5}  # arousal counts where there is something to be aroused about
    least, some, most = (
        encoded(ContentFeatures(**{feature: degree, **sad})) for degree in (0.0, 0.5, 1.0)
    )
    assert least.strength < some.strength < most.strength
    assert least.stability < some.stability < most.stability


def test_importance_counts_as_attention_and_never_as_joy() -> None:
    high, low = encoded(importance=0.85), encoded(importance=0.1)
    assert high.strength > 0.5 > low.strength
    assert high.valence == low.valence == 0.0
    assert (high.importance, low.importance) == (0.85, 0.1)


def test_learning_is_best_at_medium_arousal_and_alike_on_both_sides_of_it() -> None:
    assert yerkes_dodson(0.5) == 1.0
    assert yerkes_dodson(0.3) == pytest.approx(yerkes_dodson(0.7))
    assert yerkes_dodson(0.0) == yerkes_dodson(1.0) == 0.3
    frantic = Mood(valence=0.0, arousal=0.9)
    assert encoded(mood=frantic).strength < encoded(mood=AT_REST).strength


def test_a_record_takes_its_feeling_from_the_text_and_the_mood_where_there_is_room() -> None:
    glad = Mood(valence=1.0, arousal=0.6, dominance=0.7)
    assert encoded(mood=glad).valence == pytest.approx(0.3)
    assert encoded(mood=glad).arousal == pytest.approx(0.6)
    assert encoded(mood=glad).dominance == 0.7
    terrible = encoded(STRONG, mood=glad)
    assert (terrible.valence, terrible.arousal) == (-1.0, 1.0)


def test_a_calm_mood_makes_no_record_less_aroused_than_its_text() -> None:
    calm = Mood(valence=0.0, arousal=0.0)
    assert encoded(ContentFeatures(arousal=0.6), mood=calm).arousal == pytest.approx(0.6)
    assert encoded(mood=calm).arousal == 0.0


def test_what_fits_the_mood_is_learned_better() -> None:
    pleased = Mood(valence=0.8, arousal=0.5)
    good, bad = (encoded(ContentFeatures(sentiment=s), mood=pleased) for s in (0.5, -0.5))
    assert good.strength > bad.strength


def test_the_emotional_keep_feelings_better() -> None:
    content = ContentFeatures(sentiment=-0.6, arousal=0.6)
    strengths = [encoded(content, traits=Traits(emotionality=e)).strength for e in (0.0, 0.5, 1.0)]
    assert strengths == sorted(strengths)
    assert strengths[0] < strengths[2]


def test_a_flashbulb_is_twice_as_strong_and_five_times_as_stable_and_says_so() -> None:
    below = ContentFeatures(sentiment=0.8, arousal=1.0, relevance=0.0)
    above = ContentFeatures(sentiment=0.801, arousal=1.0, relevance=0.0)
    ordinary, flash = encoded(below), encoded(above)
    assert (ordinary.flashbulb, flash.flashbulb, encoded(STRONG).flashbulb) == (False, True, True)
    assert flash.strength == pytest.approx(2 * ordinary.strength, rel=0.01)
    assert flash.stability > 5 * ordinary.stability


def test_the_most_frantic_flashbulb_is_as_strong_as_a_calm_one() -> None:
    frantic, awake = (
        encoded(STRONG, mood=Mood(valence=-0.5, arousal=arousal)) for arousal in (1.0, 0.5)
    )
    assert frantic.strength >= awake.strength == 1.0


def test_a_record_that_is_recalled_often_is_no_flashbulb() -> None:
    from coag.memory.dynamics import used

    state = encoded(ContentFeatures(emotion=1.0, sentiment=0.3))
    for day in range(20):
        state = used(state, days_later(day), COMPANION)
    assert (state.strength, state.flashbulb) == (1.0, False)


def test_a_ceiling_below_retention_leaves_retention_as_it_is() -> None:
    how = MemoryDynamicsSettings(forgetting=Forgetting(retention=400.0, ceiling=30.0))
    state = encoded(settings=how)
    assert not has_faded(state, days_later(399), how)
    assert has_faded(state, days_later(401), how)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("valence", float("nan")),
        ("valence", -1.1),
        ("arousal", -0.5),
        ("arousal", float("inf")),
        ("dominance", float("nan")),
        ("dominance", 2.0),
    ],
)
def test_moods_out_of_range_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{field}[\s\S]*{value}"):
        Mood.model_validate({"valence": 0.0, "arousal": 0.5, field: value})


def test_a_mood_of_an_earlier_version_has_no_dominance() -> None:
    assert Mood.model_validate({"valence": 0.1, "arousal": 0.2}).dominance == 0.0
