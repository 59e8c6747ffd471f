"""Words that say something, without their endings."""

from __future__ import annotations

import re
from math import ceil

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
    said = [word.casefold() for word in _WORD.findall(text)]
    telling = [word for word in said if word not in _SMALL]
    return frozenset(map(stem, telling or said))


def says(text: str, phrase: str) -> bool:
    """Whether a text has the words of a phrase, or of one of its alternatives (`a|b`).

    One or two words must all be there, of more two thirds.
    """
    there = content_words(text)
    return any(_has(there, content_words(one)) for one in phrase.split("|") if one.strip())


def _has(there: frozenset[str], wanted: frozenset[str]) -> bool:
    needed = len(wanted) if len(wanted) <= 2 else ceil(len(wanted) * 2 / 3)
    return bool(wanted) and len(wanted & there) >= needed
