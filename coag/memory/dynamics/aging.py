"""What time does to memory: gists, doubt about sources, calmer feelings, schemata, another persona.

Pure functions; each does nothing where its mechanism is None in the settings. At traits of 0.5,
or none, the numbers are those of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from coag._util.text import in_a_line
from coag.memory.facts import trust_of
from coag.memory.words import UNSPACED
from coag.schema import Record, Trust, Value

from .features import gives_orders
from .forgetting import stability_of
from .settings import MemoryDynamicsSettings, PersonaDrift, Traits
from .states import RecordState, days_since

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# ---- Gist ----

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - marks of other scripts
_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z]\w+")
_BINDING = re.compile(
    r"\b(?:not|never|no longer|only|unless|must|always|because|promised?|agreed|decided|died|born"
    r"|moved|married|allergic|prefers?|hates?|loves?|n't)\b",
    re.IGNORECASE,
)


def is_due_for_gist(state: RecordState, now: float, settings: MemoryDynamicsSettings) -> bool:
    """Whether a record is old and seldom used enough to keep its gist only.

    Flashbulbs, what is exempt, what has a gist already and what has faded keep their wording.
    """
    how = settings.gist
    if how is None or state.gist is not None or state.faded_at is not None:
        return False
    if state.flashbulb or state.exempt or state.uses >= how.uses:
        return False
    return days_since(state.encoded_at, now) >= how.age


def gist_of(text: str, settings: MemoryDynamicsSettings) -> str | None:
    """The sentences of a text that say most, in their order, word for word.

    A sentence counts more for numbers, names, words that bind ("never", "unless", "promised"),
    and for being the first. Where even one sentence is too long, its beginning is taken.

    Returns:
        At most `gist.words` words, always fewer than the text has; None where the text is short
        enough as it is, or gists are off.
    """
    how = settings.gist
    if how is None or _size(text) <= how.words:
        return None
    sentences = [one for one in map(in_a_line, _SENTENCE_END.split(text)) if one]
    worth = [_worth(sentence, at) for at, sentence in enumerate(sentences)]
    by_worth = sorted(range(len(sentences)), key=lambda at: (-worth[at], at))
    chosen, room = list[int](), how.words
    for at in by_worth:
        size = _size(sentences[at])
        if size <= room and (worth[at] > 0 or not chosen):
            chosen.append(at)
            room -= size
    if not chosen:
        beginning = sentences[by_worth[0]]
        end = [found.end() for found in _WORD.finditer(beginning)][how.words - 1]
        return f"{beginning[:end]}…"
    gist = " ".join(sentences[at] for at in sorted(chosen))
    return gist if len(gist) < len(text) else None


def usable_gist(answer: str, text: str, settings: MemoryDynamicsSettings) -> str | None:
    """What a model gave as the gist of a text, on one line; None where it is none.

    It is none where it is empty, has more words than a gist may, or is no shorter than the text.
    """
    how, gist = settings.gist, in_a_line(answer)
    if how is None or not gist or _size(gist) > how.words:
        return None
    return gist if _size(gist) < _size(text) and len(gist) < len(text) else None


def gisted(
    state: RecordState, gist: str, now: float, settings: MemoryDynamicsSettings
) -> RecordState:
    """The state of a record of which the gist is kept: a little weaker, once.

    Raises:
        ValueError: The gist is empty.
    """
    how = settings.gist
    if not gist.strip():
        raise ValueError(f"The gist {gist!r} of record {state.record!r} is empty; keep the text.")
    if how is None or state.gist is not None:
        return state
    return state._replace(gist=gist, gist_at=now, strength=state.strength * (1 - how.weakening))


def _size(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _worth(sentence: str, place: int) -> float:
    numbers, names = bool(_NUMBER.search(sentence)), len(_NAME.findall(sentence))
    return 1.5 * numbers + 0.7 * min(3, names) + bool(_BINDING.search(sentence)) + (place == 0)


# ---- Where it comes from ----

_CONCLUDED = 0.5
"""So much of the half-life has what was concluded."""


def confidence_now(
    state: RecordState,
    record: Record,
    now: float,
    settings: MemoryDynamicsSettings,
    traits: Traits | None = None,
) -> float:
    """How sure it still is where a record comes from, 0..1.

    It halves in `half_life` days since the source last said it or was checked, and in half of
    them for conclusions (honest persons doubt them sooner). It never falls below the floor. What
    the developer wrote stays as it was.
    """
    how = settings.source_confidence
    origin = record.provenance
    if how is None or origin.trust is Trust.DEVELOPER:
        return state.confidence
    concluded = origin.source_kind == "agent" or bool(record.lineage.derived_from)
    doubt = 1.3 - 0.6 * (traits or Traits()).honesty
    half_life = how.half_life * (_CONCLUDED * doubt if concluded else 1.0)
    left = state.confidence * 0.5 ** (days_since(state.heard_at, now) / half_life)
    return max(left, min(how.floor, state.confidence))


def first_confidence(record: Record, settings: MemoryDynamicsSettings) -> float:
    """How sure a record is that is said for the first time: less where no source is trusted."""
    how = settings.source_confidence
    if how is None or trust_of(record) is not Trust.UNTRUSTED:
        return 1.0
    return min(how.untrusted, how.orders) if gives_orders(record.text) else how.untrusted


def is_left_out(
    confidence: float, record: Record, settings: MemoryDynamicsSettings, *, contradicted: bool
) -> bool:
    """Whether a record is so little sure, and so little trusted, that recall leaves it out."""
    how = settings.source_confidence
    if how is None or trust_of(record) is not Trust.UNTRUSTED:
        return False
    return confidence * (how.contradicted if contradicted else 1.0) < how.least


def heard(state: RecordState, now: float, confidence: float = 1.0) -> RecordState:
    """The state of a record whose source said it again, or was checked: confidence is restored."""
    return state._replace(
        heard_at=max(state.heard_at, now), confidence=max(state.confidence, confidence)
    )


# ---- Feelings ----


def regulated(
    state: RecordState, settings: MemoryDynamicsSettings, traits: Traits | None = None
) -> RecordState:
    """The state after a sleep: arousal above the limit falls, and with it the intensity.

    Valence stays: the bad stays bad, it stirs less. The agreeable calm down sooner.
    """
    how = settings.emotion_regulation
    if how is None or state.arousal <= how.arousal:
        return state
    rate = min(1.0, how.rate * (0.7 + 0.6 * (traits or Traits()).agreeableness))
    return state._replace(arousal=state.arousal * (1 - rate))


# ---- Schemata ----


@dataclass(frozen=True, slots=True)
class SchemaFit:
    """How a record fits what is known."""

    schema: str
    """Id of the cluster that it fits; empty where it fits none."""
    similarity: float
    """Cosine to the nearest cluster."""
    factor: float
    """What its encoding strength is multiplied by."""


def schema_fits(
    vectors: Mapping[str, NDArray[np.float32] | Sequence[float]],
    centroids: Mapping[str, NDArray[np.float32] | Sequence[float]],
    settings: MemoryDynamicsSettings,
    traits: Traits | None = None,
) -> dict[str, SchemaFit]:
    """How records fit the clusters of what is known, by their ids.

    What fits none is kept better, the more so by the open; what fits one, worse. A vector of zeros
    has no fit, and none has one where no clusters are known yet.
    """
    import numpy as np

    how = settings.schema_encoding
    if how is None or not centroids or not vectors:
        return {}
    names = list(centroids)
    rows = np.array(list(centroids.values()), dtype=np.float64)
    own = np.array(list(vectors.values()), dtype=np.float64)
    own_lengths = np.linalg.norm(own, axis=1)
    lengths = np.outer(own_lengths, np.linalg.norm(rows, axis=1))
    cosines = np.divide(own @ rows.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)
    best: list[int] = cosines.argmax(axis=1).tolist()
    strange = 1 + how.boost * (0.8 + 0.4 * (traits or Traits()).openness)
    fits: dict[str, SchemaFit] = {}
    for one, at, row, length in zip(vectors, best, cosines, own_lengths, strict=True):
        cosine = float(row[at])
        if length and cosine >= how.similarity:
            fits[one] = SchemaFit(names[at], cosine, 1 - how.discount)
        elif length:
            fits[one] = SchemaFit("", cosine, strange)
    return fits


def with_schema(
    state: RecordState, fit: SchemaFit | None, settings: MemoryDynamicsSettings
) -> RecordState:
    """The state of a new record, after it was seen how it fits; it stays above the floor."""
    if fit is None:
        return state
    floor = 0.0 if settings.forgetting is None else settings.forgetting.floor
    least = min(state.strength, 2 * floor)
    strength = min(1.0, max(least, state.strength * fit.factor))
    stability = stability_of(strength, settings, flashbulb=state.flashbulb)
    return state._replace(strength=strength, stability=stability)


# ---- Persona ----

TraitName = Literal[
    "honesty", "emotionality", "extraversion", "agreeableness", "conscientiousness", "openness"
]
_NOTICEABLE = 0.3
"""Balance from which on a trait moves."""


class TraitChange(Value):
    """A proposal to change one trait."""

    trait: TraitName
    before: float
    after: float
    confidence: float
    """0..1, by the number of records behind it."""
    reason: str


def persona_proposals(
    states: Sequence[RecordState], traits: Traits, settings: MemoryDynamicsSettings
) -> tuple[TraitChange, ...]:
    """How what was lived through would change a personality: at most two traits, a little.

    Much warmth makes agreeable, much conflict the contrary; lively joy makes outgoing, gloom
    withdrawn; what stirs makes emotional, calm less so, and a little more conscientious.
    """
    how = settings.persona_drift
    if how is None or len(states) < how.records:
        return ()
    many = len(states)

    def share(*which: bool) -> float:
        return sum(which) / many

    warm = share(*(one.valence > 0.3 for one in states))
    conflict = share(*(one.valence < -0.3 and one.arousal > 0.4 for one in states))
    lively = share(*(one.valence > 0.3 and one.arousal > 0.5 for one in states))
    gloom = share(*(one.valence < -0.3 and one.arousal <= 0.4 for one in states))
    stirred = share(*(one.arousal > 0.7 for one in states))
    calm = share(*(one.arousal < 0.3 and abs(one.valence) < 0.3 for one in states))
    balances: dict[TraitName, tuple[float, str]] = {
        "agreeableness": (warm - conflict, f"{warm:.0%} warm, {conflict:.0%} conflict"),
        "extraversion": (lively - gloom, f"{lively:.0%} lively, {gloom:.0%} gloomy"),
        "emotionality": (stirred - calm, f"{stirred:.0%} stirring, {calm:.0%} calm"),
        "conscientiousness": (calm / 2, f"{calm:.0%} calm"),
    }
    changes = [
        _change(name, balance, f"{shares} of {many} records", traits, how, many)
        for name, (balance, shares) in balances.items()
        if abs(balance) > _NOTICEABLE
    ]
    moved = [one for one in changes if one.after != one.before]
    moved.sort(key=lambda one: -abs(one.after - one.before))
    return tuple(moved[:2])


def _change(
    name: TraitName, balance: float, reason: str, traits: Traits, how: PersonaDrift, many: int
) -> TraitChange:
    before: float = getattr(traits, name)
    after = max(0.0, min(1.0, before + how.largest * balance))
    confidence = round(min(1.0, 0.3 + 0.7 * many / 50), 3)
    return TraitChange(trait=name, before=before, after=after, confidence=confidence, reason=reason)
