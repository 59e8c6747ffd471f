"""A reader by rules: no model, the same answer each time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from . import _cues as cue
from ._questions import Question
from ._reader import Claim
from ._relations import (
    Rule,
    entity_kinds,
    event_types,
    hierarchy,
    lifecycle,
    order,
    pivots,
    priorities,
)
from ._statements import Statement, last_turn, of_user, statements_of

_URGENCY = re.compile(r"\burgency\s*[=:]\s*(\d+(?:\.\d+)?)", re.I)


class RuleReader:
    """Answers from a text by the words in which it says what something is.

    A sentence or an item of an outline answers a question where it says its role, in plain
    English or by a marker: `want`, `need`, `plan to` and a heading `GOALS` all make a goal. The
    whole sentence, with the one before it in the same line, is the answer; whether it has the words
    of a right item is the scorer's to see. So prose that says a role once answers with all that it
    names there, which favours prose. What an assistant says in a transcript tells nothing of what
    the user wants, feels or turns to. For pairs both must be in the relation: `in order to`,
    `part of`, `from A to B`, an arrow, an indented item.
    """

    @property
    def name(self) -> str:
        """`rules`."""
        return "rules"

    async def read(self, text: str, question: Question) -> tuple[Claim, ...] | None:
        """What the text says in answer."""
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
    """The items of a list of topics, a transcript's last message, sentences that tell of now."""
    own = of_user(statements)
    last = last_turn(own)
    if last:
        yield (" ".join(one.text for one in own if one.turn == last),)
    for one in own:
        listed = one.heading and cue.TOPICS.match(one.heading)
        if listed or (one.is_prose and cue.NOW.search(one.text)):
            yield (one.passage,)


def _callbacks(statements: Sequence[Statement]) -> Iterator[Claim]:
    """What is said to be taken up again; what a text watches for has not happened."""
    return ((one.passage,) for one in of_user(statements) if cue.CALLBACK.search(one.text))


def _sentiment(statements: Sequence[Statement]) -> Iterator[Claim]:
    """The feelings of a list, and the last that is told, by name or in the manner of speaking."""
    own = of_user(statements)
    last = last_turn(own)
    told: str | None = None
    for one in own:
        if one.speaker and one.turn < last:
            continue
        for clause in one.clauses:
            feeling = None if cue.PAST.search(clause) else _feeling(clause)
            if feeling and one.heading:
                yield (feeling,)
            told = (not one.heading and feeling) or told
    if told:
        yield (told,)


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


def _assumed(statements: Sequence[Statement]) -> Iterator[Claim]:
    """What is said to be taken for granted, by the user or of them."""
    return _labelled(cue.ASSUMED, of_user(statements))


def _everything(statements: Sequence[Statement]) -> Iterator[Claim]:
    """All that is there: what is kept can be found."""
    return ((one.passage,) for one in statements)


_RULES: dict[str, Rule] = {
    "explicit_goals": partial(_with_role, cue.GOAL, without=cue.NO_STATED_GOAL),
    "implied_goals": _implied,
    "goal_hierarchy": hierarchy,
    "goal_lifecycle": lifecycle,
    "goal_priorities": priorities,
    "active_topics": _active_topics,
    "topic_pivots": pivots,
    "callbacks": _callbacks,
    "sentiment": _sentiment,
    "urgency": _urgency,
    "entity_types": entity_kinds,
    "transition_order": order,
    "transition_types": event_types,
    "compression": _everything,
    "sticky_failures": partial(_with_role, cue.FAILURE),
    "unknowns": _unknowns,
    "assumptions": _assumed,
    "watch_list": partial(_labelled, cue.WATCHED),
}
