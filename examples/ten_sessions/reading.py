"""A blind reading: which of two memories of one event is the more emotional character's?

The names of the characters are taken out. Rules count words of feeling; a model is asked twice,
with the two texts in either order, and has decided only if it says the same both times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coag.errors import ModelAnswerError, ModelCallError
from coag.memory.dynamics import arousal_of, features_of
from coag.models import AskSettings, StructuredModel
from coag.schema import PromptMessage, Value

_PERSON = re.compile(r"\b(?:I|me|my|mine|myself)\b")
_QUESTION = (
    "Two people remember the same event. One of them is an emotional person, the other a cool one. "
    "Which text was written by the emotional person?\n\nText A: {a}\n\nText B: {b}"
)


class EmotionalNarrator(Value):
    """Which text was written by the emotional person."""

    text: Literal["A", "B"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindReading:
    """How often the more emotional character was found."""

    right: int = 0
    wrong: int = 0
    undecided: int = 0

    def __str__(self) -> str:
        pairs = self.right + self.wrong + self.undecided
        return f"{self.right} of {pairs} right, {self.wrong} wrong, {self.undecided} undecided"


def emotional_score(text: str) -> float:
    """How emotional a text is: words of feeling, stirring words, and how often it says "I"."""
    features = features_of(text)
    person = len(_PERSON.findall(text)) / max(1, len(text.split()))
    return features.emotion + arousal_of(text) + person


async def read_pairs(
    pairs: Sequence[tuple[str, str]], names: Sequence[str], model: StructuredModel | None = None
) -> BlindReading:
    """Reads pairs of texts, the first of each by the more emotional character.

    Args:
        pairs: The texts.
        names: What is taken out of them.
        model: Who reads; None for rules.
    """
    counts = {"right": 0, "wrong": 0, "undecided": 0}
    for pair in pairs:
        emotional, cool = (_without(text, names) for text in pair)
        if model is None:
            difference = emotional_score(emotional) - emotional_score(cool)
            found = "right" if difference > 0 else "wrong" if difference < 0 else "undecided"
        else:
            answers = await _asked(model, emotional, cool), await _asked(model, cool, emotional)
            found = {("A", "B"): "right", ("B", "A"): "wrong"}.get(answers, "undecided")
        counts[found] += 1
    return BlindReading(**counts)


async def _asked(model: StructuredModel, a: str, b: str) -> str:
    """A or B; nothing where no answer came."""
    prompt = (PromptMessage(role="user", content=_QUESTION.format(a=a, b=b)),)
    try:
        answer = await model.ask(prompt, EmotionalNarrator, settings=AskSettings(max_tokens=40))
    except (ModelAnswerError, ModelCallError):
        return ""
    return answer.value.text


def _without(text: str, names: Sequence[str]) -> str:
    for name in names:
        text = re.sub(rf"\b{re.escape(name)}\b", "someone", text)
    return text
