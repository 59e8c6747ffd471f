"""The forms under which names are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s?(?!\w)")
_WORD = re.compile(r"[\w+#]+")
_INSIDE = re.compile(r"\S[./\\_:@=<>(){}\[\]$~%&*^|]\S|[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
"""What the words of a language have not: a path, a call, a name in code."""
_EDGES = " \t\n.,;:!?\"'`\u2018\u2019\u201c\u201d"
_ACCENTED = (range(0x41, 0x250), range(0x370, 0x400))
"""Latin and Greek: elsewhere a mark makes another letter."""
_NO_PLURAL = ("ss", "us", "is", "news", "series", "species")


def _plain(text: str) -> str:
    """The text without case, compatibility forms, and the accents of Latin and Greek letters."""
    letters: list[str] = []
    folded = unicodedata.normalize("NFKC", text).casefold()
    for letter in unicodedata.normalize("NFC", folded):
        base = unicodedata.normalize("NFD", letter)[0]
        accented = any(ord(base) in block for block in _ACCENTED)
        letters.append(base if accented else letter)
    return "".join(letters)


def is_literal(name: str) -> bool:
    """Whether a name is one of code or files, where each sign counts: `src/a.py`, `get_item`."""
    bare = name.strip(_EDGES)
    return not re.search(r"\s", bare) and _INSIDE.search(bare) is not None


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, plain, without punctuation and possessives; `+` and `#` are kept."""
    return tuple(_WORD.findall(_POSSESSIVE.sub("", _plain(name)).replace("_", " ")))


def _joined(words: Collection[str]) -> str:
    """The words as one, so that `web scraper` is `webscraper`; numbers stay apart."""
    return re.sub(r"(?<!\d) | (?!\d)", "", " ".join(words))


def normal_form(name: str) -> str:
    """What two spellings of one name have in common.

    Case, accents, punctuation, possessives and spaces do not count. In a name of code or files
    only case and the signs around it do not.
    """
    if is_literal(name):
        return unicodedata.normalize("NFKC", name.strip(_EDGES)).casefold()
    return _joined(words_of(name)) or unicodedata.normalize("NFKC", name).casefold().strip()


def singular_form(name: str) -> str:
    """The normal form with the last word in the singular, as far as English endings tell."""
    if is_literal(name):
        return normal_form(name)
    words = words_of(name)
    return _joined((*words[:-1], _singular(words[-1]))) if words else normal_form(name)


def core_form(name: str, generic: Collection[str]) -> str:
    """The singular form without words that say nothing of their own; empty if none is left."""
    if is_literal(name):
        return normal_form(name)
    words = [word for word in words_of(name) if word not in generic]
    return _joined((*words[:-1], _singular(words[-1]))) if words else ""


def _singular(word: str) -> str:
    """The word without the ending of an English plural."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]
