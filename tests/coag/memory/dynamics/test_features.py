"""What the rules find in a text, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coag.memory.dynamics.features import RULES, WITH_NAMES, ContentFeatures, features_of
from coag.schema import Mood

KINDS = (
    "novelty",
    "procedure",
    "emotion",
    "social",
    "cooperation",
    "ethical",
    "contradiction",
    "commitment",
)


ALL_PATTERNS = [rule for _, rule in (*RULES.values(), *WITH_NAMES.values())]


def searched_for(text: str) -> set[str]:
    """The kinds whose pattern a text has, whatever words it is made of."""
    line = " ".join(text.split()).replace("\u2019", "'")
    named = {name for name, (_, rule) in WITH_NAMES.items() if rule.search(line)}
    return named | {name for name, (_, rule) in RULES.items() if rule.search(line.lower())}


def found_in(text: str) -> set[str]:
    values = features_of(text)._asdict()
    return {kind for kind in KINDS if values[kind]}


@pytest.mark.parametrize(
    "text",
    [
        "I just got home",
        "No, thanks.",
        "a new lamp",
        "Call me",
        "It will rain",
        "They met expectations.",
        "The help desk opens at nine.",
        "Please lie down.",
        "Turn right at the trade fair.",
        "I never eat fish.",
        "The parcel is in the kitchen.",
        "",
        "Der Hund schläft.",
    ],
)
def test_what_is_said_every_day_has_no_features(text: str) -> None:
    assert found_in(text) == set()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("For the first time in years the lake froze.", "novelty"),
        ("I have never seen such a bird.", "novelty"),
        ("She had a new idea.", "novelty"),
        ("How to reset the router", "procedure"),
        ("Before you open the valve, always check the gauge.", "procedure"),
        ("First, boil the water, then add the rice.", "procedure"),
        ("I was terrified", "emotion"),
        ("We love this town", "emotion"),
        ("My sister moved out.", "social"),
        ("Ann's old boss retired.", "social"),
        ("I met Bob at the station.", "social"),
        ("Bob helped me move.", "cooperation"),
        ("We split the bill with them.", "cooperation"),
        ("He lied to the inspector.", "ethical"),
        ("It's wrong to read her letters.", "ethical"),
        ("That isn\u2019t fair.", "ethical"),
        ("No, it's Tuesday.", "contradiction"),
        ("That\u2019s not true.", "contradiction"),
        ("She no longer works there.", "contradiction"),
        ("Correction: the train leaves at six.", "contradiction"),
        ("I'll call you tomorrow.", "commitment"),
        ("The report is due on Friday.", "commitment"),
        ("We promised to be there.", "commitment"),
        ("I owe Ann ten euros.", "commitment"),
    ],
)
def test_each_kind_of_content_is_found_by_its_phrases(text: str, kind: str) -> None:
    assert kind in found_in(text)


@pytest.mark.parametrize("word", ["terrified", "TERRIFIED", "horrified", "furious", "ecstatic"])
def test_the_strongest_feelings_are_feelings_and_stir(word: str) -> None:
    found = features_of(f"She was {word}.")
    assert found.emotion == 1.0
    assert found.arousal > 0.4


def test_relevance_is_for_somebody_else_to_say() -> None:
    assert features_of("the most relevant text of all").relevance == 0.5


def test_an_appraisal_gives_sentiment_and_arousal_and_without_one_there_is_no_sentiment() -> None:
    text = "I hate it"
    assert features_of(text).sentiment == 0.0
    found = features_of(text, lambda _: Mood(valence=-0.4, arousal=0.3))
    assert (found.sentiment, found.arousal) == (-0.4, 0.3)


def test_an_appraisal_that_gives_no_mood_is_named() -> None:
    def broken(text: str) -> Any:
        return -0.4

    with pytest.raises(TypeError, match=r"-0\.4; it must give a Mood"):
        features_of("I hate it", broken)


@settings(max_examples=500)
@given(st.sampled_from(ALL_PATTERNS).flatmap(st.from_regex))
def test_each_way_to_say_a_thing_has_a_word_by_which_its_rule_is_looked_for(text: str) -> None:
    assert found_in(text) == searched_for(text)


@given(st.text(max_size=300))
def test_any_text_has_features_in_range(text: str) -> None:
    found = features_of(text)
    least = ContentFeatures._make(0.0 for _ in found)._replace(sentiment=-1.0)
    assert all(low <= value <= 1.0 for low, value in zip(least, found, strict=True))


@pytest.mark.parametrize(
    "part", ["Before you go ", "first, a b c ", "not a ", "used to ", "I have to x "]
)
def test_of_a_long_text_only_the_beginning_is_looked_at(part: str) -> None:
    assert features_of(part * 20_000) == features_of((part * 20_000)[:4_000])
