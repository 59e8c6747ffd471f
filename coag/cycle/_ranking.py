"""Candidates as a ranking of calls, for servers that enforce schemas.

Asked for a list of candidates, a small model writes one and the same call three times. In a ranking
the schema lists, for each call that may come first, only others for the places after it. The order
takes the place of scores, as where language models rank a list of passages (Sun et al. 2023,
RankGPT).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from ._answers import MAX_CANDIDATES, FormT
from ._enumerating import MOST_CALLS, Calls, naming_calls

PLACES = ("best", "second", "third")
"""What is asked for, the most promising first."""
DRAFTS = (0.8, 0.6, 0.4)
"""Draft scores by place, where a ranking has to do without numbers."""
_ARGUMENTS = 600
"""Characters of arguments that a ranking has room for."""


@cache
def with_ranked_calls(answer: type[FormT], calls: Calls) -> type[FormT]:
    """The same form with `candidates` as a ranking of the calls that may be named.

    What comes as a list all the same, from a server that enforces nothing, is taken as one.

    Args:
        answer: A form of Proposal, or of a whole deliberation.
        calls: What may be named; no more than `MOST_CALLS`, see `can_be_ranked`.
    """
    item = naming_calls(answer, calls)
    listed: Any = Annotated[
        Sequence[item],
        Field(max_length=MAX_CANDIDATES),
        BeforeValidator(_in_order),
        WithJsonSchema({"anyOf": [_ranking(first, calls) for first in calls.names]}),
    ]
    return create_model(answer.__name__, __base__=answer, candidates=(listed, ...))


def can_be_ranked(calls: Calls) -> bool:
    """Whether there is a choice, and not so large a one that its schema becomes a burden."""
    return 2 <= len(calls.names) <= MOST_CALLS


def _in_order(value: Any) -> Any:
    """A ranking as a list of candidates with draft scores; anything else, cut, as it is."""
    if isinstance(value, list):
        return cast("list[Any]", value)[:MAX_CANDIDATES]
    if not isinstance(value, dict):
        return value
    ranking = cast("dict[str, Any]", value)
    said = [ranking[place] for place in PLACES if place in ranking]
    return [_drafted(each, score) for each, score in zip(said, DRAFTS, strict=False)]


def _drafted(said: Any, score: float) -> Any:
    if isinstance(said, str):
        return {"action": said, "score": score}
    return {"score": score, **cast("dict[str, Any]", said)} if isinstance(said, dict) else said


def _ranking(first: str, calls: Calls) -> dict[str, Any]:
    """The schema of a ranking that begins with one call."""
    others = [name for name in calls.names if name != first]
    places = {"best": _place([first], calls)}
    for place in PLACES[1 : len(calls.names)]:
        places[place] = _place(others, calls)
    return _object(places)


def _place(names: Sequence[str], calls: Calls) -> dict[str, Any]:
    """The schema of one place: a whole call, or an action and its arguments."""
    whole = {shown for shown, _, _ in calls.written}
    written = [name for name in names if name in whole]
    open_ones = [name for name in names if name not in whole]
    ways: list[dict[str, Any]] = []
    if written:
        ways.append({"type": "string", "enum": written})
    if open_ones:
        arguments = {"type": "string", "maxLength": _ARGUMENTS}
        ways.append(
            _object({"action": {"type": "string", "enum": open_ones}, "arguments": arguments})
        )
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
