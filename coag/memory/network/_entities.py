"""What a record is about: the entities that it mentions, by simple rules of writing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coag.schema import Record

LONGEST_NAME = 6
"""Words; what is longer is a sentence, no name."""

_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[.!?:;,\n()\[\]\"]")
_SMALL_WORDS = (
    "a an the i you he she it we they my your his her its our their this that these those and but"
    " or so if when where what who which how why as at by for from in of on to with is are was"
    " were do does did has have had can could will would not no yes there here then"
)
_LEADING = frozenset(_SMALL_WORDS.split())
"""Words that a sentence begins with, written large there; a name does not begin with them."""


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without possessive endings."""
    return _WORD.findall(_POSSESSIVE.sub(" ", text).casefold())


def entity_named(name: str) -> str:
    """The one form of an entity's name: small letters, single blanks, no punctuation.

    A possessive ending is no part of it; what has no letter (a number) is no entity, and gives
    an empty text.
    """
    words = words_of(name)
    if len(words) > LONGEST_NAME or not any(any(map(str.isalpha, word)) for word in words):
        return ""
    return " ".join(words)


def entities_of(record: Record, most: int) -> tuple[str, ...]:
    """The entities that a record mentions, each once, those of its fields first.

    These are the subject and the value of its fact, the place of its event, and the names in its
    text: words written with a capital, several in a row being one name, with the numbers behind
    them. Who said it is none of them.

    Args:
        record: The record.
        most: At most so many; of a longer text the first ones count.
    """
    named = filter(None, map(entity_named, _mentions(record)))
    return tuple(dict.fromkeys(named))[:most]


def with_name(text: str, old: str, new: str) -> str:
    """A text in which one entity stands for another; behind it, where it names the other nowhere.

    Args:
        text: What is said, in any writing.
        old: The entity that it names.
        new: The entity to put in its place.
    """
    words = r"[\W_]+".join(map(re.escape, old.split()))
    put, count = re.subn(rf"(?<![^\W_]){words}(?![^\W_])", lambda _: new, text, flags=re.IGNORECASE)
    return put if old and count else f"{text} {new}"


def _mentions(record: Record) -> Iterator[str]:
    if record.fact is not None:
        yield record.fact.subject
        yield record.fact.value
    if record.event is not None:
        yield record.event.place
    yield from _names(record.text)


def _names(text: str) -> Iterator[str]:
    """Runs of words with capitals; in a script without capitals there are none."""
    run: list[str] = []
    for token in _TOKEN.findall(text):
        word = _POSSESSIVE.sub("", token)
        capital = word[:1].isupper()
        if (run and word.isdecimal()) or (capital and (run or word.casefold() not in _LEADING)):
            run.append(word)
        elif run:
            yield " ".join(run)
            run = []
        if run and word != token:  # what comes after a possessive is another name
            yield " ".join(run)
            run = []
    if run:
        yield " ".join(run)
