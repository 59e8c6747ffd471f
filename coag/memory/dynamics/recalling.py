"""What recall does to memory, beyond finding: mood seeps in, rivals weaken, the unasked comes.

Pure functions; each does nothing where its mechanism is None in the settings. At traits of 0.5,
or none, the numbers are those of the settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from coag._util.text import cleaned, ellipsis, in_a_line
from coag.schema import FeltRecord, Mood, RecalledRecord, Record

from .forgetting import has_faded, neutral_stability
from .mood import clamped
from .settings import MemoryDynamicsSettings, Traits
from .states import RecordState, days_since

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST_STABLE = 0.1
"""Share of the neutral stability below which rivals lose none: asking often cannot erase them."""
_LEAST_WEIGHT = 0.01
"""How likely a record without feeling comes unasked, beside one of full intensity at 1."""
_CUE_WORDS = 4
_LONGEST_CUE = 60
"""Characters."""
_BEGINNING = 400
"""Characters of a text in which the words of its cue are looked for."""
_PUNCTUATION = ".,;:!?\"'()[]"
_COMMON = (
    "a an the this that these those and or but if then so of in on at to for from by with as is "
    "are was were be been has have had do does did will would can could should may might must i me "
    "my we us our you your he him his she her it its they them their there here not no very just "
    "about who what when where which how also"
)
_STOP_WORDS = frozenset(_COMMON.split())


def moved_feeling(
    state: RecordState,
    mood: Mood | None,
    settings: MemoryDynamicsSettings,
    traits: Traits | None = None,
) -> dict[str, float]:
    """What a recall in a mood changes of a state, by field: its feeling moves towards the mood.

    The emotional are moved further, perspective records half as far, flashbulbs not at all. All
    moves of one record, over its three axes, add up to at most the cap; the last is cut to fit.
    """
    how = settings.reconsolidation
    if how is None or mood is None or state.flashbulb:
        return {}
    who = traits or Traits()
    rate = min(1.0, how.rate * (0.5 + who.emotionality)) * (0.5 if state.perspective else 1.0)
    valence = rate * (mood.valence - state.valence)
    arousal = rate * (mood.arousal - state.arousal)
    dominance = rate * (mood.dominance - state.dominance)
    size, room = abs(valence) + abs(arousal) + abs(dominance), max(0.0, how.cap - state.drift)
    if size == 0.0 or room == 0.0:
        return {}
    part = min(1.0, room / size)
    return {
        "valence": clamped(state.valence + part * valence, -1.0),
        "arousal": clamped(state.arousal + part * arousal, 0.0),
        "dominance": clamped(state.dominance + part * dominance, -1.0),
        "drift": min(how.cap, state.drift + part * size),
    }


def rivals(
    kept: Sequence[str],
    others: Sequence[str],
    vectors: Mapping[str, NDArray[np.float32] | Sequence[float]],
    settings: MemoryDynamicsSettings,
) -> tuple[str, ...]:
    """Records that were found but not kept, and are alike to one that was; the likest first.

    Vectors have length 1, or are zero; a record without one has no rivals, and is none.
    """
    how = settings.retrieval_induced_forgetting
    left = [one for one in dict.fromkeys(others) if one in vectors and one not in kept]
    winners = [one for one in kept if one in vectors]
    if how is None or not left or not winners:
        return ()
    import numpy as np

    rows = np.array([vectors[one] for one in (*left, *winners)])
    cosines = (rows[: len(left)] @ rows[len(left) :].T).max(axis=1)
    alike = sorted(zip(cosines.tolist(), left, strict=True), key=lambda pair: -pair[0])
    return tuple(one for cosine, one in alike if cosine > how.similarity)[: how.most]


def suppressed(
    state: RecordState, settings: MemoryDynamicsSettings, traits: Traits | None = None
) -> RecordState:
    """The state of a rival: it loses stability, to a tenth of the neutral one at least.

    The conscientious suppress more. Flashbulbs and what is exempt lose nothing.
    """
    how = settings.retrieval_induced_forgetting
    if how is None or state.flashbulb or state.exempt:
        return state
    who = traits or Traits()
    rate = min(1.0, how.rate * (0.7 + 0.6 * who.conscientiousness))
    least = min(state.stability, _LEAST_STABLE * neutral_stability(settings))
    return state._replace(stability=max(least, state.stability * (1 - rate)))


def pick_involuntary(
    states: Iterable[RecordState],
    now: float,
    settings: MemoryDynamicsSettings,
    random: Random,
    traits: Traits | None = None,
) -> RecordState | None:
    """The record that comes unasked at this recall; None mostly.

    What stirs most comes most. The open are visited more often.

    Args:
        states: What may come: those old enough that have not faded are chosen from. They are
            read only if chance wills that something comes, so a generator costs nothing else.
        now: In POSIX seconds.
        settings: Chance and age.
        random: One number is drawn at each recall, a second if something may come.
        traits: Whose memory it is.
    """
    how = settings.involuntary_recall
    if how is None:
        return None
    who = traits or Traits()
    if random.random() >= how.chance * (0.5 + who.openness):
        return None
    old = [
        state
        for state in states
        if days_since(state.encoded_at, now) >= how.age
        and state.faded_at is None
        and not has_faded(state, now, settings)
    ]
    if not old:
        return None
    weights = [max(_LEAST_WEIGHT, state.intensity) for state in old]
    return random.choices(old, weights)[0]


def felt(
    hits_not_kept: Iterable[RecalledRecord],
    settings: MemoryDynamicsSettings,
    traits: Traits | None = None,
) -> list[FeltRecord]:
    """What was found but not kept, and scored between the two limits; the best first.

    The outgoing feel it sooner: extraversion lowers the lower limit.
    """
    how = settings.feeling_of_knowing
    if how is None:
        return []
    who = traits or Traits()
    low = how.low * (1.3 - 0.6 * who.extraversion)
    within = [hit for hit in hits_not_kept if low <= hit.score < how.high]
    within.sort(key=lambda hit: -hit.score)
    return [
        FeltRecord(
            id=hit.record.id,
            cue=cue_of(hit.record),
            score=hit.score,
            trust=hit.record.provenance.trust,
        )
        for hit in within[: how.most]
    ]


def cue_of(record: Record) -> str:
    """A few words on what a record is about, without what it says: its subject, or first words."""
    if record.fact is not None:
        cue = f"{record.fact.subject} {record.fact.attribute}"
    else:
        words = (one.strip(_PUNCTUATION) for one in record.text[:_BEGINNING].split())
        telling = (one for one in words if one and one.casefold() not in _STOP_WORDS)
        cue = " ".join(islice(telling, _CUE_WORDS)) or record.type
    return ellipsis(in_a_line(cleaned(cue)), _LONGEST_CUE)
