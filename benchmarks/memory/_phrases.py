"""The words of which synthetic statements and records are made; all of them our own."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path


def _read_words() -> dict[str, tuple[str, ...]]:
    """The words of the file beside this one, by what they are."""
    lines = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines()
    sorts = (line.partition(": ") for line in lines)
    return {sort: tuple(words.split("; ")) for sort, _, words in sorts}


_WORDS = _read_words()
FIRST_NAMES = _WORDS["first names"]
LAST_NAMES = _WORDS["last names"]
SPEAKERS = ("the user", "the caretaker", "the foreman", "the secretary", "the head of the plant")
HEARSAY = ("a web page", "an old leaflet", "a stranger's message", "a tool's guess")

TOWNS = _WORDS["towns"]
PLACES = _WORDS["places"]
_FIRMS = tuple(
    f"{name} {kind}"
    for name in ("Alder", "Beacon", "Cobalt", "Drift", "Ember", "Fathom", "Granite", "Harbour")
    for kind in ("Tools", "Freight", "Dairy", "Optics", "Press")
)
_DRINKS = _WORDS["drinks"]
_PROJECTS = tuple(
    f"{kind} {thing}"
    for kind in ("the new", "the old", "the second", "the joint", "the northern")
    for thing in ("bridge survey", "harbour model", "water audit", "seed catalogue", "rail study")
)
_COLOURS = _WORDS["colours"]
_STATES = _WORDS["states"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """Something that can be said of a subject, and asked."""

    name: str
    plain: str
    """The statement; `{s}` is replaced by the subject, `{v}` by the value."""
    other: str
    """The same in other words."""
    question: str
    values: tuple[str, ...] = ()
    """What it may be; empty for a number."""
    thing: str = ""
    """What its subjects are; empty for people."""

    def value(self, rng: random.Random) -> str:
        """One of the values."""
        return rng.choice(self.values) if self.values else str(rng.randint(2, 990))

    def said(self, subject: str, value: str, *, otherwise: bool = False) -> str:
        """The statement."""
        return (self.other if otherwise else self.plain).format(s=subject, v=value)


ATTRIBUTES = (
    Attribute(
        name="employer",
        plain="{s} works at {v}.",
        other="The company that employs {s} is {v}.",
        question="Where does {s} work?",
        values=_FIRMS,
    ),
    Attribute(
        name="home town",
        plain="{s} lives in {v} with the family.",
        other="Home for {s} is {v}.",
        question="In which town does {s} live?",
        values=TOWNS,
    ),
    Attribute(
        name="extension",
        plain="{s} can be reached at extension {v} on all working days before noon.",
        other="To call {s}, dial {v}.",
        question="What is the extension of {s}?",
    ),
    Attribute(
        name="drink",
        plain="At breakfast {s} always asks for {v}.",
        other="{s} prefers {v} in the morning.",
        question="What does {s} drink at breakfast?",
        values=_DRINKS,
    ),
    Attribute(
        name="project",
        plain="{s} is in charge of {v} since the last meeting of the board.",
        other="The board gave {v} to {s}.",
        question="Which project is {s} in charge of?",
        values=_PROJECTS,
    ),
    Attribute(
        name="location",
        plain="The {s} stands in the {v}.",
        other="You will find the {s} if you go to the {v}.",
        question="Where does the {s} stand?",
        values=PLACES,
        thing="pump",
    ),
    Attribute(
        name="pressure",
        plain="The {s} is set to {v} kilopascals and must not be changed without asking first.",
        other="For the {s} the pressure is {v} kilopascals.",
        question="To which pressure is the {s} set?",
        thing="boiler",
    ),
    Attribute(
        name="state",
        plain="At the moment the {s} is {v}.",
        other="State of the {s}: {v}.",
        question="What is the state of the {s}?",
        values=_STATES,
        thing="crane",
    ),
    Attribute(
        name="colour",
        plain="The doors of the {s} are painted {v}.",
        other="{v} is the colour of the doors of the {s}.",
        question="What colour are the doors of the {s}?",
        values=_COLOURS,
        thing="locker",
    ),
    Attribute(
        name="keeper",
        plain="The key of the {s} is kept by {v}.",
        other="Ask {v} for the key of the {s}.",
        question="Who keeps the key of the {s}?",
        values=tuple(
            f"{first} {last}" for first, last in zip(FIRST_NAMES, LAST_NAMES, strict=False)
        ),
        thing="room",
    ),
)

_VERBS = _WORDS["verbs"]
_OBJECTS = _WORDS["objects"]
_ADJECTIVES = _WORDS["adjectives"]
_REASONS = _WORDS["reasons"]


def record_text(number: int, rng: random.Random) -> str:
    """A sentence of what somebody did; another number gives another sentence."""
    return (
        f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)} {rng.choice(_VERBS)} the "
        f"{rng.choice(_ADJECTIVES)} {rng.choice(_OBJECTS)} in the {rng.choice(PLACES)} of "
        f"{rng.choice(TOWNS)} {rng.choice(_REASONS)}, note {number}."
    )


def record_question(text: str, rng: random.Random) -> str:
    """A question of about half the words of a record."""
    words = text.rstrip(".").split()
    kept = sorted(rng.sample(range(2, len(words)), k=max(3, len(words) // 2)))
    return f"When was it that {' '.join(words[at] for at in (0, 1, *kept))}?"


def reworded(text: str, other: str, rng: random.Random) -> str:
    """A sentence again as people repeat it: in other case and punctuation, or in other words."""
    ways = (
        text.upper().rstrip(".") + "!",
        f"  {text.replace(' ', '  ')} ",
        f"{text.rstrip('.')}, as you know.",
        other,
    )
    return rng.choice(ways)
