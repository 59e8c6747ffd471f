"""Comparing texts by their words, whatever their spelling, spacing and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from coag._util.text import is_compared

RUN_LENGTH = 5
"""So many words in a row that two texts share are taken for a quotation."""

_NEAR = 0.9
UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts without spaces between words: each sign counts as a word."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
_FILLERS = frozenset({"a", "an", "the", "please"})
_NEGATIONS = "not no never none nor without unless except only t dont doesnt cannot cant wont"
_TURNING = frozenset(f"{_NEGATIONS} isnt arent shouldnt mustnt before after until".split())
"""Words that turn a sentence around; texts that differ in one of them are not near-equal."""
_PERSONS = "i me my mine we us our you your user users s"
_FRAME = frozenset(f"{_PERSONS} a an the please remember note that".split())
"""Words that do not decide whether two sentences of a speaker, or about one, say the same."""
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")

_LETTERS = 16
"""So many letters in a row are a quotation too, wherever spaces and dots cut them into words."""

# fmt: off
_ALIKE = {
    "a": "\u0430\u03b1\u0251", "b": "\u0432\u044c\u03b2", "c": "\u0441", "d": "\u0501",
    "e": "\u0435\u03b5\u04bd", "g": "\u0261", "h": "\u043d\u04bb", "i": "\u0456\u03b9\u0131\u0269",
    "j": "\u0458", "k": "\u043a\u03ba", "l": "\u04cf", "m": "\u043c", "n": "\u03b7\u0578",
    "o": "\u043e\u03bf\u0585", "p": "\u0440\u03c1", "q": "\u051b", "s": "\u0455",
    "t": "\u0442\u03c4", "u": "\u03c5\u057d\u03bc", "v": "\u0475\u03bd\u028b", "w": "\u051d\u03c9",
    "x": "\u0445\u03c7", "y": "\u0443\u03b3", "z": "\u03b6",
}
# fmt: on
"""Cyrillic, Greek and other small letters (capitals come folded) drawn like this Latin one."""
_LOOK_ALIKES = str.maketrans({sign: to for to, signs in _ALIKE.items() for sign in signs})
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
"""Letters and symbols that show nothing."""

_APOSTROPHES = {ord("'"): None, 0x2019: None}

Run = tuple[str, ...]


def words(text: str) -> list[str]:
    """The words of a text: forms, case, accents and look-alikes folded, invisible signs dropped."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _WORD.findall("".join(map(_drawn, folded)))


@lru_cache(maxsize=8192)
def _drawn(sign: str) -> str:
    """What a small letter is drawn like, without its accents; nothing for an invisible sign."""
    if sign.isspace():
        return " "
    if unseen(sign):
        return ""
    alike = unicodedata.normalize("NFD", sign)[0].translate(_LOOK_ALIKES)
    return alike if alike.isascii() else sign


def shared_run(
    text: str, others: Iterable[str], *, known: str = "", length: int = RUN_LENGTH
) -> str | None:
    """The first run of words that a text shares with one of the others, or None.

    A run is also found by its letters alone, sixteen or more of them, if one of the texts cuts
    its words into pieces, as `t.ransfer` does.

    Args:
        text: The text to check.
        others: The texts that it must not quote.
        known: Runs that are in this text do not count.
        length: How many words make a run.
    """
    foreign = [words(other) for other in others]
    suspect = {run for one in foreign for run in _runs(one, length)} - _runs(words(known), length)
    spoken = words(text)
    for start in range(len(spoken) - length + 1):
        run = tuple(spoken[start : start + length])
        if run in suspect:
            return " ".join(run)
    hidden = {run for one in foreign for run in _long_runs(one, length)}
    return _hidden_run("".join(spoken), hidden, "".join(words(known)))


def quotes(text: str, others: Iterable[str]) -> bool:
    """Whether a text shares a run with one of the others, or, being shorter, is in it."""
    length = min(RUN_LENGTH, len(words(text)))
    return length > 0 and shared_run(text, others, length=length) is not None


def restates(text: str, said: Iterable[str], *parts: str) -> bool:
    """Whether every sentence of a text is a whole one of a speaker's own, but for his person.

    So `The user likes tea` restates `Please remember that I like tea`. What leaves a word out
    does not: it may have been a condition, a negation, or whom he quotes. A question states
    nothing. No part, e.g. a value, may be of other words than the text.
    """
    spoken = [_stems(one) for text in said for one in _sentences(text) if not one.endswith("?")]
    stated = [stems for one in _sentences(text) if (stems := _stems(one))]
    known = {*words(text), *_FRAME}
    return (
        bool(stated)
        and all(len(stems) > 1 and stems in spoken for stems in stated)
        and all(known.issuperset(words(part)) for part in parts)
    )


def _sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE_END.split(text)]


def _stems(sentence: str) -> list[str]:
    """The words of a sentence that carry its meaning, without an `s` at their ends."""
    found = [word for word in words(sentence) if word not in _FRAME]
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found]


def near_equal(one: str, other: str) -> bool:
    """Whether two sentences say the same in all but a filler or one word in ten.

    Sentences that differ in a number, a negation or an order of time are never near-equal.
    """
    first, second = content_words(one), content_words(other)
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


def unseen(sign: str) -> bool:
    """Whether a sign shows nothing by itself, or only adds a mark to a letter."""
    return sign in _BLANKS or not is_compared(sign)


def _runs(spoken: Sequence[str], length: int) -> set[Run]:
    return {tuple(spoken[start : start + length]) for start in range(len(spoken) - length + 1)}


def _long_runs(spoken: Sequence[str], length: int) -> Iterable[Run]:
    """From each word on, the fewest words that are so many and have letters enough."""
    end, size = 0, 0
    for start, first in enumerate(spoken):
        while end < len(spoken) and (end - start < length or size < _LETTERS):
            size += len(spoken[end])
            end += 1
        if end - start < length or size < _LETTERS:
            return
        yield tuple(spoken[start:end])
        size -= len(first)


def _hidden_run(letters: str, hidden: Iterable[Run], known: str) -> str | None:
    """The first run whose letters are among a text's, and not among those of what is known."""
    starts = {letters[at : at + _LETTERS] for at in range(len(letters) - _LETTERS + 1)}
    found: list[tuple[int, Run]] = []
    for run in hidden if starts else ():
        joined = "".join(run)
        if joined[:_LETTERS] in starts and joined in letters and joined not in known:
            found.append((letters.index(joined), run))
    return " ".join(min(found)[1]) if found else None


def content_words(text: str) -> list[str]:
    """The words of a text without those that add nothing to it."""
    return [word for word in words(text.translate(_APOSTROPHES)) if word not in _FILLERS]
