"""The 20 questions, the dialogues with their right answers, and what an answer is worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Annotated, Protocol, Self, TypeVar

from pydantic import Field, TypeAdapter

from coag.awareness.adapters import ConversationAnalysis
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Value

from .dialogues import CONVERSATION, Dialogue, load_dialogues, read_json


class Form(StrEnum):
    """What the answer to a question is made of."""

    PHRASES = "phrases"
    """Short phrases."""
    PAIRS = "pairs"
    """Two phrases that belong together, in order."""
    COMPUTED = "computed"
    """Nothing that is read: the text itself is measured."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a talk, as things stand after its last turn."""

    id: str
    label: str
    """The information type, as in table 7."""
    printed: str
    """The row of table 7 as the paper prints it, for buffer, summary and awareness: Y full, ~
    partial, - not captured."""
    form: Form = Form.PHRASES

    @property
    def sampled(self) -> bool:
        """Whether the right items are only some of what is true, so that more costs nothing."""
        return self.id in ("entity_types", "transition_order", "compression")


_OneT = TypeVar("_OneT")
QUESTIONS = (
    Question("explicit_goals", "Explicit goal identification", "~YY"),
    Question("implied_goals", "Inferred/implicit goals", "--Y"),
    Question("goal_hierarchy", "Goal hierarchy (parent/child)", "--Y", Form.PAIRS),
    Question("goal_lifecycle", "Goal lifecycle tracking", "--Y", Form.PAIRS),
    Question("goal_priorities", "Goal priority ranking", "--Y", Form.PAIRS),
    Question("active_topics", "Active topic tracking", "~~Y"),
    Question("topic_pivots", "Topic pivot detection", "-~Y", Form.PAIRS),
    Question("callbacks", "Callback/return detection", "-YY"),
    Question("sentiment", "Sentiment/emotion tracking", "~YY"),
    Question("urgency", "Sentiment-driven urgency", "--Y"),
    Question("entity_types", "Entity type classification", "--Y", Form.PAIRS),
    Question("transition_order", "Temporal transition ordering", "YYY", Form.PAIRS),
    Question("transition_types", "Transition type classification", "--Y", Form.PAIRS),
    Question("compression", "Memory decay/compression", "-~Y"),
    Question("sticky_failures", "Failure/reversal sticky retention", "--Y"),
    Question("unknowns", "Explicit unknown tracking", "--Y"),
    Question("assumptions", "Explicit assumption tracking", "--Y"),
    Question("watch_list", "Persistent scan pattern watchlist", "--Y"),
    Question("token_budget", "Token-budget-aware rendering", "--Y", Form.COMPUTED),
    Question("machine_parseable", "Machine-parseable structured output", "--Y", Form.COMPUTED),
)
"""In the order of table 7."""


def questions_named(ids: Sequence[str]) -> tuple[Question, ...]:
    """The questions of these ids, in the order of table 7; all if none is named.

    Raises:
        UnknownNameError: There is no such question; lists all.
    """
    return _named("question", {one.id: one for one in QUESTIONS}, ids)


def _named(kind: str, known: Mapping[str, _OneT], names: Sequence[str]) -> tuple[_OneT, ...]:
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return tuple(one for name, one in known.items() if not names or name in names)


PAPER = "the paper's four turns"
"""What the paper's own dialogue is called in the file of questions."""
DIALOGUES, KEY = "dialogues.json", "questions.json"

Phrase = Annotated[str, Field(pattern=r"\S", max_length=200)]
"""A short phrase; `|` stands between alternatives."""
Item = Annotated[tuple[Phrase, ...], Field(min_length=1)]
"""One phrase, or several that belong together in order."""


class Key(Value):
    """What one dialogue is asked by, beside its messages."""

    replies: tuple[str, ...]
    """What the assistant said after each turn."""
    summary: Annotated[str, Field(pattern=r"\S", max_length=2000)]
    """A summary of the talk after the last turn, written by hand."""
    answers: dict[str, tuple[Item, ...]]
    """The right items by question; none means that the right answer is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """A dialogue and the key to it."""

    name: str
    turns: tuple[ConversationAnalysis, ...]
    """What each message says by hand, with the message."""
    key: Key

    @property
    def messages(self) -> tuple[str, ...]:
        """What the user said."""
        return tuple(turn.message for turn in self.turns)

    def right(self, question: Question) -> tuple[Item, ...]:
        """The right items; none where the right answer is empty."""
        return self.key.answers.get(question.id, ())


def exams_in(folder: Path) -> tuple[Exam, ...]:
    """The paper's dialogue and those of a folder's `dialogues.json`, keyed by `questions.json`.

    Raises:
        ConfigurationError: A file cannot be read, a dialogue has no answers or answers no
            dialogue, or the answers do not fit the questions; says where.
        UnknownNameError: An answer is to no question.
    """
    dialogues = (Dialogue(name=PAPER, turns=CONVERSATION), *load_dialogues(folder / DIALOGUES))
    path = folder / KEY
    keys = read_json(
        path,
        TypeAdapter(dict[str, Key]),
        "questions",
        '{NAME: {"replies": [TEXT, ...], "summary": TEXT, "answers": {ID: [[PHRASE], ...]}}}',
    )
    names = [one.name for one in dialogues]
    for name in dict.fromkeys([*names, *keys]):
        if names.count(name) > 1:
            raise ConfigurationError(f"Two dialogues are called {name!r}. Give each its own name.")
        if name not in keys:
            raise ConfigurationError(f"{str(path)!r} has no answers for {name!r}. Add them.")
        if name not in names:
            raise ConfigurationError(
                f"{str(path)!r} has answers for {name!r}, which is no dialogue. Add the dialogue "
                f"to {DIALOGUES}, or take the answers out."
            )
    for dialogue in dialogues:
        for problem in _misfits(dialogue, keys[dialogue.name]):
            raise ConfigurationError(f"{str(path)!r}, dialogue {dialogue.name!r}: {problem}")
    return tuple(Exam(name=one.name, turns=one.turns, key=keys[one.name]) for one in dialogues)


def exams_named(exams: Sequence[Exam], names: Sequence[str]) -> tuple[Exam, ...]:
    """The exams of these names; all if none is named.

    Raises:
        UnknownNameError: There is no such dialogue; lists all.
    """
    return _named("dialogue", {exam.name: exam for exam in exams}, names)


def _misfits(dialogue: Dialogue, key: Key) -> Iterator[str]:
    """Where a key does not fit its dialogue and the questions, as sentences."""
    if len(key.replies) != len(dialogue.turns):
        yield f"{len(key.replies)} replies to {len(dialogue.turns)} turns. Write one each."
    questions_named(tuple(key.answers))
    for question in QUESTIONS:
        if question.form is Form.COMPUTED:
            continue
        if question.id not in key.answers:
            yield f"no answer to {question.id!r}. Write [] where the right answer is none."
        for item in key.answers.get(question.id, ()):
            if (len(item) > 1) is not (question.form is Form.PAIRS):
                wanted = "two phrases" if question.form is Form.PAIRS else "one phrase"
                yield f"an answer to {question.id!r} is {wanted}, not {list(item)!r}."


Claim = tuple[str, ...]
"""What a text says in answer to a question: one passage, or several that belong together in
order. A passage may be a phrase or a whole sentence."""


class Reader(Protocol):
    """Answers questions from a text alone; it knows neither who wrote it nor what is right."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    async def read(self, text: str, question: Question) -> tuple[Claim, ...] | None:
        """What the text says in answer; empty if it says nothing, None if no answer came."""
        ...


_WORD = re.compile(r"[\w+#]+(?:'[a-z]+)?")
_ENDINGS = (
    "ations", "ation", "ating", "ated", "ates", "ate", "ments", "ment", "ings", "ing", "edly",
    "ied", "ies", "ed", "ers", "er", "es", "ly", "s", "e", "y",
)  # fmt: skip
_SHORTEST = 3
"""Letters that are left of a word at least."""
_SMALL_WORDS = (
    "a an the this that these those it its i me my we us our you your he him his she her they them "
    "their to of for in on at by from with about into and or but if so as is are was were be been "
    "am do does did doing done have has had having get gets got getting make makes made making go "
    "goes going went will would can could should may might must not no n't user users user's there "
    "what which who how when where why some any all more most than then"
)
_SMALL = frozenset(_SMALL_WORDS.split())


def stem(word: str) -> str:
    """A word without its usual ending: `scraping`, `scraper` and `scraped` are `scrap`."""
    short = word.casefold().removesuffix("'s")
    for ending in _ENDINGS:
        if short.endswith(ending) and len(short) - len(ending) >= _SHORTEST:
            short = short[: -len(ending)]
            break
    if len(short) > _SHORTEST and short[-1] == short[-2]:
        short = short[:-1]
    return short


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that say something; of all words where none does."""
    words = [word.casefold() for word in _WORD.findall(text)]
    content = [word for word in words if word not in _SMALL]
    return frozenset(map(stem, content or words))


def says(text: str, phrase: str) -> bool:
    """Whether a text has the words of a phrase, or of one of its alternatives (`a|b`).

    One or two words must all be there, of more two thirds.
    """
    there = content_words(text)
    return any(_has(there, content_words(one)) for one in phrase.split("|") if one.strip())


def _has(there: frozenset[str], wanted: frozenset[str]) -> bool:
    needed = len(wanted) if len(wanted) <= 2 else ceil(len(wanted) * 2 / 3)
    return bool(wanted) and len(wanted & there) >= needed


FULL, PARTIAL = 0.7, 0.3
"""The least scores that are full, and partial (section 6.3)."""


class Mark(StrEnum):
    """A score as table 7 writes it."""

    FULL = "Y"
    PARTIAL = "~"
    NONE = "-"

    @classmethod
    def of(cls, score: float) -> Mark:
        """The mark of a score."""
        return cls.FULL if score >= FULL else cls.PARTIAL if score >= PARTIAL else cls.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How good an answer is, from 0 to 1."""

    value: float
    """F1 over the items; 1 for rightly claiming nothing."""
    recall: float
    """The share of the right items that were claimed; the value where there are none."""

    @classmethod
    def of(cls, value: float) -> Self:
        """One that is the same in both."""
        return cls(value=value, recall=value)


def score(claims: Sequence[Claim] | None, right: Sequence[Item], *, sampled: bool = False) -> Score:
    """What these claims are worth.

    Args:
        claims: What was read from a text; None if there was no answer, which is worth nothing.
        right: The right items. None means that any claim is wrong.
        sampled: Whether claims beyond the right items cost nothing, because these are only some.
    """
    if claims is None:
        return Score.of(0.0)
    if not right:
        return Score.of(float(not claims))
    recalled = [item for item in right if any(contains(claim, item) for claim in claims)]
    recall = len(recalled) / len(right)
    if sampled or not recalled:
        return Score.of(recall)
    correct = sum(any(contains(claim, item) for item in right) for claim in claims)
    precision = correct / len(claims)
    return Score(value=2 * precision * recall / (precision + recall), recall=recall)


def contains(claim: Claim, item: Item) -> bool:
    """Whether parts of the claim say the phrases of the item, in this order."""
    parts = iter(claim)
    return all(any(says(part, phrase) for part in parts) for phrase in item)
