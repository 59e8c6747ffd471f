"""The thread of a talk: what it was about, what it is about now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coag.awareness.state import Entity, distinct, folded

from ._conversation_analysis import ConversationAnalysis, ConversationEntityType
from ._known import KnownNames, is_named

LAST_TOPIC, ASKED = "topic_step", "asked"
"""What an entity's state keeps: when it was a topic last, in how many steps it was asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A message's topics against those of the talk so far."""

    topics: tuple[str, ...]
    """The topics now."""
    known: dict[str, Entity]
    """Those of them that were topics before, with what they mean."""
    before: tuple[Entity, ...]
    """What the talk was about last."""
    linked: bool
    """Whether a topic belongs to an earlier one, or to what is open, though it was none before."""

    @classmethod
    def of(
        cls,
        analysis: ConversationAnalysis,
        earlier: tuple[Entity, ...],
        names: KnownNames,
        goals: Iterable[str] = (),
    ) -> Thread:
        """The thread with a message that is not in the state yet.

        Args:
            analysis: What the message says.
            earlier: All that was a topic before.
            names: Recognises topics.
            goals: What is open, in words; gone through only where no topic is known.
        """
        topics = distinct(analysis.topics)
        known, before = names.find(topics, earlier), active_topics(earlier)
        linked = not known and (
            _share_words(topics, before)
            or _joined_to(topics, analysis, earlier, names)
            or any(is_named(topic, goal) for goal in goals for topic in topics)
        )
        return cls(topics=topics, known=known, before=before, linked=linked)

    @property
    def pivots(self) -> bool:
        """Whether the talk had topics, this message has some, and none goes on with an old one."""
        return bool(self.topics and self.before and not self.known and not self.linked)

    @property
    def returns(self) -> bool:
        """Whether old topics are taken up again, and none of the last ones goes on."""
        last = {entity.name for entity in self.before}
        return bool(self.known) and all(one.name not in last for one in self.known.values())


def _share_words(topics: Sequence[str], before: Sequence[Entity]) -> bool:
    """Whether a topic has a word of the last ones in it: `flights` after `flights to Faro`."""
    said = {word for topic in topics for word in _words(topic)}
    return any(not said.isdisjoint(_words(one.name)) for one in before)


def _words(name: str) -> list[str]:
    """The longer words of a name, of whatever number."""
    return [word.removesuffix("s") for word in re.findall(r"\w{4,}", folded(name))]


def _joined_to(
    topics: Sequence[str],
    analysis: ConversationAnalysis,
    earlier: tuple[Entity, ...],
    names: KnownNames,
) -> bool:
    """Whether a message says how one of its topics hangs together with an earlier one."""
    own = set(map(folded, topics))
    others = [
        b
        for edge in analysis.relationships
        for a, b in ((edge.source, edge.target), (edge.target, edge.source))
        if folded(a) in own
    ]
    return bool(names.find(others, earlier))


def is_topic(entity: Entity) -> bool:
    """Whether it was a topic of the talk, whatever else it is."""
    return entity.type == ConversationEntityType.TOPIC or LAST_TOPIC in entity.state


def count_of(entity: Entity | None, key: str) -> int:
    """A number that an entity's state keeps; 0 if it keeps none."""
    value = entity.state.get(key) if entity is not None else None
    return value if isinstance(value, int) else 0


def active_topics(topics: Sequence[Entity]) -> tuple[Entity, ...]:
    """Of all topics those of the last message that had any."""
    steps = [count_of(topic, LAST_TOPIC) for topic in topics]
    last = max(steps, default=0)
    return tuple(topic for topic, step in zip(topics, steps, strict=True) if step and step == last)
