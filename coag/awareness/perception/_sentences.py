"""Rules for both domains: sentences, questions, goals and what became of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coag.awareness.state import AwarenessState, distinct

LONGEST = 20_000
"""Characters of a text that the rules read."""
_BLANKS = re.compile(r"[^\S\n]+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+|\s{1,4}[-\u2013\u2014]\s+|:\s+|;\s+")
_FILLER = re.compile(
    r"^(?:(?:oh|wait|by the way|btw|well|so|ok|okay|hey|hi|hello|please|also|and|but|now)\b"
    r"[,\s]*)+",
    re.I,
)
_GOAL = re.compile(
    r"\b(?:I|we)(?:'d| would) (?:also )?(?:like|love) to (?P<a>.+)"
    r"|\b(?:I|we) (?:also |really |just )?(?:want|need|have|plan|hope) to (?P<b>.+)"
    r"|\b(?:I'm|I am|we're|we are) (?:trying|going|planning) to (?P<c>(?!be\b).+)"
    r"|\bmy (?:goal|aim|plan) is to (?P<d>.+)"
    r"|\blet's (?P<e>.+)"
    r"|\bhelp me (?:to )?(?P<f>.+)"
    r"|\bwe (?:also )?need (?P<need>(?!to\b).+)",
    re.I,
)
_VERBS = (
    "learn|build|make|write|create|find|fix|add|get|use|test|deploy|plan|book|buy|improve|set|"
    "understand|start|finish|read|move|sell|cook|visit|run|install|migrate|refactor|document|"
    "train|save|lose|apply|prepare|speak|solve|debug|design|publish|send|change|remove|host"
)
_AND = re.compile(rf",? and (?:then )?(?:to )?(?=(?:{_VERBS})\b)", re.I)
_CLAUSE = re.compile(r"[,;(]|\s(?:because|but|so that|since|before|after|when|which|while)\s", re.I)
_DONE = re.compile(
    r"\b(?:I|we)(?:'ve| have)? (?:just |finally |now )?"
    r"(?:finished|completed|managed to|succeeded in|am done with|are done with)\s+(?P<what>.+)",
    re.I,
)
_GIVEN_UP = re.compile(
    r"\b(?:never mind|forget(?: about)?|no longer want to|don't want to|I(?:'ve)? (?:gave|given) up"
    r"(?: on)?)\s+(?P<what>.+?)(?: any ?more)?$",
    re.I,
)
_WORD = re.compile(r"[\w+#]+")
_MOST = 5


def words(text: str) -> frozenset[str]:
    """A list of words, written as a text."""
    return frozenset(text.split())


_SMALL = words("a an the to of for in on my your our with and or it this that answer")


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, also those between dashes and after colons, without fillers."""
    close = _BLANKS.sub(" ", text[:LONGEST])
    parts = (_FILLER.sub("", part.strip()).strip() for part in _SENTENCE.split(close))
    return tuple(part for part in parts if part)


def questions_in(said: Iterable[str]) -> tuple[str, ...]:
    """The sentences that ask."""
    return first_few(_capital(one) for one in said if one.rstrip("\"')").endswith("?"))


def goals_in(said: Iterable[str]) -> tuple[str, ...]:
    """The goals that the sentences state, as short commands."""
    found: list[str] = []
    for sentence in said:
        match = _GOAL.search(sentence)
        asks = sentence.endswith("?")
        if match is None or (asks and match.lastgroup in ("f", "need")):
            continue
        what = _CLAUSE.split(match[match.lastgroup or 0])[0].strip(" .!?\"'")
        prefix = "Get " if match.lastgroup == "need" else ""
        found += [prefix + goal.strip() for goal in _AND.split(what) if goal.strip()]
    return first_few(_capital(goal) for goal in found)


def reached_in(said: Iterable[str], state: AwarenessState) -> tuple[str, ...]:
    """Ids of the open goals that the sentences say are reached."""
    return _goals_of(_DONE, said, state)


def given_up_in(said: Iterable[str], state: AwarenessState) -> tuple[str, ...]:
    """Ids of the open goals that the sentences give up."""
    return _goals_of(_GIVEN_UP, said, state)


def first_few(texts: Iterable[str]) -> tuple[str, ...]:
    """The first few texts without repetitions."""
    return distinct(texts)[:_MOST]


def stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without common endings."""
    said = (word.casefold() for word in _WORD.findall(text))
    return frozenset(re.sub(r"(?:ing|ed|s)$", "", word) for word in said if word not in _SMALL)


def _goals_of(
    pattern: re.Pattern[str], said: Iterable[str], state: AwarenessState
) -> tuple[str, ...]:
    """Ids of the open goals all of whose words a pattern finds; else of those with all it finds."""
    found: list[str] = []
    for sentence in said:
        match = pattern.search(sentence.rstrip(".!?"))
        named = stems(match["what"]) if match else frozenset[str]()
        if not named:
            continue
        wanted = {goal.id: stems(goal.description) for goal in state.goals.goals if goal.is_open}
        whole = [id for id, words in wanted.items() if words and words <= named]
        found += whole or [id for id, words in wanted.items() if named <= words]
    return tuple(dict.fromkeys(found))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
