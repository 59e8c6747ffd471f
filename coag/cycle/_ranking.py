"""Candidates as a ranking of calls, and numbered scores, for servers that enforce schemas.

Asked for a list of candidates, a small model writes one and the same call three times. In a ranking
the schema lists, for each call that may come first, only others for the places after it. The order
takes the place of scores, as where language models rank a list of passages (Sun et al. 2023,
RankGPT).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, WithJsonSchema, create_model

from ._answers import EvaluationAnswer, FormT, JudgementAnswer, Listed, Shown
from ._enumerating import MOST_CALLS, Calls, naming_calls

PLACES = ("best", "second", "third")
"""What is asked for, the most promising first."""
DRAFTS = (0.8, 0.6, 0.4)
"""Draft scores by place, where a ranking has to do without numbers."""
_ARGUMENTS = 160
"""Characters of arguments that a ranking has room for."""
_WAYS = 30
"""Beginnings of a ranking that a schema spells out; of more, the third may repeat the second."""


@lru_cache(maxsize=256)
def with_ranked_calls(answer: type[FormT], calls: Calls) -> type[FormT]:
    """The same form with `candidates` as a ranking of the calls that may be named.

    What comes as a list all the same, from a server that enforces nothing, is taken as one.

    Args:
        answer: A form of Proposal, or of a whole deliberation.
        calls: What may be named; see `can_be_ranked`.
    """
    item = naming_calls(answer, calls)
    listed: Any = Annotated[
        Listed[item],
        BeforeValidator(_in_order),
        WithJsonSchema({"anyOf": list(_rankings(calls))}),
        Shown('{"best": "...", "second": "...", "third": "..."}'),
    ]
    return create_model(answer.__name__, __base__=answer, candidates=(listed, ...))


@lru_cache(maxsize=64)
def with_numbered_scores(answer: type[EvaluationAnswer], count: int) -> type[EvaluationAnswer]:
    """The same form with `evaluations` as a score under each candidate's number, none left out.

    Asked for a list of judgements, a small model judges the first candidate and ends.

    Args:
        answer: A form of Evaluation.
        count: How many candidates there are to judge; 1 or more.
    """
    numbers = [str(number) for number in range(1, count + 1)]
    shown = ", ".join(f'"{number}": score' for number in numbers)
    listed: Any = Annotated[
        Listed[JudgementAnswer],
        BeforeValidator(_judgements),
        WithJsonSchema(_object({number: {"type": "number"} for number in numbers})),
        Shown(f"{{{shown}}}"),
    ]
    return create_model(answer.__name__, __base__=answer, evaluations=(listed, ...))


def _judgements(value: Any) -> Any:
    """Numbered scores as a list of judgements; anything else as it is."""
    if not isinstance(value, dict):
        return value
    scores = cast("dict[str, Any]", value)
    return [{"candidate": number, "score": score} for number, score in scores.items()]


def can_be_ranked(calls: Calls) -> bool:
    """Whether there is a choice of whole calls, and one that a schema can list."""
    return len(_whole(calls)) >= 2 and len(calls.names) <= MOST_CALLS


def _whole(calls: Calls) -> list[str]:
    """The calls that are written out with their arguments; the others are names of actions."""
    written = {shown for shown, _, _ in calls.written}
    return [name for name in calls.names if name in written]


def _in_order(value: Any) -> Any:
    """A ranking as a list of candidates with draft scores; anything else as it is."""
    if not isinstance(value, dict):
        return value
    ranking = cast("dict[str, Any]", value)
    listed = [
        {"action": ranking[place], "score": score}
        for place, score in zip(PLACES, DRAFTS, strict=True)
        if place in ranking
    ]
    if listed and "arguments" in ranking:
        listed[0]["arguments"] = ranking["arguments"]
    return listed


def _rankings(calls: Calls) -> Iterator[dict[str, Any]]:
    """A schema for each call that may be best and, where they are not too many, each second one."""
    whole = _whole(calls)
    for first in calls.names:
        others = [name for name in whole if name != first]
        few = len(calls.names) * len(others) <= _WAYS
        seconds = [[name] for name in others] if few else [others]
        for second in seconds or [[]]:
            third = [name for name in others if second != [name]]
            yield _ranking(first, second, third, free=first not in whole)


def _ranking(
    best: str, second: Sequence[str], third: Sequence[str], *, free: bool
) -> dict[str, Any]:
    """The schema of a ranking; a place for which no call is left is not asked for.

    An action whose arguments are free stands in the first place alone, with them beside it.
    """
    slots: dict[str, Any] = {"best": {"type": "string", "enum": [best]}}
    if free:
        slots["arguments"] = {"type": "string", "maxLength": _ARGUMENTS}
    for place, names in (("second", second), ("third", third)):
        if names:
            slots[place] = {"type": "string", "enum": list(names)}
    return _object(slots)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
