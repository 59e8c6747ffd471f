"""The moment in which an agent remembers something, and what its words rest on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coag.schema import Event, PerceptKind, Provenance, Record, Scalar, Trust

from ._lineage import CONCLUSION
from ._words import quotes, restates

USER = "user"
"""The name under which the user speaks, in AutoGen's messages and in provenances."""

_PLACES = ("place", "location", "position", "room", "cell")
"""Keys of a domain's metadata under which it tells where the agent is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySituation:
    """The few facts about the moment in which an agent remembers something."""

    run: str
    activity: str
    cycle: int
    agent: str
    """Name of the agent: source of its own conclusions, author of its rewrites."""
    metadata: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    """What the domain adds to every record made now, e.g. the position."""
    event: Event | None = None
    """What happens now: every record made now tells it. Not shown to models."""
    recalled: tuple[Record, ...] = ()
    """What was recalled in this cycle."""
    untrusted: tuple[str, ...] = ()
    """Untrusted texts that the activity was shown, as far as they are kept."""
    sources: tuple[str, ...] = ()
    """Tools, senders and sensors whose untrusted text the activity was shown."""
    records: tuple[str, ...] = ()
    """Ids of the untrusted records that the activity was shown."""
    said: tuple[str, ...] = ()
    """What the user said."""
    apart: bool = False
    """Whether many people are served, whose memories are kept apart: a rule holds for them all."""
    trust: Trust = Trust.USER
    """Trust of the agent's own conclusions where nothing untrusted was shown. None may have the
    trust of a developer's word."""

    def __post_init__(self) -> None:
        if self.trust is Trust.DEVELOPER:
            raise ValueError(
                "What a model concludes must not stand as instruction: "
                "trust is Trust.USER or Trust.UNTRUSTED."
            )

    @property
    def tainted(self) -> bool:
        """Whether the activity was shown untrusted text, so that what it concludes is that too."""
        return bool(self.untrusted or self.sources or self.records)

    def rests_on_user(self, text: str, *parts: str) -> bool:
        """Whether a text says what the user said himself, and the parts name nothing else."""
        return restates(text, self.said, *parts)

    def provenance(self, text: str, *parts: str) -> Provenance:
        """Where a conclusion of the agent in these words comes from.

        What the user said himself stems from him. All else is the agent's, and untrusted if the
        activity was shown untrusted text, whatever the words: trust follows derivation.

        Args:
            text: What is to be remembered.
            parts: What it names: a thing, an attribute, a value.
        """
        own = self.rests_on_user(text, *parts)
        tainted = self.tainted and not own
        return Provenance(
            run=self.run,
            activity=self.activity,
            cycle=self.cycle,
            source=USER if own else self.agent,
            source_kind=PerceptKind.MESSAGE.value if own else CONCLUSION,
            trust=Trust.UNTRUSTED if tainted else self.trust,
            shown=self.sources if tainted else (),
        )

    def happening(self) -> Event | None:
        """What happens now, in the agent's own words only."""
        if self.event is None or not quotes(self.event.situation, self.untrusted):
            return self.event
        return self.event.model_copy(update={"situation": ""})

    def quoted_by(self, *texts: str) -> tuple[Record, ...]:
        """The records recalled in this cycle that these words quote."""
        return tuple(
            record
            for record in self.recalled
            if any(quotes(text, [record.text]) for text in texts if text)
        )

    def grounds(self, *texts: str) -> tuple[str, ...]:
        """Ids of the records on which a conclusion in these words rests.

        Those recalled in this cycle that it quotes, and every untrusted one that the activity was
        shown: one may say in other words what such a record made one believe. What the user said
        himself rests on none.
        """
        if self.rests_on_user(*texts):
            return ()
        recalled = (
            record
            for record in self.recalled
            if record.provenance.trust is Trust.UNTRUSTED or record in self.quoted_by(*texts)
        )
        return tuple(dict.fromkeys((*(record.id for record in recalled), *self.records)))


def place_of(metadata: Mapping[str, Scalar]) -> str:
    """Where the agent is, as far as a domain's metadata tell; empty if they do not."""
    told: Iterable[Scalar] = (metadata[key] for key in _PLACES if key in metadata)
    place = next((str(value) for value in told if not isinstance(value, bool)), "")
    if not place and {"x", "y"} <= metadata.keys():
        place = f"({metadata['x']},{metadata['y']})"
    return place
