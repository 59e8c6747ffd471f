"""The reader by rules: it answers from the words of a text, and needs no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from . import cues as cue
from .exams import Claim, Question, content_words
from .statements import Statement, last_turn, of_user, statements_of

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
    """`save up to buy a house`: a `to` that no verb before it asks for says what it is for."""
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
        tiers = _tiers_in_words(own)
    if len(tiers) > 1:
        yield tuple("; ".join(tier) for tier in tiers)


def _tiers_in_words(statements: Sequence[Statement]) -> list[list[str]]:
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
        elif not one.heading and (turn := cue.PIVOT.search(one.text)):
            before, after = _around(own, place)
            left, new = f"{before} {one.text[: turn.start()]}", one.text[turn.start() :]
            if content_words(left) and not cue.CALLBACK.search(new[:60]):
                yield (left, f"{new} {after}")


def _around(statements: Sequence[Statement], place: int) -> tuple[str, str]:
    """What is said before and after a statement.

    In prose the sentence before; of a speaker all of the line before, and this line.
    """
    one = statements[place]
    if not one.speaker:
        return one.before, ""
    lines = (one.turn - 1, one.turn)
    before = (other.text for other in statements[:place] if other.turn in lines)
    after = (other.text for other in statements[place + 1 :] if other.turn == one.turn)
    return " ".join(before), " ".join(after)


def order(statements: Sequence[Statement]) -> Iterator[Claim]:
    """Sequences: a transcript's turns, a list of what happened, a tale, an arrow."""
    turns = [one.text for one in statements if one.speaker == "user"]
    if len(turns) > 1:
        yield tuple(turns)
    listed = [one.text for one in statements if one.heading and cue.COURSE.search(one.heading)]
    if len(listed) > 1:
        yield tuple(listed)
    prose = [one for one in statements if one.is_prose]
    if any(cue.ORDER.search(one.text) for one in prose):
        yield tuple(clause for one in prose for clause in one.clauses)
    for one in statements:
        if match := _ARROW.search(one.text) or _FROM_TO.search(one.text):
            yield (match["left"], match["new"])


def lifecycle(statements: Sequence[Statement]) -> Iterator[Claim]:
    """(goal, status), where the form or else the words say it."""
    for one in of_user(statements):
        if not one.heading:
            yield from ((one.passage, status) for status in _labels_in(one.text, cue.STATUSES))
        elif not cue.TOPICS.search(one.heading):
            yield from ((one.text, status) for status in _labels_in(one.label, cue.STATUSES))


def entity_kinds(statements: Sequence[Statement]) -> Iterator[Claim]:
    """(name, kind): `Python (concept)`, or words that say what something is."""
    for one in statements:
        if one.heading and (match := _TYPED.match(one.text)):
            yield (match["name"], match["kind"])
        else:
            label = one.label if one.heading else one.text
            yield from ((one.text, kind) for kind in _labels_in(label, cue.KINDS))


def event_types(statements: Sequence[Statement]) -> Iterator[Claim]:
    """(what it was about, type), where a tag or else the words say of what type it was."""
    for one in of_user(statements):
        label = one.label if one.heading else one.text
        yield from ((one.passage, type) for type in _labels_in(label, cue.EVENTS))


def _labels_in(text: str, known: dict[str, re.Pattern[str]]) -> tuple[str, ...]:
    """The labels whose words a text has, not taken back by a negation."""
    return tuple(
        label
        for label, words in known.items()
        if any(not cue.NEGATED.search(text[: match.start()]) for match in words.finditer(text))
    )


_URGENCY = re.compile(r"\burgency\s*[=:]\s*(\d+(?:\.\d+)?)", re.I)


class RuleReader:
    """Answers from a text by the words in which it says what something is.

    A sentence or an item of an outline answers a question where it says its role, in plain
    English or by a marker: `want`, `need`, `plan to` and a heading `GOALS` all make a goal. The
    whole sentence, with the one before it in the same line, is the answer; whether it has the words
    of a right item is the scorer's to see. So prose that says a role once answers with all that it
    names there, which favours prose. What an assistant says in a transcript says nothing of what
    the user wants, feels or turns to. For pairs both must be in the relation: `in order to`,
    `part of`, `from A to B`, an arrow, an indented item.
    """

    def read(self, text: str, question: Question) -> tuple[Claim, ...]:
        """What the text says in answer; empty if it says nothing."""
        claims = _RULES[question.id](statements_of(text))
        return tuple(dict.fromkeys(claims))


def _with_role(
    role: re.Pattern[str],
    statements: Sequence[Statement],
    *,
    without: re.Pattern[str] | None = None,
) -> Iterator[Claim]:
    """The statements that say the role, and not the one that would make it another."""
    for one in of_user(statements):
        if role.search(one.said) and not (without and without.search(one.label or one.text)):
            yield (one.passage,)


def _implied(statements: Sequence[Statement]) -> Iterator[Claim]:
    """What is said to be implied or asked, and what a transcript's last message asks.

    What earlier messages asked has had a reply.
    """
    last = last_turn(statements)
    for one in of_user(statements):
        if one.speaker:
            shown = one.turn == last and _asks(one)
        else:
            shown = cue.IMPLIED.search(one.label or one.text) is not None
        if shown:
            yield (one.passage,)


def _asks(one: Statement) -> bool:
    return one.text.rstrip("\"')").endswith("?")


def _active_topics(statements: Sequence[Statement]) -> Iterator[Claim]:
    """The items of a list of topics, a transcript's last message, sentences about now."""
    own = of_user(statements)
    last = last_turn(own)
    if last:
        yield (" ".join(one.text for one in own if one.turn == last),)
    for one in own:
        listed = one.heading and cue.TOPICS.match(one.heading)
        if listed or (one.is_prose and cue.NOW.search(one.text)):
            yield (one.passage,)


def _sentiment(statements: Sequence[Statement]) -> Iterator[Claim]:
    """The feelings of a list, and the last one shown, by name or in the manner of speaking."""
    own = of_user(statements)
    last = last_turn(own)
    latest: str | None = None
    for one in own:
        if one.speaker and one.turn < last:
            continue
        for clause in one.clauses:
            feeling = None if cue.PAST.search(clause) else _feeling(clause)
            if feeling and one.heading:
                yield (feeling,)
            latest = (not one.heading and feeling) or latest
    if latest:
        yield (latest,)


def _feeling(clause: str) -> str | None:
    for names, signs in cue.FEELINGS:
        for match in signs.finditer(clause):
            if not cue.NEGATED.search(clause[: match.start()]):
                return names
    return None


def _urgency(statements: Sequence[Statement]) -> Iterator[Claim]:
    """What has the highest number of urgency, or else is said to press."""
    own = of_user(statements)
    rated = [(float(found[1]), one.text) for one in own if (found := _URGENCY.search(one.text))]
    if rated:
        highest = max(number for number, _ in rated)
        yield from ((text,) for number, text in rated if number == highest)
    else:
        yield from _with_role(cue.URGENT, own)


def _unknowns(statements: Sequence[Statement]) -> Iterator[Claim]:
    """What is said to be unknown, and what is asked and still open.

    In a transcript that is what the last message asks, and a reply that nobody has answered yet;
    in an outline each question that is not under what is closed.
    """
    last = last_turn(statements)
    for one in statements:
        role = one.label if one.heading else one.text
        if one.speaker == "assistant":
            shown = one.turn >= last and _asks(one)
        elif one.speaker:
            shown = (one.turn == last and _asks(one)) or cue.UNKNOWN.search(role) is not None
        else:
            open_question = "?" in one.text and not cue.CLOSED.search(one.label)
            shown = open_question or cue.UNKNOWN.search(role) is not None
        if shown:
            yield (one.passage,)


def _labelled(role: re.Pattern[str], statements: Iterable[Statement]) -> Iterator[Claim]:
    """The items whose heading or tags say the role, and the sentences that do."""
    for one in statements:
        if role.search(one.label if one.heading else one.text):
            yield (one.passage,)


_RULES: dict[str, Rule] = {
    "explicit_goals": partial(_with_role, cue.GOAL, without=cue.NO_STATED_GOAL),
    "implied_goals": _implied,
    "goal_hierarchy": hierarchy,
    "goal_lifecycle": lifecycle,
    "goal_priorities": priorities,
    "active_topics": _active_topics,
    "topic_pivots": pivots,
    "callbacks": lambda statements: (
        (one.passage,) for one in of_user(statements) if cue.CALLBACK.search(one.text)
    ),
    "sentiment": _sentiment,
    "urgency": _urgency,
    "entity_types": entity_kinds,
    "transition_order": order,
    "transition_types": event_types,
    "compression": lambda statements: ((one.passage,) for one in statements),
    "sticky_failures": partial(_with_role, cue.FAILURE),
    "unknowns": _unknowns,
    "assumptions": lambda statements: _labelled(cue.ASSUMED, of_user(statements)),
    "watch_list": partial(_labelled, cue.WATCHED),
}
