"""How a record is encoded: attention, mood and feeling decide how well it is kept.

The strength of a record is its share of attention (what is in it, weighed by personality and
importance), times how well one learns at this arousal (Yerkes & Dodson 1908), times what its
feeling adds. Very strong feelings make flashbulb memories (Brown & Kulik 1977). All weights are
those of the public code of AgentOS, where docs/design/memory-dynamics.md does not say otherwise.

Pure functions, no model.
"""

from __future__ import annotations

from coag.schema import Mood

from .appraisal import AT_REST, noisy_or
from .features import ContentFeatures
from .forgetting import NEUTRAL_STRENGTH, stability_of
from .settings import Forgetting, MemoryDynamicsSettings, Traits
from .states import RecordState

FLASHBULB_INTENSITY = 0.8
"""Above it, an event is a flashbulb: twice as strong, five times as stable."""
_NOBODY = Traits()
"""Nobody in particular."""
_MOOD_SHARE = 0.3
"""How much of a neutral text's valence is the mood's."""


def attention(features: ContentFeatures, importance: float, traits: Traits | None = None) -> float:
    """The share of attention that a text gets, 0..1; 0.5 where nothing speaks for or against it.

    Openness looks for novelty; conscientiousness for procedures and commitments; emotionality for
    feelings; extraversion or agreeableness, whichever is higher, for people; agreeableness for
    cooperation; honesty for right and wrong.
    """
    who = traits or _NOBODY
    duty = 0.3 + 0.7 * who.conscientiousness
    sociable = max(who.extraversion, who.agreeableness)
    gained = (
        0.15 * features.novelty * (0.3 + 0.7 * who.openness)
        + 0.15 * features.procedure * duty
        + 0.15 * features.commitment * duty
        + 0.15 * features.contradiction
        + 0.10 * features.emotion * emotion_weight(who)
        + 0.10 * features.social * (0.2 + 0.8 * sociable)
        + 0.10 * features.cooperation * (0.2 + 0.8 * who.agreeableness)
        + 0.10 * features.ethical * (0.2 + 0.8 * who.honesty)
    )
    wanted = 0.15 * (2 * features.relevance - 1) + 0.15 * (2 * importance - 1)
    return min(1.0, NEUTRAL_STRENGTH + gained + wanted)


def emotion_weight(traits: Traits) -> float:
    """How much feelings count to somebody, 0.2..1."""
    return 0.2 + 0.8 * traits.emotionality


def yerkes_dodson(arousal: float) -> float:
    """How well one learns at an arousal of 0..1: best at 0.5, at 0.3 where calm or frantic."""
    return max(0.3, 1 - 4 * (arousal - 0.5) ** 2)


def encode(  # noqa: PLR0913 - what decides how well it is kept
    record_id: str,
    features: ContentFeatures,
    *,
    at: float,
    settings: MemoryDynamicsSettings,
    traits: Traits | None = None,
    mood: Mood | None = None,
    importance: float = 0.5,
    exempt: bool = False,
    may_flash: bool = True,
) -> RecordState:
    """The state with which a record begins.

    Its valence and arousal are those of the text, and the mood's as far as the text leaves room.
    It never begins at or below the floor.

    Args:
        record_id: Which record.
        features: What is in its text.
        at: When, in POSIX seconds.
        settings: Retention, floor and ceiling.
        traits: Whose memory it is; None for nobody in particular.
        mood: The agent's; None for at rest.
        importance: 0..1; it counts as attention, never as feeling.
        exempt: Whether it never fades; see `forgetting.is_exempt`.
        may_flash: Whether it may be a flashbulb; what is untrusted stays for ever otherwise.
    """
    who, present = traits or _NOBODY, mood or AT_REST
    sentiment = features.sentiment
    valence = sentiment + _MOOD_SHARE * (1 - abs(sentiment)) * present.valence
    arousal = noisy_or(features.arousal, present.arousal)
    intensity = abs(valence) * arousal
    flashbulb = may_flash and intensity > FLASHBULB_INTENSITY
    feeling = emotion_weight(who)
    congruent = max(0.0, present.valence * sentiment)
    # A flashbulb is learned at once, however frantic one is.
    learning = 2.0 if flashbulb else yerkes_dodson(present.arousal)
    strength = (
        attention(features, importance, who)
        * learning
        * (1 + 0.5 * intensity * feeling)
        * (1 + 0.3 * congruent * feeling)
    )
    floor = (settings.forgetting or Forgetting()).floor
    strength = min(1.0, max(strength, min(NEUTRAL_STRENGTH, 2 * floor)))
    return RecordState(
        record=record_id,
        encoded_at=at,
        used_at=at,
        heard_at=at,
        strength=strength,
        stability=stability_of(strength, settings, flashbulb=flashbulb),
        importance=importance,
        valence=valence,
        arousal=arousal,
        dominance=present.dominance,
        flashbulb=flashbulb,
        exempt=exempt,
    )
