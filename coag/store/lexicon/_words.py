"""Which words of a record are looked through, and which words of a query count."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coag.schema import Record

_WORD = re.compile(r"[^\W_]+")
_LONGEST_WORD = 64
_MOST_WORDS = 64
"""Of a query: a longer one is a text of its own, and its first words tell what it is about."""

_ARTICLES_AND_LINKS = (
    "a an the and or nor so if then than of to in on at for with from by as not no too very just"
    " about into over after before up down out off again also here there"
)
_VERBS = (
    "is are was were be been being am do does did doing done have has had having can could will"
    " would shall should may might must"
)
_PRONOUNS = (
    "i you he she it we they me him her us them my mine your yours his hers its our ours their"
    " theirs this that these those what which who whom whose when where why how s t re ve ll d m"
)
_EMPTY_WORDS = frozenset(f"{_ARTICLES_AND_LINKS} {_VERBS} {_PRONOUNS}".split())
"""English words that stand in any text; they find nothing."""


def indexed_text(record: Record) -> str:
    """What of a record is looked through: its text, its textual metadata, its date in words."""
    event, fact = record.event, record.fact
    parts = [record.text, *(str(v) for v in record.metadata.values() if isinstance(v, str))]
    if event is not None:
        parts += [event.situation, event.action, event.outcome, event.place]
        if event.at is not None:
            parts.append(f"{event.at.day} {event.at:%B %Y}")
    if fact is not None:
        parts += [part for part in (fact.subject, fact.attribute, fact.value) if part]
    return " ".join(part for part in parts if part)


def query_words(text: str) -> tuple[str, ...]:
    """The words of a query that can find something, each once, in their order."""
    words = (word for word in _WORD.findall(text.casefold().replace("'s", " ")))
    telling = (word for word in words if word not in _EMPTY_WORDS and len(word) <= _LONGEST_WORD)
    return tuple(dict.fromkeys(telling))[:_MOST_WORDS]


def without_names(text: str, names: Iterable[str]) -> str:
    """A query without the names of sources: in a text, a name mostly marks somebody else."""
    for name in names:
        text = re.sub(
            rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE
        )
    return text
