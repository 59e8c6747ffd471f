"""What time does to memory: gists, confidence, feelings, schemata, persona."""

from __future__ import annotations

import re
from collections.abc import Callable
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
    settings,
    state_of,
    times,
    traits,
)
from kits.remembered import remembered
from kits.statements import ANN, DEVELOPER, ROBBIE, origin

from coag.errors import ConfigurationError
from coag.memory.dynamics import (
    FeelingOfKnowing,
    Gist,
    MemoryDynamicsSettings,
    RecordState,
    Traits,
    felt,
    gist_of,
    gisted,
    has_faded,
    heard,
    is_due_for_gist,
    persona_proposals,
    regulated,
    strength_now,
    usable_gist,
)
from coag.memory.dynamics.aging import SchemaFit, confidence_now, schema_fits, with_schema
from coag.memory.dynamics.recalling import suppressed
from coag.schema import Lineage, Provenance, RecalledRecord, Record

SETTINGS_AND_STATES = settings().flatmap(lambda how: st.tuples(st.just(how), encoded(how)))
PRESETS = ("assistant", "companion", "npc")


def words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


# ---- Gist ----

LONG = (
    "On the way we talked about this and that, as one does. The weather was neither warm nor "
    "cold. There were some clouds, and then there were fewer. Clara Novak said that the lease of "
    "the boat ends on 14 May 2027 and costs 1,250 euros. We walked on along the shore for a "
    "while, and somebody threw stones. She must never be given penicillin. It got late, and we "
    "went back by the same path that we had come by, talking of nothing much."
)


@pytest.mark.parametrize(
    ("text", "most", "gist"),
    [
        ("and so on " * 100, 50, f"{'and so on ' * 16}and so…"),
        ("one two three four five six", 5, "one two three four five…"),
        ("今日は雨。" * 2 + "会議は十五日。" * 2, 5, "今日は雨。"),
    ],
)
def test_a_long_sentence_is_cut_with_a_mark_and_a_script_without_blanks_has_a_gist(
    text: str, most: int, gist: str
) -> None:
    assert gist_of(text, MemoryDynamicsSettings(gist=Gist(words=most))) == gist


def test_a_gist_keeps_names_dates_amounts_and_what_binds_word_for_word() -> None:
    gist = gist_of(LONG, COMPANION)
    assert gist is not None
    assert len(words(gist)) <= 50
    assert "Clara Novak said that the lease of the boat ends on 14 May 2027 and costs 1,250" in gist
    assert "She must never be given penicillin." in gist
    assert "neither warm nor cold" not in gist


@pytest.mark.parametrize("text", ["", "Short.", "word " * 50, "日本語" * 16])
def test_a_text_that_is_short_stays_as_it_is(text: str) -> None:
    assert gist_of(text, COMPANION) is None


@given(
    st.lists(st.text(alphabet="aB1.!?;, 日。\n", max_size=30), max_size=40).map(" ".join),
    settings(),
)
def test_any_gist_is_shorter_than_its_text_and_made_of_its_words(
    text: str, how: MemoryDynamicsSettings
) -> None:
    gist = gist_of(text, how)
    assert how.gist is not None
    if gist is not None:
        assert 0 < len(gist) < len(text)
        letters = iter(re.sub(r"\s", "", text))
        assert all(letter in letters for letter in re.sub(r"[\s…]", "", gist))
        assert usable_gist(gist, text, how) is not None


@pytest.mark.parametrize("answer", ["", "  \n", LONG, LONG + " And more.", "word " * 60])
def test_what_a_model_says_is_no_gist_where_it_is_empty_or_long(answer: str) -> None:
    assert usable_gist(answer, LONG, COMPANION) is None


def test_what_a_model_says_is_a_gist_where_it_is_shorter_than_the_text() -> None:
    assert usable_gist(" The lease\nends. ", LONG, COMPANION) == "The lease ends."
    assert usable_gist("It is Bob's.", "Bob's", COMPANION) is None
    assert usable_gist("The lease ends.", LONG, PLAIN) is None
    assert gist_of(LONG, PLAIN) is None


def test_a_record_is_due_for_its_gist_once_it_is_old_and_seldom_used() -> None:
    state = state_of()
    assert not is_due_for_gist(state, days_later(59), COMPANION)
    assert is_due_for_gist(state, days_later(60), COMPANION)
    assert is_due_for_gist(state._replace(uses=1), days_later(60), COMPANION)
    for changed in (
        {"uses": 2},
        {"flashbulb": True},
        {"exempt": True},
        {"gist": "g"},
        {"faded_at": NOW},
    ):
        assert not is_due_for_gist(state._replace(**changed), days_later(60), COMPANION)
    assert not is_due_for_gist(state, days_later(60), PLAIN)


@pytest.mark.parametrize("preset", PRESETS)
def test_an_ordinary_record_is_due_for_its_gist_before_it_fades(preset: str) -> None:
    how = MemoryDynamicsSettings.preset(preset)
    assert how.gist is not None
    then = days_later(how.gist.age)
    assert is_due_for_gist(state_of(), then, how)
    assert not has_faded(state_of(), then, how)


def test_a_gist_weakens_a_record_by_a_fifth_once_and_an_empty_one_is_refused() -> None:
    after = gisted(state_of(), "g", days_later(60), COMPANION)
    assert (after.gist, after.gist_at) == ("g", days_later(60))
    assert after.strength == pytest.approx(0.8 * 0.5)
    assert gisted(after, "another", days_later(90), COMPANION) == after
    assert gisted(state_of(), "g", NOW, PLAIN) == state_of()
    with pytest.raises(ValueError, match=r"record 'r' is empty; keep the text"):
        gisted(state_of(), " \n", NOW, COMPANION)


# ---- Confidence in the source ----


def record_from(source: Provenance = ANN, **fields: Any) -> Record:
    return remembered("t", **fields).model_copy(update={"provenance": source})


def test_confidence_itself_falls_by_days_whether_or_not_anything_sleeps() -> None:
    left = [confidence_now(state_of(), record_from(), days_later(d), COMPANION) for d in (0, 120)]
    assert left == pytest.approx([1.0, 0.5])


def test_what_was_concluded_loses_confidence_sooner_than_what_was_said() -> None:
    concluded = record_from(ROBBIE)
    derived = record_from(lineage=Lineage(derived_from=("other",)))
    for one in (concluded, derived):
        assert confidence_now(state_of(), one, days_later(60), COMPANION) == pytest.approx(0.5)


def test_what_the_developer_wrote_stays_as_sure_as_it_was() -> None:
    written = record_from(origin("config", DEVELOPER))
    assert confidence_now(state_of(), written, days_later(1e5), COMPANION) == 1.0
    assert confidence_now(state_of(), record_from(), days_later(1e5), PLAIN) == 1.0


def test_hearing_it_again_restores_confidence_and_a_use_does_not() -> None:
    then = days_later(120)
    again = heard(state_of(confidence=0.8), then)
    assert confidence_now(again, record_from(), then, COMPANION) == 1.0
    recalled = state_of()._replace(used_at=then)
    assert confidence_now(recalled, record_from(), then, COMPANION) == pytest.approx(0.5)


@given(SETTINGS_AND_STATES, st.floats(0.0, 1.0), times(), st.floats(0.0, 1e12), traits())
def test_confidence_falls_with_time_stays_in_range_and_never_below_its_floor(
    one: tuple[MemoryDynamicsSettings, RecordState],
    confidence: float,
    now: float,
    later: float,
    who: Traits,
) -> None:
    how, state = one
    assert how.source_confidence is not None
    unsure = state._replace(confidence=confidence)
    for record in (record_from(), record_from(ROBBIE)):
        first, second = (confidence_now(unsure, record, at, how, who) for at in (now, now + later))
        assert 0.0 <= second <= first <= confidence
        assert second >= min(confidence, how.source_confidence.floor)


# ---- Emotion regulation ----


def test_what_stirs_too_much_loses_15_percent_of_its_intensity_and_stays_as_bad() -> None:
    state = state_of(valence=-0.9, arousal=0.95)
    after = regulated(state, COMPANION)
    assert after.intensity == pytest.approx(0.85 * state.intensity)
    assert after.valence == -0.9


def test_arousal_alone_is_enough_to_be_regulated_and_below_the_limit_nothing_is() -> None:
    assert regulated(state_of(valence=-0.3, arousal=0.95), COMPANION).arousal < 0.95
    for calm in (state_of(valence=-1.0, arousal=0.8), state_of()):
        assert regulated(calm, COMPANION) == calm
    assert regulated(state_of(arousal=1.0), PLAIN).arousal == 1.0


@given(SETTINGS_AND_STATES, traits(), st.integers(0, 50))
def test_no_number_of_sleeps_takes_feelings_out_of_range(
    one: tuple[MemoryDynamicsSettings, RecordState], who: Traits, sleeps: int
) -> None:
    how, first = one
    state = first
    for _ in range(sleeps):
        state = regulated(state, how, who)
    assert 0.0 <= state.arousal <= first.arousal
    assert state._replace(arousal=first.arousal) == first


# ---- Schemata ----

CENTROIDS = {"boats": [1.0, 0.0], "empty": [0.0, 0.0], "trees": [0.0, 5.0]}


def _fit(
    vector: list[float], how: MemoryDynamicsSettings = COMPANION, who: Traits | None = None
) -> SchemaFit | None:
    return schema_fits({"a": vector}, CENTROIDS, how, who).get("a")


def test_a_record_fits_the_nearest_cluster_from_the_cosine_on_and_is_kept_worse() -> None:
    fit = _fit([3.0, 1.0])
    assert fit is not None
    assert (fit.schema, fit.factor) == ("boats", 0.85)
    after = with_schema(state_of(), fit, COMPANION)
    assert after.strength == pytest.approx(0.425)
    assert after.stability < state_of().stability


def test_what_fits_nothing_known_is_kept_better() -> None:
    fit = _fit([1.0, 1.0])
    assert fit is not None
    assert (fit.schema, fit.factor) == ("", pytest.approx(1.3))
    after = with_schema(state_of(), fit, COMPANION)
    assert after.strength == pytest.approx(0.65)
    assert after.stability > state_of().stability
    assert with_schema(state_of(flashbulb=True), fit, COMPANION).stability > 5 * 78


@given(st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), max_size=8), traits())
def test_many_records_fit_as_each_of_them_does(vectors: list[list[float]], who: Traits) -> None:
    many = schema_fits(dict(zip("abcdefgh", vectors, strict=False)), CENTROIDS, COMPANION, who)
    for name, vector in zip("abcdefgh", vectors, strict=False):
        alone, here = _fit(vector, who=who), many.get(name)
        assert (alone is None) == (here is None)
        if alone is not None and here is not None:
            assert (here.schema, here.factor) == (alone.schema, alone.factor)


def test_where_nothing_is_known_nothing_is_new() -> None:
    assert schema_fits({"a": [1.0, 0.0]}, {}, COMPANION) == {}
    assert _fit([0.0, 0.0]) is None
    assert _fit([1.0, 0.0], PLAIN) is None
    assert with_schema(state_of(), None, COMPANION) == state_of()


@given(SETTINGS_AND_STATES, st.lists(st.floats(-1, 1), min_size=2, max_size=2), traits())
def test_no_schema_takes_a_record_below_the_floor_or_above_full_strength(
    one: tuple[MemoryDynamicsSettings, RecordState], vector: list[float], who: Traits
) -> None:
    how, state = one
    after = with_schema(state, _fit(vector, how, who), how)
    assert how.forgetting is not None
    assert how.forgetting.floor < strength_now(after, after.used_at, how) <= 1.0
    assert after.stability > 0.0


# ---- Persona ----

WARM = {"valence": 0.6, "arousal": 0.4}
LIVELY = {"valence": 0.6, "arousal": 0.6}
CONFLICT = {"valence": -0.6, "arousal": 0.6}
GLOOM = {"valence": -0.6, "arousal": 0.2}
STIRRING = {"valence": 0.0, "arousal": 0.9}
CALM = {"valence": 0.0, "arousal": 0.1}
ORDINARY = {"valence": 0.0, "arousal": 0.5}


def changes(lived: dict[str, float], many: int = 10, who: Traits | None = None) -> dict[str, float]:
    states = [state_of(str(n), **lived) for n in range(many)]
    proposals = persona_proposals(states, who or Traits(), COMPANION)
    return {one.trait: round(one.after - one.before, 4) for one in proposals}


@pytest.mark.parametrize(
    ("lived", "expected"),
    [
        (WARM, {"agreeableness": 0.05}),
        (LIVELY, {"agreeableness": 0.05, "extraversion": 0.05}),
        (CONFLICT, {"agreeableness": -0.05}),
        (GLOOM, {"extraversion": -0.05}),
        (STIRRING, {"emotionality": 0.05}),
        (CALM, {"emotionality": -0.05, "conscientiousness": 0.025}),
        (ORDINARY, {}),
    ],
)
def test_what_was_lived_through_moves_the_traits_that_it_speaks_to(
    lived: dict[str, float], expected: dict[str, float]
) -> None:
    assert changes(lived) == expected


def test_too_few_records_an_even_balance_and_a_trait_at_its_end_propose_nothing() -> None:
    assert changes(WARM, many=9) == {}
    assert changes(WARM, who=Traits(agreeableness=1.0)) == {}
    mixed = [state_of(str(n), **(WARM if n % 2 else CONFLICT)) for n in range(10)]
    assert persona_proposals(mixed, Traits(), COMPANION) == ()
    assert persona_proposals([state_of(**WARM)] * 10, Traits(), PLAIN) == ()


def test_a_proposal_says_on_how_many_records_it_is_based() -> None:
    (few,) = persona_proposals([state_of(**WARM)] * 10, Traits(), COMPANION)
    (many,) = persona_proposals([state_of(**WARM)] * 50, Traits(), COMPANION)
    assert few.reason == "100% warm, 0% conflict of 10 records"
    assert few.confidence < many.confidence == 1.0


@given(
    st.lists(st.tuples(st.floats(-1.0, 1.0), st.floats(0.0, 1.0)), max_size=60),
    settings(),
    traits(),
)
def test_traits_stay_in_range_and_at_most_two_move_by_the_largest_change(
    lived: list[tuple[float, float]],
    how: MemoryDynamicsSettings,
    who: Traits,
) -> None:
    assert how.persona_drift is not None
    states = [state_of(valence=valence, arousal=arousal) for valence, arousal in lived]
    proposals = persona_proposals(states, who, how)
    assert len(proposals) <= 2
    for one in proposals:
        assert 0.0 <= one.after <= 1.0
        assert 0.0 < abs(one.after - one.before) <= how.persona_drift.largest + 1e-12
        assert one.before == getattr(who, one.trait)
        assert 0.0 <= one.confidence <= 1.0


# ---- What the settings refuse ----


def test_limits_in_the_wrong_order_are_named() -> None:
    with pytest.raises(ValueError, match=r"low \(0\.8\) is above high \(0\.7\); exchange them"):
        FeelingOfKnowing(low=0.8)


@pytest.mark.parametrize(
    "wrong",
    [
        {"forgetting": {"retention": float("nan")}},
        {"forgetting": {"floor": 0.5}},
        {"gist": {"words": 4}},
        {"gist": {"weakening": 1.0}},
        {"schema_encoding": {"boost": float("inf")}},
        {"source_confidence": {"half_life": float("nan")}},
        {"emotion_regulation": {"rate": -0.1}},
        {"persona_drift": {"records": 0}},
        {"reconsolidation": {"cap": float("inf")}},
        {"traits": {"openness": 2}},
        {"mood_weight": float("nan")},
        {"gists": {}},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        MemoryDynamicsSettings.model_validate(wrong)


def test_a_preset_has_a_name_that_is_known_and_plain_alone_is_plain() -> None:
    with pytest.raises(
        ConfigurationError, match=r"no preset 'plane' .*known: 'plain', 'assistant'"
    ):
        MemoryDynamicsSettings.preset("plane")
    assert PLAIN.is_plain
    assert not any(MemoryDynamicsSettings.preset(name).is_plain for name in PRESETS)


# ---- Whose memory it is ----


def _strangeness(who: Traits) -> float:
    fit = _fit([1.0, 1.0], who=who)
    assert fit is not None
    return fit.factor


def _felt(who: Traits) -> int:
    hits = [RecalledRecord(record=record_from(), score=score) for score in (0.25, 0.35)]
    return len(felt(hits, COMPANION, who))


BY_TRAIT: dict[str, Callable[[Traits], float]] = {
    "honesty": lambda who: (
        -confidence_now(state_of(), record_from(ROBBIE), days_later(30), COMPANION, who)
    ),
    "agreeableness": lambda who: -regulated(state_of(arousal=1.0), COMPANION, who).arousal,
    "openness": _strangeness,
    "conscientiousness": lambda who: -suppressed(state_of(), COMPANION, who).stability,
    "extraversion": _felt,
}
"""What a mechanism does for somebody, by the trait that strengthens it."""


@pytest.mark.parametrize("trait", BY_TRAIT)
def test_the_more_of_a_trait_the_more_its_mechanism_does(trait: str) -> None:
    low, middle, high = (BY_TRAIT[trait](Traits(**{trait: share})) for share in (0.0, 0.5, 1.0))
    assert low < middle < high
