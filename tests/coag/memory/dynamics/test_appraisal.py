"""What a text feels like, by VADER and by its emphasis."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaderSentiment.vaderSentiment import (  # pyright: ignore[reportMissingTypeStubs]
    SentimentIntensityAnalyzer,
)

from coag.errors import ConfigurationError
from coag.memory.dynamics import encode
from coag.memory.dynamics.appraisal import VaderAppraisal, arousal_of
from coag.memory.dynamics.features import features_of

from kits.record_states import COMPANION, NOW  # isort: skip

APPRAISE = VaderAppraisal()
VADER: Any = cast("Any", SentimentIntensityAnalyzer)()
WORDS = ("the", "BUT", "not", "kind", "of", "least", "no", "very", "day.", "!!", "?", "\u2764")


def test_good_is_above_bad_and_negation_turns_it_around() -> None:
    good, bad, not_good = map(APPRAISE, ("It is great.", "It is horrible.", "It is not great."))
    assert good.valence > 0.5 > -0.5 > bad.valence
    assert not_good.valence < 0
    assert APPRAISE("The meeting is at three.").valence == 0.0
    assert APPRAISE("").arousal == 0.0


def test_emphasis_and_stirring_words_arouse() -> None:
    calm, emphatic = arousal_of("the house stands there"), arousal_of("the house stands there!!")
    shouted, burning = arousal_of("the HOUSE stands there"), arousal_of("the house is burning")
    assert calm == 0.0
    assert 0.0 < emphatic < burning
    assert 0.0 < shouted < 1.0
    assert arousal_of("HOUSE RULES") == 0.0


def test_a_blow_of_fate_is_a_flashbulb_and_a_bad_day_is_none() -> None:
    texts = (
        "She died in my arms. I am devastated and heartbroken.",
        "The bus was late and the coffee was bad.",
    )
    blow, bad_day = (
        encode("r", features_of(text, APPRAISE), at=NOW, settings=COMPANION) for text in texts
    )
    assert (blow.flashbulb, bad_day.flashbulb) == (True, False)


@given(st.lists(st.sampled_from([*WORDS, *VADER.lexicon]) | st.text(max_size=9), max_size=9))
def test_a_text_is_as_glad_or_sad_as_vader_says(words: list[str]) -> None:
    text = " ".join(words)
    assert APPRAISE(text).valence == VADER.polarity_scores(text)["compound"]


@given(st.text(max_size=200))
def test_any_text_is_appraised_within_range(text: str) -> None:
    mood = APPRAISE(text)
    assert -1.0 <= mood.valence <= 1.0
    assert 0.0 <= arousal_of(text) <= mood.arousal <= 1.0
    assert mood.dominance == 0.0


def test_of_a_long_text_only_the_beginning_is_appraised() -> None:
    assert APPRAISE("word " * 200 + "terrible " * 100_000).valence == 0.0


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vaderSentiment.vaderSentiment", None)
    with pytest.raises(ConfigurationError, match=r"coag\[mood\]"):
        VaderAppraisal()
