"""Comparing texts by their words, whatever their spelling, spacing and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

RUN_LENGTH = 5
"""So many words in a row that two texts share are taken for a quotation."""

_NEAR = 0.9
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts without spaces between words: each sign counts as a word."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_FILLERS = frozenset({"a", "an", "the", "please"})
_TURNING = frozenset(
    (
        *("not", "no", "never", "none", "nor", "without", "unless", "except", "only"),
        *("before", "after", "until", "t", "dont", "doesnt", "cannot", "cant", "wont"),
        *("isnt", "arent", "shouldnt", "mustnt"),
    )
)
"""Words that turn a sentence around; texts that differ in one of them are not near-equal."""

_APOSTROPHES = {ord("'"): None, 0x2019: None}

Run = tuple[str, ...]


def words(text: str) -> list[str]:
    """The words of a text: compatibility forms folded, case and invisible signs dropped."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    visible = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return _WORD.findall(visible)


def runs(text: str, length: int = RUN_LENGTH) -> set[Run]:
    """Every run of so many words in the text."""
    return _runs(words(text), length)


def shared_run(
    text: str, others: Iterable[str], *, known: str = "", length: int = RUN_LENGTH
) -> str | None:
    """The first run of words that a text shares with one of the others, or None.

    Args:
        text: The text to check.
        others: The texts that it must not quote.
        known: Runs that stand in this text do not count.
        length: How many words make a run.
    """
    foreign = {run for other in others for run in runs(other, length)}
    suspect = foreign - runs(known, length)
    spoken = words(text)
    for start in range(len(spoken) - length + 1):
        run = tuple(spoken[start : start + length])
        if run in suspect:
            return " ".join(run)
    return None


def quotes(text: str, others: Iterable[str]) -> bool:
    """Whether a text shares a run with one of the others, or, being shorter, stands in it."""
    length = min(RUN_LENGTH, len(words(text)))
    return length > 0 and shared_run(text, others, length=length) is not None


def near_equal(one: str, other: str) -> bool:
    """Whether two sentences say the same in all but a filler or one word in ten.

    Sentences that differ in a number, a negation or an order of time are never near-equal.
    """
    first, second = _content(one), _content(other)
    if first == second:
        return True
    matcher = SequenceMatcher(a=first, b=second, autojunk=False)
    if matcher.ratio() < _NEAR:
        return False
    differing = [
        word
        for tag, start, end, other_start, other_end in matcher.get_opcodes()
        if tag != "equal"
        for word in (*first[start:end], *second[other_start:other_end])
    ]
    return not any(word in _TURNING or word.isnumeric() for word in differing)


def _runs(spoken: Sequence[str], length: int) -> set[Run]:
    return {tuple(spoken[start : start + length]) for start in range(len(spoken) - length + 1)}


def _content(text: str) -> list[str]:
    return [word for word in words(text.translate(_APOSTROPHES)) if word not in _FILLERS]
