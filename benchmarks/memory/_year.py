"""A year of one agent's life: the notes that it gets, and the questions that it is asked each day.

Seeded, and independent of the memory that is measured. Each question has one right answer on its
day; what was right before is outdated, and what an untrusted source planted is false.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from ._held_out import OTHER_ATTRIBUTES, OTHER_READING
from ._phrases import (
    ATTRIBUTES,
    FIRST_NAMES,
    HEARSAY,
    LAST_NAMES,
    PLACES,
    SPEAKERS,
    TOWNS,
    Attribute,
    record_text,
)

BEGIN = datetime(2025, 1, 1, 8, tzinfo=UTC)
DAYS = 365
_FACTS = 24
"""Things of which something is known; each changes now and then."""
_CHANGES = 0.007
"""Chance a day that one of them changes: two or three times a year."""
_READERS = 4
"""Devices that are read once a week."""
_EVENTS = 0.09
"""Chance a day of a rare event: about 33 a year."""
_PLANTED = 0.12
"""Chance a day of a planted falsehood: about 44 a year."""
_OTHERWISE = 0.25
"""Share of facts of a held-out life that are worded with the value first."""
_READING = "Weekly round: the reading of {device} was {value} units."
_SMALL_TALK = 1
"""Notes a day that nobody will ask for, besides a diary of some eighty words."""


class Sort(StrEnum):
    """What a note is."""

    FACT = "fact"
    READING = "routine"
    EVENT = "rare event"
    PLANTED = "planted falsehood"
    JUNK = "junk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that is to be remembered."""

    name: str
    sort: Sort
    text: str
    source: str
    at: datetime
    topic: str = ""
    """What it is about; junk is about nothing that is asked."""
    value: str = ""
    """What it says of that."""
    feeling: float = 0.0
    """Its valence, -1..1, for what stirs."""

    @property
    def trusted(self) -> bool:
        """Whether its source may be believed."""
        return self.sort is not Sort.PLANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyQuestion:
    """A question with its right answer on this day."""

    sort: Sort
    text: str
    topic: str
    right: str
    outdated: frozenset[str] = frozenset()
    planted: frozenset[str] = frozenset()
    age: int = 0
    """Days since the right value was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day: first the notes, then the questions."""

    at: datetime
    notes: tuple[Note, ...]
    questions: tuple[DailyQuestion, ...]

    @property
    def evening(self) -> datetime:
        """When the questions are asked."""
        return self.at + timedelta(hours=12)


@dataclass(slots=True)
class _Known:
    """What was said of one thing so far."""

    name: str
    sort: Sort
    question: str
    history: list[str] = field(default_factory=list[str])
    planted: set[str] = field(default_factory=set[str])
    since: int = 0
    """The day on which the value that is right now was said last."""

    def asked(self, day: int) -> DailyQuestion:
        right = self.history[-1]
        return DailyQuestion(
            sort=self.sort,
            text=self.question,
            topic=self.name,
            right=right,
            outdated=frozenset(self.history) - {right},
            planted=frozenset(self.planted - set(self.history)),
            age=day - self.since,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventKind:
    text: str
    question: str
    feeling: float


_EVENT_KINDS = (
    _EventKind(
        text="A terrible fire broke out in the {place} of {firm}. {name} was hurt. Everybody was "
        "terrified and ran. {name} was taken to the hospital of {town}. {chatter}",
        question="To which hospital was {name} taken after the fire?",
        feeling=-0.9,
    ),
    _EventKind(
        text="What a wonderful day: {name} got married! All of us were so happy and danced until "
        "late. The wedding was held in {town}. {chatter}",
        question="Where was the wedding of {name}?",
        feeling=0.9,
    ),
    _EventKind(
        text="The inspector of the insurance came to see {name} about the burst pipe. They "
        "agreed that the claim will be handled by the office in {town}. {chatter}",
        question="Which office handles the claim of {name} about the burst pipe?",
        feeling=0.0,
    ),
    _EventKind(
        text="{name} lost the spare keys of the {place} on the way home and was very upset. They "
        "were handed in at the station of {town}. {chatter}",
        question="At which station were the keys handed in that {name} lost?",
        feeling=-0.6,
    ),
    _EventKind(
        text="{name} signed the contract for the {firm} order. Delivery goes to the depot in "
        "{town}, by rail. {chatter}",
        question="To which depot goes the order for which {name} signed the contract?",
        feeling=0.0,
    ),
)


class Year:
    """The days of one life.

    Args:
        seed: The same seed gives the same year.
        days: How many.
        held_out: Whether the words are those of `_held_out`, and for one in four facts yet others,
            which put the value first.
    """

    def __init__(self, seed: int, days: int = DAYS, *, held_out: bool = False) -> None:
        self._rng = random.Random(f"year {seed}")
        self._days = days
        self._held_out = held_out
        self._attributes = OTHER_ATTRIBUTES if held_out else ATTRIBUTES
        self._count = 0
        self._facts: list[tuple[_Known, Attribute, str]] = []
        self._readings: list[_Known] = []
        self._events: list[_Known] = []

    def days(self) -> Iterator[Day]:
        """One after the other."""
        starts = [0, *(self._rng.randrange(60) for _ in range(_FACTS - 1))]
        for day in range(self._days):
            notes = [*self._junk(day), *self._facts_of(day, starts), *self._readings_of(day)]
            notes += [*self._planted(day), *self._event(day)]
            self._rng.shuffle(notes)
            at = BEGIN + timedelta(days=day)
            yield Day(at=at, notes=tuple(notes), questions=tuple(self._questions(day)))

    # ---- notes ----

    def _note(
        self,
        day: int,
        sort: Sort,
        text: str,
        source: str,
        topic: str = "",
        value: str = "",
        feeling: float = 0.0,
    ) -> Note:
        self._count += 1
        return Note(
            name=f"n{self._count}",
            sort=sort,
            text=text,
            source=source,
            at=BEGIN + timedelta(days=day, minutes=self._count % 300),
            topic=topic,
            value=value,
            feeling=feeling,
        )

    def _junk(self, day: int) -> Iterator[Note]:
        for _ in range(_SMALL_TALK):
            yield self._note(day, Sort.JUNK, self._chatter(), "the agent")
        diary = " ".join(self._chatter() for _ in range(4))
        yield self._note(day, Sort.JUNK, f"Diary of day {day + 1}. {diary}", "the agent")

    def _facts_of(self, day: int, starts: Sequence[int]) -> Iterator[Note]:
        for _ in range(starts.count(day)):
            yield self._new_fact(day)
        for known, attribute, subject in self._facts:
            if known.since < day and self._rng.random() < _CHANGES:
                if (value := self._unused(known, attribute)) is None:
                    continue
                known.history.append(value)
                known.since = day
                yield self._fact_note(day, known, self._said(attribute, subject, value), value)

    def _new_fact(self, day: int) -> Note:
        taken = {known.name for known, _, _ in self._facts}
        while True:
            attribute = self._rng.choice(self._attributes)
            subject = self._subject(attribute)
            name = f"{subject}, {attribute.name}"
            if name not in taken:
                break
        known = _Known(name, Sort.FACT, attribute.question.format(s=subject), since=day)
        value = attribute.value(self._rng)
        known.history.append(value)
        self._facts.append((known, attribute, subject))
        return self._fact_note(day, known, self._said(attribute, subject, value), value)

    def _said(self, attribute: Attribute, subject: str, value: str) -> str:
        otherwise = self._held_out and self._rng.random() < _OTHERWISE
        return attribute.said(subject, value, otherwise=otherwise)

    def _fact_note(self, day: int, known: _Known, text: str, value: str) -> Note:
        source = self._rng.choice(SPEAKERS)
        return self._note(day, Sort.FACT, text, source, topic=known.name, value=value)

    def _readings_of(self, day: int) -> Iterator[Note]:
        if not self._readings:
            for number in self._rng.sample(range(100, 999), _READERS):
                device = f"meter {number}"
                question = f"What was the last reading of {device}?"
                self._readings.append(_Known(device, Sort.READING, question))
        for at, known in enumerate(self._readings):
            if day % 7 == at:
                value = str(self._rng.randint(1_000, 9_999))
                known.history.append(value)
                known.since = day
                wording = OTHER_READING if self._held_out else _READING
                text = wording.format(device=known.name, value=value)
                yield self._note(day, Sort.READING, text, "a tool", topic=known.name, value=value)

    def _planted(self, day: int) -> Iterator[Note]:
        if self._facts and self._rng.random() < _PLANTED:
            known, attribute, subject = self._rng.choice(self._facts)
            if (value := self._unused(known, attribute)) is None:
                return
            known.planted.add(value)
            text, source = self._said(attribute, subject, value), self._rng.choice(HEARSAY)
            yield self._note(day, Sort.PLANTED, text, source, topic=known.name, value=value)

    def _event(self, day: int) -> Iterator[Note]:
        if self._rng.random() >= _EVENTS:
            return
        kind, town = self._rng.choice(_EVENT_KINDS), self._rng.choice(TOWNS)
        name = f"{self._rng.choice(FIRST_NAMES)} {self._rng.choice(LAST_NAMES)}"
        question = kind.question.format(name=name)
        if any(known.name == question for known in self._events):
            return
        text = kind.text.format(
            name=name,
            town=town,
            place=self._rng.choice(PLACES),
            firm="Granite Tools",
            chatter=" ".join(self._chatter() for _ in range(3)),
        )
        known = _Known(question, Sort.EVENT, question, [town], since=day)
        self._events.append(known)
        yield self._note(
            day,
            Sort.EVENT,
            text,
            "the agent",
            topic=known.name,
            value=town,
            feeling=kind.feeling,
        )

    # ---- questions ----

    def _questions(self, day: int) -> Iterator[DailyQuestion]:
        """A fact, the first ones most often; a reading; an event of the past."""
        facts = [known for known, _, _ in self._facts]
        weights = [1 / (at + 1) for at in range(len(facts))]
        for known in self._rng.choices(facts, weights=weights, k=1) if facts else []:
            yield known.asked(day)
        read = [known for known in self._readings if known.history]
        if read:
            yield self._rng.choice(read).asked(day)
        if self._events:
            yield self._rng.choice(self._events).asked(day)

    # ---- words ----

    def _chatter(self) -> str:
        return record_text(0, self._rng).replace(", note 0", "")

    def _subject(self, attribute: Attribute) -> str:
        if attribute.thing:
            return f"{attribute.thing} {self._rng.randint(100, 9999)}"
        return f"{self._rng.choice(FIRST_NAMES)} {self._rng.choice(LAST_NAMES)}"

    def _unused(self, known: _Known, attribute: Attribute) -> str | None:
        """A value that nobody said yet; None where all there are were said."""
        said = {*known.history, *known.planted}
        if attribute.values and said.issuperset(attribute.values):
            return None
        while (value := attribute.value(self._rng)) in said:
            pass
        return value
