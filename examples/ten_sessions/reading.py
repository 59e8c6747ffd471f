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
from coag.models import AskSettings, StructuredModel
from coag.schema import PromptMessage, Value

_FEELING = re.compile(
    r"\b(?:afraid|fear\w*|fright\w*|terrif\w*|terror|horr\w+|dread\w*|panic\w*|worr\w+"
    r"|anxi\w+|nervous|uneasy|relie[fv]\w*|grate\w+|gratitude|thankful|happy|happiness"
    r"|glad|joy\w*|overjoyed|delight\w*|lov(?:e|ed|ing)|hat(?:e|ed|red)|ang(?:er|ry)"
    r"|furious|rage|sad\w*|grief|cr(?:y|ied|ying)|tears|wept|weep\w*|heart\w*|shock\w*"
    r"|awe|overwhelm\w*|hope\w*|proud|pride|ashamed|shame|guilt\w*|lonely|moved|sick"
    r"|frozen|trembl\w+|shak(?:e|ing)|torn|pain\w*|despair\w*|desperate\w*|excite\w*)\b",
    re.IGNORECASE,
)
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
    """How emotional a text is: its words of feeling, and how often it says "I", by its length."""
    length = max(1, len(text.split()))
    return (3 * len(_FEELING.findall(text)) + len(_PERSON.findall(text))) / length


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
