"""The forms under which names are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s?(?!\w)")
_WORD = re.compile(r"[\w+#]+")
_INSIDE = re.compile(r"^[./\\@]\w|\S[./\\_:@=<>(){}\[\]$~%&*^|]\S|[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
"""What the words of a language have not: a path, a call, a name in code."""
_GAP = re.compile(r"(?<!\d) | (?!\d)")
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{6,}")
_CODE_LETTERS = 3
"""Letters in a row that a number may have around it: `ORD-17`, `17b`."""
_QUOTES = " \t\n\"'`\u2018\u2019\u201c\u201d"
_STOPS = _QUOTES + ".,;:!?"
_ACCENTED = (range(0x41, 0x250), range(0x370, 0x400))
"""Latin and Greek: elsewhere a mark makes another letter."""
_NO_PLURAL = ("ss", "us", "is", "news", "series", "species")


def _plain(text: str) -> str:
    """The text without case, compatibility forms, and the accents of Latin and Greek letters."""
    if text.isascii():
        return text.lower()
    letters: list[str] = []
    folded = unicodedata.normalize("NFKC", text).casefold()
    for letter in unicodedata.normalize("NFC", folded):
        base = unicodedata.normalize("NFD", letter)[0]
        accented = any(ord(base) in block for block in _ACCENTED)
        letters.append(base if accented else letter)
    return "".join(letters)


def _bare(name: str) -> str:
    """The name without quotes around it and stops after it."""
    return name.strip(_QUOTES).rstrip(_STOPS)


def is_literal(name: str) -> bool:
    """Whether a name is one of code or files, where each sign counts: `src/a.py`, `get_item`."""
    bare = _bare(name)
    return _INSIDE.search(bare) is not None and len(bare.split()) == 1


def is_code(name: str) -> bool:
    """Whether a name is a number, an id or a short code, which says nothing of what it names.

    `17`, `#17`, `ORD-17`, `9f8c1e2a`, `A`; not `Python 3`, `python` or `app2.py`.
    """
    bare = _bare(name)
    tokens = _TOKEN.findall(_plain(bare))
    if not _DIGIT.search(bare):
        return len("".join(tokens)) <= 2 and bare.isupper()
    most = 1 if is_literal(name) else _CODE_LETTERS
    return all(
        _HEX.fullmatch(token) or all(len(run) <= most for run in _LETTERS.findall(token))
        for token in tokens
    )


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, plain, without punctuation and possessives; `+` and `#` are kept."""
    plain = _plain(name)
    if "'" in plain or "\u2019" in plain:
        plain = _POSSESSIVE.sub("", plain)
    return tuple(_WORD.findall(plain.replace("_", " ")))


def _joined(words: Iterable[str]) -> str:
    """The words as one, so that `web scraper` is `webscraper`; numbers stay apart."""
    text = " ".join(words)
    return _GAP.sub("", text) if _DIGIT.search(text) else text.replace(" ", "")


class NameForms(NamedTuple):
    """What spellings of one name have in common, from strict to loose."""

    normal: str
    """Case, accents, punctuation, possessives and spaces do not count. In a name of code or files
    only case and the signs around it do not."""
    singular: str
    """The normal form with the last word in the singular, as far as English endings tell."""
    core: str
    """The singular form without words that say nothing of their own; empty if none is left."""


@lru_cache(maxsize=1024)
def forms_of(name: str, generic: frozenset[str] = frozenset()) -> NameForms:
    """The forms of a name; `generic` are words that say nothing of their own beside another."""
    words = () if is_literal(name) else words_of(name)
    if not words:
        plain = unicodedata.normalize("NFKC", _bare(name) or name.strip()).casefold()
        return NameForms(normal=plain, singular=plain, core=plain)
    normal = _joined(words)
    singular = _in_singular(words, normal)
    own = tuple(word for word in words if word not in generic)
    if len(own) < len(words):
        return NameForms(normal, singular, _in_singular(own, _joined(own)) if own else "")
    return NameForms(normal, singular, singular)


def _in_singular(words: tuple[str, ...], joined: str) -> str:
    """The words joined, the last one in the singular."""
    last = _singular(words[-1])
    return joined if last == words[-1] else _joined((*words[:-1], last))


def _singular(word: str) -> str:
    """The word without the ending of an English plural."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]
