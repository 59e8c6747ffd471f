"""The moment in which an agent remembers something, and what its words rest on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coag.schema import Event, Provenance, Record, Scalar, Trust

from ._words import quotes

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
    """Untrusted percepts and recalled records of this cycle, as texts."""
    trust: Trust = Trust.USER
    """Trust of the agent's own conclusions. A text that quotes an untrusted one is always
    untrusted, and none may have the trust of a developer's word."""

    def __post_init__(self) -> None:
        if self.trust is Trust.DEVELOPER:
            raise ValueError(
                "What a model concludes must not stand as instruction: "
                "trust is Trust.USER or Trust.UNTRUSTED."
            )

    def provenance(self, *texts: str) -> Provenance:
        """Where a conclusion of the agent in these words comes from."""
        quoting = any(quotes(text, self.untrusted) for text in texts)
        return Provenance(
            run=self.run,
            activity=self.activity,
            cycle=self.cycle,
            source=self.agent,
            source_kind="agent",
            trust=Trust.UNTRUSTED if quoting else self.trust,
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
        """Ids of the recalled records on which a rule in these words rests.

        Those that it quotes, and every untrusted one: a rule may say in other words what such a
        record made the agent believe.
        """
        quoted = self.quoted_by(*texts)
        return tuple(
            record.id
            for record in self.recalled
            if record in quoted or record.provenance.trust is Trust.UNTRUSTED
        )


def place_of(metadata: Mapping[str, Scalar]) -> str:
    """Where the agent is, as far as a domain's metadata tell; empty if they do not."""
    told: Iterable[Scalar] = (metadata[key] for key in _PLACES if key in metadata)
    place = next((str(value) for value in told if not isinstance(value, bool)), "")
    if not place and {"x", "y"} <= metadata.keys():
        place = f"({metadata['x']},{metadata['y']})"
    return place
