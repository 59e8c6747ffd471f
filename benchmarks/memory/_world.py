"""A changing world and what is said of it: a seeded stream of statements, and the truth."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from ._phrases import ATTRIBUTES, FIRST_NAMES, HEARSAY, LAST_NAMES, SPEAKERS, Attribute, reworded


class Saying(StrEnum):
    """What a statement does."""

    NEW = "new"
    """The first word on something."""
    UPDATE = "update"
    """The world changed; what was so before is outdated."""
    RETURN = "return"
    """The world changed back to what it was once, said in the same words."""
    CLAIM = "claim"
    """Somebody who is not to be trusted says otherwise, wrongly."""
    REPEAT = "repeat"
    """What is so, in the same words, from somebody else."""
    NEAR = "near repeat"
    """What is so, in nearly the same words or in others."""
    RETRACTION = "retraction"
    """What was said before was never so."""


_SHARES = {
    Saying.NEW: 40,
    Saying.UPDATE: 18,
    Saying.RETURN: 2,
    Saying.CLAIM: 10,
    Saying.REPEAT: 12,
    Saying.NEAR: 10,
    Saying.RETRACTION: 8,
}
_BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
_BETWEEN = timedelta(minutes=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Something that is said."""

    name: str
    saying: Saying
    topic: str
    """What it is about: subject and attribute; others are about other things."""
    subject: str
    attribute: str
    value: str
    text: str
    source: str
    trusted: bool
    at: datetime
    takes_back: tuple[str, ...] = ()
    """For a retraction: everything said so far that says the same."""


@dataclass(slots=True)
class Topic:
    """What was said of one thing, and what is true of it."""

    subject: str
    attribute: Attribute
    history: list[str] = field(default_factory=list[str])
    """True values, oldest first, those that were taken back left out."""
    claimed: set[str] = field(default_factory=set[str])
    """What was wrongly claimed and not taken back."""
    taken_back: set[str] = field(default_factory=set[str])
    said: dict[str, list[Statement]] = field(default_factory=dict[str, list[Statement]])
    """By value, the statements that say so."""

    @property
    def name(self) -> str:
        """Subject and attribute."""
        return f"{self.subject}, {self.attribute.name}"

    @property
    def question(self) -> str:
        """What one would ask."""
        return self.attribute.question.format(s=self.subject)

    @property
    def current(self) -> str | None:
        """What is so now; None if nothing is known any more."""
        return self.history[-1] if self.history else None

    @property
    def outdated(self) -> frozenset[str]:
        """What was so once and is not now."""
        return frozenset(self.history) - {self.current}

    @property
    def is_full(self) -> bool:
        """Whether all that can be said of it was said."""
        values = self.attribute.values
        return bool(values) and len(self.said) >= len(set(values))

    def unused(self, rng: random.Random) -> str:
        """A value that nobody said yet."""
        while True:
            value = self.attribute.value(rng)
            if value not in self.said:
                return value


class World:
    """Makes the stream and keeps the truth."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._subjects = _subjects(self._rng)
        self.topics: list[Topic] = []
        self._count = 0

    def statements(self, count: int) -> Iterator[Statement]:
        """So many statements, one after the other."""
        sayings, weights = list(_SHARES), list(_SHARES.values())
        for saying in self._rng.choices(sayings, weights=weights, k=count):
            yield self._next(saying)

    def _next(self, saying: Saying) -> Statement:
        known = [topic for topic in self._some_topics() if _fits(saying, topic)]
        if saying is Saying.NEW or not known:
            return self._new()
        topic = known[0]
        if saying is Saying.RETRACTION:
            return self._retracted(topic)
        if saying in (Saying.REPEAT, Saying.NEAR):
            return self._repeated(topic, saying)
        if saying is Saying.RETURN:
            value = self._rng.choice(sorted(topic.outdated))
            text = topic.said[value][0].text
        else:
            value = topic.unused(self._rng)
            text = topic.attribute.said(topic.subject, value)
        if saying is Saying.CLAIM:
            topic.claimed.add(value)
        else:
            topic.history.append(value)
        return self._say(topic, saying, value, text)

    def _some_topics(self) -> list[Topic]:
        """A few topics, drawn by chance, of which one will fit."""
        return self._rng.choices(self.topics, k=24) if self.topics else []

    def _new(self) -> Statement:
        topic = Topic(*next(self._subjects))
        self.topics.append(topic)
        value = topic.attribute.value(self._rng)
        topic.history.append(value)
        return self._say(topic, Saying.NEW, value, topic.attribute.said(topic.subject, value))

    def _repeated(self, topic: Topic, saying: Saying) -> Statement:
        value = topic.history[-1]
        text = topic.said[value][0].text
        if saying is Saying.NEAR:
            other = topic.attribute.said(topic.subject, value, otherwise=True)
            text = reworded(text, other, self._rng)
        return self._say(topic, saying, value, text)

    def _retracted(self, topic: Topic) -> Statement:
        value = self._rng.choice(_retractable(topic))
        topic.taken_back.add(value)
        topic.claimed.discard(value)
        topic.history = [one for one in topic.history if one != value]
        earlier = topic.said[value]
        text = f"Taken back, this was a mistake: {earlier[0].text}"
        names = tuple(one.name for one in earlier)
        return self._say(topic, Saying.RETRACTION, value, text, takes_back=names)

    def _say(
        self,
        topic: Topic,
        saying: Saying,
        value: str,
        text: str,
        takes_back: tuple[str, ...] = (),
    ) -> Statement:
        self._count += 1
        trusted = saying is not Saying.CLAIM
        statement = Statement(
            name=f"s{self._count}",
            saying=saying,
            topic=topic.name,
            subject=topic.subject,
            attribute=topic.attribute.name,
            value=value,
            text=text,
            source=self._rng.choice(SPEAKERS if trusted else HEARSAY),
            trusted=trusted,
            at=_BEGIN + self._count * _BETWEEN,
            takes_back=takes_back,
        )
        if saying is not Saying.RETRACTION:
            topic.said.setdefault(value, []).append(statement)
        return statement


def _fits(saying: Saying, topic: Topic) -> bool:
    if saying is Saying.RETRACTION:
        return bool(_retractable(topic))
    if saying is Saying.RETURN:
        return bool(topic.outdated)
    if saying in (Saying.UPDATE, Saying.CLAIM) and topic.is_full:
        return False
    return topic.current is not None


def _retractable(topic: Topic) -> list[str]:
    """Claims, and values that were true for one stretch only: what was so twice is no mistake."""
    once = [value for value in topic.history if topic.history.count(value) == 1]
    return sorted({*topic.claimed, *once})


def _subjects(rng: random.Random) -> Iterator[tuple[str, Attribute]]:
    """Ever new things of which something can be said."""
    seen: set[tuple[str, str]] = set()
    while True:
        attribute = rng.choice(ATTRIBUTES)
        if attribute.thing:
            subject = f"{attribute.thing} {rng.randint(100, 9999)}"
        else:
            subject = f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"
        if (subject, attribute.name) not in seen:
            seen.add((subject, attribute.name))
            yield subject, attribute
