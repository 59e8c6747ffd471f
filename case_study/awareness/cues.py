"""The words by which a text says what something is, as `cues.txt` lists them."""

from __future__ import annotations

import re
from pathlib import Path

_LISTS = Path(__file__).with_name("cues.txt")


def _read(text: str) -> dict[str, str]:
    """The alternatives of each list, by its name."""
    found: dict[str, str] = {}
    for part in text.split("\n# ")[1:]:
        name, _, body = part.partition("\n")
        entries = (entry for line in body.splitlines() for entry in line.split("  ") if entry)
        found[name] = "|".join(_alternative(entry, found) for entry in entries)
    return found


def _alternative(entry: str, earlier: dict[str, str]) -> str:
    if entry.startswith("@"):
        return earlier[entry[1:]]
    return entry[:-1] if entry.endswith("-") else rf"{entry}(?!\w)"


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})", re.I)


def _labels(name: str) -> dict[str, re.Pattern[str]]:
    return {
        list.partition(": ")[2]: _pattern(words)
        for list, words in _WORDS.items()
        if list.startswith(f"{name}: ")
    }


_WORDS = _read(_LISTS.read_text(encoding="utf-8"))

GOAL = _pattern(_WORDS["goal"])
IMPLIED = _pattern(_WORDS["implied"])
CLOSED = _pattern(_WORDS["closed"])
NO_STATED_GOAL = _pattern(_WORDS["implied"], _WORDS["closed"])
"""What keeps a statement from being a goal that was stated and is open."""
CALLBACK = _pattern(_WORDS["callback"])
URGENT = _pattern(_WORDS["urgent"])
FAILURE = _pattern(_WORDS["failure"])
UNKNOWN = _pattern(_WORDS["unknown"])
ASSUMED = _pattern(_WORDS["assumed"])
WATCHED = _pattern(_WORDS["watched"])
PIVOT = _pattern(_WORDS["pivot"])
NOW = _pattern(_WORDS["now"])
TOPICS = _pattern(_WORDS["topics"])
"""Headings of lists of what a talk is about now."""
COURSE = _pattern(_WORDS["course"])
"""Headings of lists of what happened, in order."""
PAST = _pattern(_WORDS["past"])
ORDER = _pattern(_WORDS["order"])
HIGH = _pattern(_WORDS["high"])
LOW = _pattern(_WORDS["low"])
STATUSES = _labels("statuses")
KINDS = _labels("kinds")
EVENTS = _labels("events")
FEELINGS = tuple(_labels("feelings").items())
"""What a feeling is called, and by what it shows: by name or in the manner of speaking."""

NEGATED = re.compile(r"(?:\bnot|\bno longer|\bnever|n't|\bno|\bwithout)\s+(?:\w+\s+)?$", re.I)
"""What takes the word after it back."""
