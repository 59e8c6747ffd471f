"""When two texts tell the same thing with another value: rules over their words, without a model.

An earlier text is recalled in place of its replacement (proactive interference; Underwood 1957),
and a later one makes the earlier harder to recall (retroactive interference; Müller & Pilzecker
1900, McGeoch 1932). A memory that has both texts therefore has to know which one replaced the
other. A cue of the time brings the earlier one back (Wickens 1970).

The rules read English. A statement names its topic first and says something of it last (Halliday
1967), with a linking word between: a verb or a preposition. Two statements compete where all up to
a place behind that word is equal and a short span there differs: "The pump stands in the cellar",
"The pump stands in the attic". Where the span is before it, they are about two things.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coag.schema import MemoryKind, Record

_MOST_WORDS = 60
"""A longer text is a report, not a statement."""
_LONGEST_VALUE = 5
"""Words."""
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\w+|[.:;!?=]")
_ENDS = frozenset(".;!?")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PREDICATES = _words(
    "is are was were be been being am has have had do does did will would can could should may "
    "might must shall"
)
_PREPOSITIONS = _words(
    "at in on to for from by with into onto under over near behind above below between through "
    "during until since after before as via per about"
)
_JOINING = _words("and or but so because while that which who whose when where if than then")
_FIRST_PERSON = _words("i me my mine we us our ours")
_PRONOUNS = _FIRST_PERSON | _words(
    "you your he him his she her it its they them their there here these those"
)
_PASSED_OVER = _words(
    "the a an this now currently today still already presently nowadays new current latest"
)
"""Articles, and words that say that it is so now: a change is stated with or without them."""
_NEGATIONS = _words("no not never nobody nothing none neither nor without cannot longer")
_ADDING = _words("also too another additionally moreover besides both second")
"""Words by which a statement says more, not otherwise."""
_FUNCTION_WORDS = (
    _PREDICATES | _PREPOSITIONS | _JOINING | _PRONOUNS | _PASSED_OVER | _NEGATIONS | {"of"}
)
_SHORT_FORMS = {"can't": "can not", "won't": "will not", "shan't": "shall not"}
_PAST = re.compile(
    r"\b(?:used to|previous(?:ly)?|former(?:ly)?|earlier|originally|at first|history|ago|once|"
    r"back then|in the past|before|until|initially|(?<!how )old|"
    r"(?:in|on|since|by) (?:\d|january|february|march|april|may|june|july|august|september|"
    r"october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|"
    r"last (?:week|month|year|spring|summer|autumn|winter|\w+day)|yesterday|\d{4}-\d\d)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a statement, in small letters, without those that are passed over."""

    words: tuple[str, ...]
    link: int
    """Place of the first linking word behind the topic; -1 for none."""
    verbs: frozenset[int]
    """Places of words that look like a verb of the third person or the past."""

    @property
    def topic(self) -> str:
        """All up to the linking word; empty where there is none."""
        return " ".join(self.words[: self.link + 1])


def wording_of(text: str) -> Wording:
    """The words of a text, and where its topic ends."""
    words: list[str] = []
    verbs: set[int] = set()
    for raw in _tokens(text):
        word = raw.casefold()
        if word in _PASSED_OVER:
            continue
        if raw.islower() and len(raw) > 3 and raw.endswith(("s", "ed")) and raw[-2:] != "ss":
            verbs.add(len(words))
        words.append(word)
    while words and words[-1] in ".;!":
        words.pop()
    return Wording(tuple(words), _link(words, verbs), frozenset(verbs))


def may_yield(record: Record) -> bool:
    """Whether a record can become outdated: no event, and no fact that is stated as such."""
    return record.kind is MemoryKind.SEMANTIC and record.fact is None


def matter_of(record: Record) -> str | None:
    """What a record's statement is about: records of one matter may say otherwise of it.

    None where the words do not show it, or where nothing can become outdated: an event stays
    what happened, and facts that are stated as such have rules of their own.
    """
    if not may_yield(record):
        return None
    wording = wording_of(record.text)
    if wording.link < 0 or len(wording.words) > _MOST_WORDS or wording.words[-1] == "?":
        return None
    topic = wording.words[: wording.link]
    mine = bool(_FIRST_PERSON.intersection(topic))
    if not mine and not any(map(_tells, topic)):
        return None
    speaker = record.provenance.source if mine else ""
    return "\x1f".join((record.scope, record.type, speaker, wording.topic))


def in_scope(matter: str, scope: str) -> str:
    """The same matter among the records of another scope."""
    return "\x1f".join((scope, *matter.split("\x1f")[1:]))


def say_otherwise(one: str, other: str) -> bool:
    """Whether two texts tell the same thing with another value."""
    first, second = wording_of(one), wording_of(other)
    if first.link < 0 or first.topic != second.topic:
        return False
    a, b = first.words, second.words
    if _ADDING.intersection((*a, *b)):
        return False
    denied = [[word for word in words if word in _NEGATIONS] for words in (a, b)]
    if denied[0] != denied[1]:
        plain = [[word for word in words if word not in _NEGATIONS] for words in (a, b)]
        return plain[0] == plain[1]
    before, behind = _shared(a, b)
    values = (a[before : len(a) - behind], b[before : len(b) - behind])
    return (
        all(map(_may_be_value, values))
        and before > first.link
        and not _NEGATIONS.intersection(a[:before])
        and _is_said_of_topic(first, before, len(a) - behind)
        and _is_said_of_topic(second, before, len(b) - behind)
    )


def asks_for_earlier(query: str, earlier: str, later: str) -> bool:
    """Whether a question is about what was so before: it names that value, or a past time."""
    if _PAST.search(query):
        return True
    asked = {raw.casefold() for raw in _tokens(query)}
    own = set(wording_of(earlier).words) - set(wording_of(later).words)
    return any(word in asked for word in own if _tells(word))


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    for raw in _TOKEN.findall(text.replace("\u2019", "'")):
        low = raw.casefold()
        if low in _SHORT_FORMS:
            found += _SHORT_FORMS[low].split()
        elif low.endswith("n't"):
            found += [raw[:-3], "not"]
        else:
            found.append(raw)
    return found


def _tells(word: str) -> bool:
    """Whether a word has a meaning of its own."""
    return word[0].isalnum() and word not in _FUNCTION_WORDS


def _link(words: Sequence[str], verbs: set[int]) -> int:
    """The first verb or preposition behind a word that tells; else a colon or an equals sign."""
    named = False
    for at, word in enumerate(words):
        if named and (word in _PREDICATES or word in _PREPOSITIONS or at in verbs):
            return at
        if word in _PREDICATES and any(one in _FIRST_PERSON for one in words[:at]):
            return at
        named = named or _tells(word)
    return next((at for at, word in enumerate(words) if at and word in ":="), -1)


def _shared(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    most = min(len(a), len(b))
    before = next((at for at in range(most) if a[at] != b[at]), most)
    rest = most - before
    behind = next((at for at in range(rest) if a[-1 - at] != b[-1 - at]), rest)
    return before, behind


def _may_be_value(span: Sequence[str]) -> bool:
    """Whether a span is a value: short, and without words that make a clause of it."""
    return (
        0 < len(span) <= _LONGEST_VALUE
        and any(map(_tells, span))
        and not any(
            word in _PREDICATES or word in _PREPOSITIONS or word in _JOINING or word in ".;!?:="
            for word in span
        )
    )


def _is_said_of_topic(wording: Wording, start: int, end: int) -> bool:
    """Whether the words from start to end are said of the topic, and are no part of it.

    Behind a predicate it is. Behind a preposition, or a verb that may be a noun, it is where it
    ends its clause: "the door in room 12 sticks" says nothing of rooms.
    """
    words = wording.words
    begins = max((at + 1 for at in range(start) if words[at] in _ENDS), default=0)
    sentence = words[begins:start]
    if any(word in _PREDICATES for word in sentence):
        return True
    if not any(
        word in _PREPOSITIONS or word in ":=" or begins + at in wording.verbs
        for at, word in enumerate(sentence)
    ):
        return False
    if words[start][0].isdigit() and start - 1 in wording.verbs:
        end += 1  # what is counted, as in "costs 840 euros"
    while end < len(words) and _tells(words[end]) and end not in wording.verbs:
        end += 1  # the rest of the value, which both have
    rest = words[end:]
    closing = next((at for at, word in enumerate(rest) if word in _JOINING | _ENDS), len(rest))
    return (not rest or not _tells(rest[0])) and not _PREDICATES.intersection(rest[:closing])
