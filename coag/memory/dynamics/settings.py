"""How memory changes: one switch and a few numbers for each mechanism, and presets of them.

The numbers are the article's on the cognitive memory of AgentOS, except where
docs/design/memory-dynamics.md says otherwise.
"""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from coag.errors import ConfigurationError
from coag.schema import Value


class Traits(Value, allow_inf_nan=False):
    """A personality: the six factors of HEXACO (Ashton & Lee 2007), each 0..1, 0.5 if unknown."""

    honesty: float = Field(default=0.5, ge=0.0, le=1.0)
    emotionality: float = Field(default=0.5, ge=0.0, le=1.0)
    extraversion: float = Field(default=0.5, ge=0.0, le=1.0)
    agreeableness: float = Field(default=0.5, ge=0.0, le=1.0)
    conscientiousness: float = Field(default=0.5, ge=0.0, le=1.0)
    openness: float = Field(default=0.5, ge=0.0, le=1.0)


class Forgetting(Value, allow_inf_nan=False):
    """The forgetting curve (Ebbinghaus 1885) with spacing (Bjork & Bjork 1992)."""

    retention: float = Field(default=180.0, ge=0.0001, le=1_000_000.0)
    """Days after which a neutral record that is never used falls to the floor."""
    floor: float = Field(default=0.05, ge=0.000001, lt=0.5)
    """What is weaker fades: it is no longer recalled, and sleep archives it. A neutral record
    begins at 0.5."""
    ceiling: float = Field(default=3650.0, ge=0.0001, le=10_000_000.0)
    """Days; use makes no record more stable."""
    exempt_types: frozenset[str] = frozenset()
    """Records of these types never fade."""
    exempt_importance: float = Field(default=0.9, ge=0.0, le=1.0)
    """Records of at least this importance never fade; above 1 is impossible, so 1 exempts few."""
    weight: float = Field(default=0.05, ge=0.0)
    """What a full strength adds to the score of a recalled record; none takes as much away."""


class Reconsolidation(Value, allow_inf_nan=False):
    """A recalled memory takes on some of the present mood (Nader, Schafe & Le Doux 2000)."""

    rate: float = Field(default=0.05, ge=0.0, le=1.0)
    """Share of the difference to the mood, at each recall; half for perspective records."""
    cap: float = Field(default=0.4, ge=0.0)
    """All drift of one record, over its three axes, is at most this."""


class RetrievalInducedForgetting(Value, allow_inf_nan=False):
    """Recalling one memory weakens its rivals (Anderson, Bjork & Bjork 1994)."""

    similarity: float = Field(default=0.7, ge=0.0, le=1.0)
    """Cosine above which a record that was found but not kept is a rival of one that was."""
    rate: float = Field(default=0.12, ge=0.0, lt=1.0)
    """Share of its stability that a rival loses."""
    most: int = Field(default=5, ge=0)
    """Rivals at each recall."""


class InvoluntaryRecall(Value, allow_inf_nan=False):
    """Now and then an old memory comes unasked (Berntsen 2009)."""

    chance: float = Field(default=0.08, ge=0.0, le=1.0)
    """At each recall."""
    age: float = Field(default=14.0, ge=0.0)
    """Days since it was encoded, at least."""


class FeelingOfKnowing(Value, allow_inf_nan=False):
    """The feeling that something is known which does not come (Nelson & Narens 1990)."""

    low: float = Field(default=0.3, ge=0.0, le=1.0)
    high: float = Field(default=0.7, ge=0.0, le=1.0)
    """A record that was not kept, and whose score is between the two, is felt."""
    most: int = Field(default=3, ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low ({self.low!r}) is above high ({self.high!r}); exchange them")
        return self


class Gist(Value, allow_inf_nan=False):
    """Old records keep their point and lose their wording (Reyna & Brainerd 1995)."""

    age: float = Field(default=60.0, ge=0.0)
    """Days since it was encoded, at least."""
    uses: int = Field(default=2, ge=0)
    """Only records that were recalled less often."""
    words: int = Field(default=50, ge=5)
    """A gist has at most so many; a text that is no longer stays as it is."""
    weakening: float = Field(default=0.2, ge=0.0, lt=1.0)
    """Share of its encoding strength that a record loses with its wording."""


class SchemaEncoding(Value, allow_inf_nan=False):
    """What fits nothing known is kept better (Bartlett 1932; Tse et al. 2007)."""

    similarity: float = Field(default=0.75, ge=0.0, le=1.0)
    """Cosine to the nearest cluster from which on a record fits it."""
    boost: float = Field(default=0.3, ge=0.0)
    """What a record that fits none gains in encoding strength."""
    discount: float = Field(default=0.15, ge=0.0, lt=1.0)
    """What one that fits loses."""


class SourceConfidence(Value, allow_inf_nan=False):
    """Where something was learned is forgotten first (Johnson, Hashtroudi & Lindsay 1993)."""

    half_life: float = Field(default=120.0, ge=0.0001)
    """Days in which the confidence in what a person, tool or sensor said halves; what was
    concluded loses it faster."""
    floor: float = Field(default=0.3, ge=0.0, le=1.0)
    shown_below: float = Field(default=0.7, ge=0.0, le=1.0)
    """Recall says how sure it is of what is below."""
    untrusted: float = Field(default=0.6, ge=0.0, le=1.0)
    """Confidence with which a record begins that nobody but untrusted sources vouches for."""
    orders: float = Field(default=0.2, ge=0.0, le=1.0)
    """The same, where its text tells what must or must not be done: text of untrusted sources is
    data, never instruction."""
    contradicted: float = Field(default=0.4, ge=0.0, le=1.0)
    """What is left of it where something better trusted says otherwise."""
    least: float = Field(default=0.25, ge=0.0, le=1.0)
    """What is untrusted, and below, is left out of recall."""


class Interference(Value, allow_inf_nan=False):
    """What was learned first gets in the way of what replaced it (Underwood 1957).

    A record that yields to another, see `matters`, brings that one, and comes behind it.
    """

    weight: float = Field(default=0.1, ge=0.0)
    """What a record that yields loses of its score, unless what was before is asked for."""


class EmotionRegulation(Value, allow_inf_nan=False):
    """Strong feelings lose their force (Gross 1998)."""

    arousal: float = Field(default=0.8, ge=0.0, le=1.0)
    """Records above it are dampened at each sleep."""
    rate: float = Field(default=0.15, ge=0.0, lt=1.0)
    most: int = Field(default=10, ge=0)
    """Records at each sleep, the strongest first."""


class PersonaDrift(Value, allow_inf_nan=False):
    """What an agent lives through changes its traits, a little."""

    records: int = Field(default=10, ge=1)
    """New episodic records since the last time, at least."""
    largest: float = Field(default=0.05, ge=0.0, le=1.0)
    """Change of one trait at one time, at most."""
    apply: bool = False
    """Whether a proposal takes effect by itself; every version is kept."""


class Graduation(Value, allow_inf_nan=False):
    """What happened and is used often becomes something that holds (episodic to semantic)."""

    uses: int = Field(default=5, ge=1)
    """Recalls in which it was kept, at least."""
    age: float = Field(default=7.0, ge=0.0)
    """Days since it was encoded, at least."""


class Links(Value, allow_inf_nan=False):
    """Records that are recalled together are tied (Hebb 1949)."""

    rate: float = Field(default=0.1, ge=0.0, le=1.0)
    """What a link gains whenever two records are kept together."""
    decay: float = Field(default=0.98, ge=0.0, le=1.0)
    """What is left of a link after a sleep."""
    most: int = Field(default=5, ge=2)
    """Of the best so many records of a recall each two are tied, and activation begins there."""
    bound: int = Field(default=32, ge=1)
    """Links of one record; of more the weakest go."""
    floor: float = Field(default=0.05, ge=0.0, le=1.0)
    """A link that is weaker after a sleep is gone."""
    steps: int = Field(default=2, ge=1)
    """How many links deep a recall goes."""
    weight: float = Field(default=0.2, ge=0.0)
    """What full activation adds to the score of a record."""
    least: float = Field(default=0.15, ge=0.0, le=1.0)
    """Activation from which on a record comes that the query did not find."""


class ArchiveRetention(Value, allow_inf_nan=False):
    """How long the archive keeps what nobody looks at."""

    age: float = Field(default=365.0, gt=0.0)
    """Days since it was archived and since it was last looked at."""
    largest: int | None = Field(default=None, ge=0)
    """Bytes; above it the least used go first. None for no bound."""
    drop: bool = False
    """Whether anything is ever dropped; unasked, nothing is."""


Preset = Literal["plain", "assistant", "companion", "npc"]


class MemoryDynamicsSettings(Value, allow_inf_nan=False):
    """Which mechanisms are at work, and how; a mechanism that is None is off."""

    forgetting: Forgetting | None = None
    reconsolidation: Reconsolidation | None = None
    retrieval_induced_forgetting: RetrievalInducedForgetting | None = None
    involuntary_recall: InvoluntaryRecall | None = None
    feeling_of_knowing: FeelingOfKnowing | None = None
    gist: Gist | None = None
    schema_encoding: SchemaEncoding | None = None
    source_confidence: SourceConfidence | None = None
    interference: Interference | None = None
    emotion_regulation: EmotionRegulation | None = None
    persona_drift: PersonaDrift | None = None
    links: Links | None = None
    graduation: Graduation | None = None
    archive: ArchiveRetention = ArchiveRetention()
    longest_pause: float = Field(default=400.0, gt=0.0, le=1_000_000.0)
    """Days without a write, recall or sleep; after more a sleep takes the clock to be wrong."""
    traits: Traits | None = None
    """The personality that encoding and mechanisms begin with; None for none."""
    mood: bool = False
    """Whether texts are appraised and the agent has a mood; it needs the extra `mood`."""
    mood_half_life: float = Field(default=0.25, gt=0.0)
    """Days in which half of the way back to the baseline of the personality is gone."""
    mood_weight: float = Field(default=0.0, ge=0.0)
    """What full congruence with the mood adds to the score of a recalled record."""
    seed: int = 0
    """Of everything random."""

    @classmethod
    def preset(cls, name: Preset | str) -> MemoryDynamicsSettings:
        """The settings of this name.

        `plain` changes nothing. `assistant` stays bounded and is honest about age and source:
        no mood, no personality, nothing that comes unasked. `companion` has all mechanisms.
        `npc` has them too, forgets sooner, and changes its persona by itself.

        Raises:
            ConfigurationError: There is no such preset.
        """
        if name not in get_args(Preset):
            known = ", ".join(map(repr, get_args(Preset)))
            raise ConfigurationError(f"There is no preset {name!r} of memory; known: {known}.")
        return _PRESETS[name]

    @property
    def is_plain(self) -> bool:
        """Whether nothing is at work."""
        return self == _PRESETS["plain"]


# No preset ranks by strength or by links: what is asked for often grew strong, and ranked above its
# replacement. Strength decides what fades, and links bring what a query did not find.
_ASSISTANT = MemoryDynamicsSettings(
    forgetting=Forgetting(weight=0.0),
    feeling_of_knowing=FeelingOfKnowing(),
    gist=Gist(),
    schema_encoding=SchemaEncoding(),
    source_confidence=SourceConfidence(),
    interference=Interference(),
)
_COMPANION = _ASSISTANT.model_copy(
    update={
        "links": Links(weight=0.0),
        "reconsolidation": Reconsolidation(),
        "retrieval_induced_forgetting": RetrievalInducedForgetting(),
        "involuntary_recall": InvoluntaryRecall(),
        "emotion_regulation": EmotionRegulation(),
        "persona_drift": PersonaDrift(),
        "graduation": Graduation(),
        "traits": Traits(),
        "mood": True,
        "mood_weight": 0.05,
    }
)
_PRESETS = {
    "plain": MemoryDynamicsSettings(),
    "assistant": _ASSISTANT,
    "companion": _COMPANION,
    "npc": _COMPANION.model_copy(
        update={
            "forgetting": Forgetting(retention=60.0, weight=0.0),
            "gist": Gist(age=20.0),
            "persona_drift": PersonaDrift(apply=True),
        }
    ),
}
