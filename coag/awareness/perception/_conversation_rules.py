"""Rules for a talk: topics, moods, and what refers back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from coag.awareness.adapters import ConversationAnalysis, Sentiment, StatedGoal
from coag.awareness.state import AwarenessState, folded

from ._sentences import (
    LONGEST,
    first_few,
    given_up_in,
    goals_in,
    questions_in,
    reached_in,
    sentences,
    stems,
    words,
)

_MOST_TOPICS = 4
_KNOWN = 300
"""Entities, the latest, whose names are looked for in a text."""
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w+#]*(?:\s[A-Z][\w+#]*)*")
_CODED = re.compile(r"\b[A-Za-z]+[a-z][A-Z]\w*|\b[A-Z]{2,4}s?\b|\b[A-Z]{2}(?=\w*\d)\w*")
"""Words with a capital inside, abbreviations of up to four letters, and codes with digits."""
_CUE = re.compile(
    r"\b(?:about|regarding|(?:going |go |coming |come |get |getting )?back to|returning to|learn|"
    r"learning|make|making|cook|cooking|build|building|for|with|use|using|play|playing|visit|"
    r"studying|study|into|on)\s+(?:(?:a|an|the|my|your|some|our|this|that)\s+)?"
    r"(?P<what>[a-z][\w+#'-]*(?:\s[a-z][\w+#'-]*){0,2})"
)
_STOP = words(
    "a an the i me my you your we us our he she it its they them this that these those is are was "
    "were be been do does did have has had will would can could should may might must and or but "
    "if so as at by for from in into of on off to up with about again not no yes what which who "
    "when where why how there here now then than too very really just only also all any some "
    "everything nothing something anything one two more most much many first next last time way "
    "thing things work works working help know think want need like get got go going come back "
    "make made use using see say said tell told try learn build please thanks thank today "
    "tomorrow yesterday everywhere instead myself yourself sure fun free example his him her own "
    "other others another someone somebody anyone anybody nobody everyone everybody each both"
)
_PRONOUN = words(
    "I I'm I'd I've I'll OK Oh Hi Hey Hello Thanks Monday Tuesday Wednesday Thursday Friday "
    "Saturday Sunday"
)
_BACK = re.compile(
    r"\b(?:going|go|coming|come|getting|get|turn|turning|return|returning|circling) back to\b|"
    r"\bback to\b|\breturning to\b|\bas (?:I|we|you) (?:said|mentioned|told)\b|"
    r"\b(?:you|we|I) (?:said|mentioned|told (?:you|me)|talked about|discussed)\b|"
    r"\b(?:earlier|previously)\b|\bremember (?:when|the|that|my|what|how)\b|"
    r"\blike (?:I|you) said\b|\blast time\b|\bfrom before\b|\bbefore that\b|\bagain about\b|"
    r"\babout that\b",
    re.I,
)
_BEFORE = 40
"""Characters before a word of a mood among which a negation is looked for."""
_NEGATED = re.compile(r"(?:\bnot|\bno longer|\bnever|n't|\bno)\s+(?:\w+\s+)?$", re.I)
_MOODS = (
    (Sentiment.ANGRY, r"furious|angry|outrageous|unacceptable|\bhate\b|useless|ridiculous|fed up"),
    (
        Sentiment.FRUSTRATED,
        r"frustrat\w*|(?:is|are|does|do|did|was)(?: not|n't) work\w*|keeps? (?:failing|crashing|"
        r"breaking)|errors? everywhere|nothing works|still (?:fails|broken|failing|not)|annoy\w*|"
        r"\bstuck\b|\bugh\b|\bargh\b|gives? up|driving me (?:mad|crazy)|waste of time",
    ),
    (Sentiment.ANXIOUS, r"worried|worry\w*|afraid|scared|nervous|anxious|panic\w*|stress\w*"),
    (
        Sentiment.CONFUSED,
        r"confus\w*|(?:do not|don't|can't|cannot) (?:\w+ )?(?:understand|follow)|makes no sense|"
        r"(?:am|'m) lost\b|unclear|\bpuzzled",
    ),
    (
        Sentiment.NEGATIVE,
        r"\bsad\b|unhappy|disappoint\w*|terrible|awful|\bbad\b|\bworse\b|unfortunate",
    ),
    (
        Sentiment.POSITIVE,
        r"\bgreat\b|\blove\b|awesome|perfect\w*|excellent|wonderful|thank\w*|\bhappy\b|amazing|"
        r"brilliant|excited|it works",
    ),
)


def conversation_by_rules(text: str, state: AwarenessState) -> ConversationAnalysis:
    """What a message of a talk says by the rules of `RulePerception`."""
    said = sentences(text)
    return ConversationAnalysis(
        message=text,
        topics=_topics(text[:LONGEST], said, state),
        goals=tuple(StatedGoal(description=goal) for goal in goals_in(said)),
        questions=questions_in(said),
        completed=reached_in(said, state),
        abandoned=given_up_in(said, state),
        sentiment=_mood(text[:LONGEST]),
        references_previous=refers_back(text, state),
    )


def refers_back(text: str, state: AwarenessState) -> bool:
    """Whether a text says that it takes up something previous, and something was."""
    return state.step > 0 and _BACK.search(text[:LONGEST]) is not None


def content(text: str) -> frozenset[str]:
    """The stems of the words of a text that are about something."""
    said = re.findall(r"[\w+#]+", text[:LONGEST].casefold())
    return stems(" ".join(word for word in said if word not in _STOP))


def _topics(text: str, said: Sequence[str], state: AwarenessState) -> tuple[str, ...]:
    """Known names, other names, then what follows a cue; none twice, none within another."""
    found = [
        *_known(text, state),
        *_coded(text),
        *(name for sentence in said for name in _NAME.findall(sentence) if _says_something(name)),
        *_cued(said),
    ]
    kept: list[str] = []
    for topic in first_few(found):
        if not any(f" {folded(topic)} " in f" {folded(other)} " for other in kept):
            kept.append(topic)
    return tuple(kept[:_MOST_TOPICS])


def _known(text: str, state: AwarenessState) -> list[str]:
    """Names of the latest entities that the text has as words."""
    plain = _spaced(text)
    return [
        entity.name
        for entity in state.world.entities[-_KNOWN:]
        if any(
            spaced in plain for name in (entity.name, *entity.aliases) if (spaced := _spaced(name))
        )
    ]


def _spaced(text: str) -> str:
    """The words of a text, each between blanks; nothing for none."""
    joined = " ".join(re.findall(r"[\w+#]+", folded(text)))
    return f" {joined} " if joined else ""


def _coded(text: str) -> list[str]:
    """Names that are written as in code, wherever they stand."""
    return [name for name in _CODED.findall(text) if _says_something(name)]


def _says_something(name: str) -> bool:
    return name not in _PRONOUN and name.casefold() not in _STOP


def _cued(said: Iterable[str]) -> list[str]:
    """The words after a cue, up to the first that says nothing."""
    found: list[str] = []
    for sentence in said:
        for match in _CUE.finditer(sentence):
            kept: list[str] = []
            for word in match["what"].split():
                if word.casefold() in _STOP:
                    break
                kept.append(word)
            if kept:
                found.append(" ".join(kept))
    return found


def _mood(text: str) -> Sentiment:
    """The worst mood that the words tell."""
    for mood, signs in _MOODS:
        for match in re.finditer(signs, text, re.I):
            start = match.start()
            if not _NEGATED.search(text[max(0, start - _BEFORE) : start]):
                return mood
    return Sentiment.NEUTRAL
