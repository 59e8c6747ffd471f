"""Questions whose answers belong together in order: what serves what, what came before what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from . import _cues as cue
from ._reader import Claim
from ._statements import Statement, of_user
from ._words import content_words

Rule = Callable[[Sequence[Statement]], Iterator[Claim]]
"""Gives what the statements of a text claim in answer to one question."""

_SERVES = (
    re.compile(r"(?P<child>.+?)[,;(]\s*part of:?\s+(?P<parent>[^)]+)", re.I),
    re.compile(
        r"(?P<child>.+?),?\s(?:in order to|so that|so (?:I|we|he|she|they) can|"
        r"as (?:a )?(?:part of|(?:first )?step (?:to|towards?))|part of|"
        r"(?:a )?step towards?|towards?|which serves|"
        r"needed for|in service of|in support of|to support|to help|serves|as preparation for|"
        r"to prepare for|because (?:\w+ ){1,2}wants? to|for the sake of|"
        r"with (?:the aim|a view) (?:of|to)|leads? (?:up )?to|works? towards?|contributes? to|"
        r"subgoal of)\s(?P<parent>.+)",
        re.I,
    ),
    re.compile(
        r"^(?:in order )?(?:to|for) (?P<parent>[^,]+), (?P<child>.+"
        r"(?:need|must|want|have to|has to|plan|should|going to).+)",
        re.I,
    ),
    re.compile(r"(?P<parent>.+?)\s(?:by first|first by|by means of|through)\s(?P<child>.+)", re.I),
    re.compile(
        r"(?P<parent>.+?)\s(?:requires?|needs? (?:\w+ )?first|depends on|includes?|involves?|"
        r"which means)\s(?P<child>.+)",
        re.I,
    ),
)
_PURPOSE = re.compile(r"\sto\s(?=[a-z])")
_NO_PURPOSE = re.compile(
    r"(?:want\w*|need\w*|like|love|plan\w*|hop\w+|try\w*|tri\w+|ha[sv]e?|had|going|ask\w*|how|what|"
    r"where|when|whether|wish\w*|intend\w*|decid\w+|aim\w*|about|back|return\w*|switch\w*|due|up|next|"
    r"mov\w+|used|able|ready|unable|forg\w+|start\w*|beg\w+|manag\w+|turn\w*|shift\w*|pivot\w*|got|"
    r"ought|supposed|way|talk\w*|listen\w*|said|seem\w*|me|us|him|her|them|you|close|new|according|regard|answer\w*|reply)$",
    re.I,
)
_NUMBER = re.compile(r"\b(?:p|prio|priority|importance)\s*[=:]\s*(\d+(?:\.\d+)?)", re.I)
_OVER = re.compile(
    r"(?P<more>.+?)\s(?:(?:is|are|was|matters?|comes?) (?:much |far )?(?:more (?:important|urgent|"
    r"pressing)?\s?than|before|above|first,? (?:then|before))|rather than|more than|ahead of|takes "
    r"priority over)\s(?P<less>.+)|(?:cho[os]+e?|prefers?|picked|values?|prioriti[sz]es?) "
    r"(?P<this>.+?) over (?P<that>.+)",
    re.I,
)
_FROM_TO = re.compile(
    r"\b(?:pivot|shift|switch|jump|turn|chang)\w*\b[^.]{0,40}?\bfrom\s"
    r"(?P<left>\{[^{}]*\}|.+?)\s(?:to|->|\u2192)\s(?P<new>.+)",
    re.I,
)
_ARROW = re.compile(r"(?:^|:\s)(?P<left>[^:]+?)\s*(?:->|\u2192)\s*(?P<new>.+)")
_TYPED = re.compile(r"^(?:- )?(?P<name>.+?)\s\((?P<kind>[^\W\d_][\w -]*)\)$")


def hierarchy(statements: Sequence[Statement]) -> Iterator[Claim]:
    """What is indented under a goal, or said to serve one: (child, parent)."""
    for one in of_user(statements):
        if one.under:
            yield (one.text, one.under)
        found = next((match for form in _SERVES if (match := form.search(one.text))), None)
        if found:
            yield (found["child"], found["parent"])
        elif not one.heading and cue.GOAL.search(one.text):
            yield from _purposes(one.text)


def _purposes(text: str) -> Iterator[Claim]:
    """`save up to buy a house`: a `to` that no verb before it asks for tells what it is for."""
    for match in _PURPOSE.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        if not _NO_PURPOSE.search(before) and len(content_words(before)) > 1:
            yield (before, after)


def priorities(statements: Sequence[Statement]) -> Iterator[Claim]:
    """One ranking of the goals, the most important first, where the text ranks them."""
    own = of_user(statements)
    for one in own:
        if match := _OVER.search(one.text):
            yield (match["more"] or match["this"], match["less"] or match["that"])
    numbered = [(float(found[1]), one.text) for one in own if (found := _NUMBER.search(one.text))]
    if numbered:
        levels = sorted({number for number, _ in numbered}, reverse=True)
        tiers = [[text for number, text in numbered if number == level] for level in levels]
    else:
        tiers = _told_tiers(own)
    if len(tiers) > 1:
        yield tuple("; ".join(tier) for tier in tiers)


def _told_tiers(statements: Sequence[Statement]) -> list[list[str]]:
    """What is said to be important, other goals, what is said to be less so; none left empty."""
    high, other, low = list[str](), list[str](), list[str]()
    for one in statements:
        for clause in one.clauses:
            if cue.LOW.search(clause):
                low.append(clause)
            elif cue.HIGH.search(clause) and not one.heading:
                high.append(clause)
            elif cue.GOAL.search(clause):
                other.append(clause)
    return [tier for tier in (high, other, low) if tier] if high or low else []


def pivots(statements: Sequence[Statement]) -> Iterator[Claim]:
    """Where the talk is said, or by its manner shown, to change its subject: (left, new)."""
    own = of_user(statements)
    for place, one in enumerate(own):
        shifts = cue.PIVOT.search(f"{one.label} {one.text}")
        match = (_ARROW.search(one.text) if shifts else None) or _FROM_TO.search(one.text)
        if match:
            yield (match["left"], match["new"])
        elif not one.heading and (turn := _turn(one)):
            left = f"{_said_before(own, place)} {one.text[: turn.start()]}"
            if content_words(left):
                yield (left, f"{one.text[turn.start() :]} {_said_after(own, place)}")


def _said_before(statements: Sequence[Statement], place: int) -> str:
    """The sentence before; of a speaker all of the line before, and what this line said so far."""
    one = statements[place]
    if not one.speaker:
        return one.before
    lines = (one.turn - 1, one.turn)
    return " ".join(other.text for other in statements[:place] if other.turn in lines)


def _said_after(statements: Sequence[Statement], place: int) -> str:
    """The rest of a speaker's line."""
    one = statements[place]
    rest = statements[place + 1 :] if one.speaker else ()
    return " ".join(other.text for other in rest if other.turn == one.turn)


def _turn(one: Statement) -> re.Match[str] | None:
    """Where a sentence turns to something else, unless it comes back to it."""
    match = cue.PIVOT.search(one.text)
    return match if match and not cue.CALLBACK.search(one.text[match.start() :][:60]) else None


def order(statements: Sequence[Statement]) -> Iterator[Claim]:
    """Sequences: a transcript's turns, a list of what happened, a tale, an arrow."""
    turns = [one.text for one in statements if one.speaker == "user"]
    if len(turns) > 1:
        yield tuple(turns)
    listed = [one.text for one in statements if one.heading and cue.COURSE.search(one.heading)]
    if len(listed) > 1:
        yield tuple(listed)
    told = [one for one in statements if one.is_prose]
    if any(cue.ORDER.search(one.text) for one in told):
        yield tuple(clause for one in told for clause in one.clauses)
    for one in statements:
        if match := _ARROW.search(one.text) or _FROM_TO.search(one.text):
            yield (match["left"], match["new"])


def lifecycle(statements: Sequence[Statement]) -> Iterator[Claim]:
    """(goal, status), where the form or else the words say it."""
    for one in of_user(statements):
        if not one.heading:
            yield from ((one.passage, status) for status in _labels(one.text, cue.STATUSES))
        elif not cue.TOPICS.search(one.heading):
            yield from ((one.text, status) for status in _labels(one.label, cue.STATUSES))


def entity_kinds(statements: Sequence[Statement]) -> Iterator[Claim]:
    """(name, kind): `Python (concept)`, or words that tell what something is."""
    for one in statements:
        if one.heading and (match := _TYPED.match(one.text)):
            yield (match["name"], match["kind"])
        else:
            told = one.label if one.heading else one.text
            yield from ((one.text, kind) for kind in _labels(told, cue.KINDS))


def event_types(statements: Sequence[Statement]) -> Iterator[Claim]:
    """(what it was about, type), where a tag or else the words say of what type it was."""
    for one in of_user(statements):
        told = one.label if one.heading else one.text
        yield from ((one.passage, type) for type in _labels(told, cue.EVENTS))


def _labels(text: str, known: dict[str, re.Pattern[str]]) -> tuple[str, ...]:
    """The labels whose words a text has, not taken back by a negation."""
    return tuple(
        label
        for label, words in known.items()
        if any(not cue.NEGATED.search(text[: match.start()]) for match in words.finditer(text))
    )
