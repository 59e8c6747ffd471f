"""States of records, moods, traits and settings of their dynamics: plain ones, and any."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from coag.memory.dynamics import (
    DAY,
    EmotionRegulation,
    FeelingOfKnowing,
    Forgetting,
    Gist,
    InvoluntaryRecall,
    MemoryDynamicsSettings,
    PersonaDrift,
    Reconsolidation,
    RecordState,
    RetrievalInducedForgetting,
    SchemaEncoding,
    SourceConfidence,
    Traits,
    encode,
)
from coag.memory.dynamics.features import ContentFeatures
from coag.schema import Mood

NOW = 1_800_000_000.0
COMPANION = MemoryDynamicsSettings.preset("companion")
PLAIN = MemoryDynamicsSettings.preset("plain")
TRAITS = tuple(Traits.model_fields)


def state_of(record: str = "r", /, **changed: Any) -> RecordState:
    """A neutral record, encoded now, with a few things otherwise."""
    neutral = encode(record, ContentFeatures(), at=NOW, settings=COMPANION)
    return neutral._replace(**changed)


def days_later(days: float) -> float:
    return NOW + days * DAY


def shares() -> st.SearchStrategy[float]:
    return st.floats(0.0, 1.0)


def moods() -> st.SearchStrategy[Mood]:
    axis = st.floats(-1.0, 1.0)
    return st.builds(Mood, valence=axis, arousal=shares(), dominance=axis)


def traits() -> st.SearchStrategy[Traits]:
    return st.builds(Traits, **{name: shares() for name in TRAITS})


def features() -> st.SearchStrategy[ContentFeatures]:
    graded = {name: shares() for name in ContentFeatures._fields if name != "sentiment"}
    return st.builds(ContentFeatures, **graded, sentiment=st.floats(-1.0, 1.0))


def times() -> st.SearchStrategy[float]:
    """Whatever a clock may say."""
    return st.floats(-1e12, 1e12)


def settings() -> st.SearchStrategy[MemoryDynamicsSettings]:
    """Any settings that are allowed, every mechanism on."""
    below = st.floats(0.0, 1.0, exclude_max=True)
    return st.builds(
        MemoryDynamicsSettings,
        forgetting=st.builds(
            Forgetting,
            retention=st.floats(0.0001, 1_000_000.0),
            floor=st.floats(0.000001, 0.5, exclude_max=True),
            ceiling=st.floats(0.0001, 10_000_000.0),
        ),
        reconsolidation=st.builds(Reconsolidation, rate=shares(), cap=st.floats(0.0, 10.0)),
        retrieval_induced_forgetting=st.builds(RetrievalInducedForgetting, rate=below),
        involuntary_recall=st.builds(InvoluntaryRecall, chance=shares()),
        feeling_of_knowing=st.just(FeelingOfKnowing()),
        gist=st.builds(Gist, words=st.integers(5, 60), weakening=below),
        schema_encoding=st.builds(SchemaEncoding, boost=st.floats(0.0, 1e6), discount=below),
        source_confidence=st.builds(
            SourceConfidence, half_life=st.floats(0.0001, 1e9), floor=shares()
        ),
        emotion_regulation=st.builds(EmotionRegulation, arousal=shares(), rate=below),
        persona_drift=st.builds(PersonaDrift, records=st.integers(1, 12), largest=shares()),
    )


def encoded(how: MemoryDynamicsSettings) -> st.SearchStrategy[RecordState]:
    """Any record as these settings encode it, used and left alone as often as may be."""
    whole = st.builds(
        encode,
        st.just("r"),
        features(),
        at=times(),
        settings=st.just(how),
        traits=traits(),
        mood=moods(),
        importance=shares(),
    )

    def lived(state: RecordState, uses: int, perspective: bool) -> RecordState:
        return state._replace(uses=uses, perspective=perspective)

    return st.builds(lived, whole, st.integers(0, 1_000), st.booleans())
