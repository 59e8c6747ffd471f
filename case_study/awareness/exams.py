"""The 20 questions, the dialogues with their right answers, and what an answer is worth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from coag.awareness.adapters import ConversationAnalysis
from coag.schema import Value

from .dialogues import CONVERSATION, Dialogue, load_dialogues


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a talk, as things stand after its last turn."""

    id: str
    label: str
    """The information type, as in table 7."""
    printed: str
    """The row of table 7 as the paper prints it, for buffer, summary and awareness: Y full, ~
    partial, - not captured."""
    computed: bool = False
    """Whether nothing is read: the text itself is measured."""

    @property
    def sampled(self) -> bool:
        """Whether the right items are only some of what is true, so that more costs nothing."""
        return self.id in ("entity_types", "transition_order", "compression")


QUESTIONS = (
    Question("explicit_goals", "Explicit goal identification", "~YY"),
    Question("implied_goals", "Inferred/implicit goals", "--Y"),
    Question("goal_hierarchy", "Goal hierarchy (parent/child)", "--Y"),
    Question("goal_lifecycle", "Goal lifecycle tracking", "--Y"),
    Question("goal_priorities", "Goal priority ranking", "--Y"),
    Question("active_topics", "Active topic tracking", "~~Y"),
    Question("topic_pivots", "Topic pivot detection", "-~Y"),
    Question("callbacks", "Callback/return detection", "-YY"),
    Question("sentiment", "Sentiment/emotion tracking", "~YY"),
    Question("urgency", "Sentiment-driven urgency", "--Y"),
    Question("entity_types", "Entity type classification", "--Y"),
    Question("transition_order", "Temporal transition ordering", "YYY"),
    Question("transition_types", "Transition type classification", "--Y"),
    Question("compression", "Memory decay/compression", "-~Y"),
    Question("sticky_failures", "Failure/reversal sticky retention", "--Y"),
    Question("unknowns", "Explicit unknown tracking", "--Y"),
    Question("assumptions", "Explicit assumption tracking", "--Y"),
    Question("watch_list", "Persistent scan pattern watchlist", "--Y"),
    Question("token_budget", "Token-budget-aware rendering", "--Y", computed=True),
    Question("machine_parseable", "Machine-parseable structured output", "--Y", computed=True),
)
"""In the order of table 7."""


PAPER = "the paper's four turns"
"""What the paper's own dialogue is called in the file of questions."""
DATA = Path(__file__).parent
"""The folder of the further dialogues and of the right answers."""

Item = tuple[str, ...]
"""One short phrase, or two that belong together in order; `|` is between alternatives."""


class Key(Value):
    """What one dialogue is asked by, beside its messages."""

    replies: tuple[str, ...]
    """What the assistant said after each turn."""
    summary: str
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


@cache
def exams() -> Mapping[str, Exam]:
    """The paper's dialogue and the twelve further ones, by name."""
    dialogues = (Dialogue(name=PAPER, turns=CONVERSATION), *load_dialogues(DATA / "dialogues.json"))
    keys = TypeAdapter(dict[str, Key]).validate_json((DATA / "questions.json").read_bytes())
    return {one.name: Exam(name=one.name, turns=one.turns, key=keys[one.name]) for one in dialogues}


Claim = tuple[str, ...]
"""What a text says in answer to a question: one passage, or several that belong together in
order. A passage may be a phrase or a whole sentence."""


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


def score(claims: Sequence[Claim], right: Sequence[Item], *, sampled: bool = False) -> Score:
    """What these claims are worth.

    Args:
        claims: What was read from a text.
        right: The right items. None means that any claim is wrong.
        sampled: Whether claims beyond the right items cost nothing, because these are only some.
    """
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
