"""Candidates as a ranking of different calls."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.cycle.output_schema import (
    MOST_CALLS,
    BriefDeliberationAnswer,
    BriefEvaluationAnswer,
    BriefProposalAnswer,
    DeliberationAnswer,
    EnumeratedCalls,
    calls_of,
    can_be_ranked,
    form_of,
    with_numbered_scores,
    with_ranked_calls,
)
from coag.models import strict_schema
from coag.schema import ActionSpec

LOOK = ActionSpec(name="look", description="Look around.")
MOVE = ActionSpec(
    name="move",
    description="Move.",
    parameters={
        "type": "object",
        "properties": {"direction": {"type": "string", "enum": ["north", "south"]}},
        "required": ["direction"],
    },
)
SAY = ActionSpec(
    name="say",
    description="Say something.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}},
)
CALLS = calls_of([LOOK, MOVE, SAY])


def _ranked(**places: Any) -> DeliberationAnswer:
    form = with_ranked_calls(BriefDeliberationAnswer, CALLS)
    return form.model_validate({"situation": "Here.", "candidates": places})


def _admits(said: dict[str, Any], calls: EnumeratedCalls = CALLS) -> bool:
    schema = strict_schema(with_ranked_calls(BriefProposalAnswer, calls))
    try:
        jsonschema.validate({"candidates": said}, schema)
    except jsonschema.ValidationError:
        return False
    return True


def test_places_become_candidates_with_scores_that_fall() -> None:
    answer = _ranked(
        best="say", arguments='{"text": "hello"}', second="move direction=south", third="look"
    )
    proposed = [each.as_candidate(str(at)) for at, each in enumerate(answer.candidates)]
    assert [(each.action, json.loads(each.raw_arguments)) for each in proposed] == [
        ("say", {"text": "hello"}),
        ("move", {"direction": "south"}),
        ("look", {}),
    ]
    scores = [each.draft_score for each in proposed if each.draft_score is not None]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


def test_the_schema_admits_no_call_twice_in_a_row() -> None:
    assert _admits(
        {"best": "look", "second": "move direction=north", "third": "move direction=south"}
    )
    assert not _admits({"best": "look", "second": "look", "third": "move direction=south"})
    assert not _admits({"best": "look", "second": "move direction=north", "third": "look"})
    assert not _admits(
        {"best": "look", "second": "move direction=south", "third": "move direction=south"}
    )
    assert not _admits({"best": "fly", "second": "look", "third": "move direction=south"})


def test_of_two_calls_two_places_are_asked_for() -> None:
    calls = calls_of([MOVE])
    assert _admits({"best": "move direction=north", "second": "move direction=south"}, calls)
    assert not _admits({"best": "move direction=north"}, calls)


def test_one_whole_call_and_very_many_are_no_ranking() -> None:
    assert not can_be_ranked(calls_of([LOOK, SAY]))
    assert can_be_ranked(calls_of([LOOK, MOVE]))
    names = tuple(f"tool{number}" for number in range(MOST_CALLS + 1))
    assert not can_be_ranked(EnumeratedCalls(names, ()))


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists))
def test_what_is_no_ranking_is_refused_as_an_invalid_answer(said: Any) -> None:
    form = with_ranked_calls(BriefProposalAnswer, CALLS)
    try:
        answer = form.model_validate({"candidates": {"best": said}})
    except ValidationError:
        return
    assert all(isinstance(each.action, str) for each in answer.candidates)


@pytest.mark.parametrize("said", [None, 3, "look"])
def test_candidates_that_are_neither_list_nor_ranking_are_refused(said: Any) -> None:
    with pytest.raises(ValidationError):
        with_ranked_calls(BriefProposalAnswer, CALLS).model_validate({"candidates": said})


# ---- numbered scores ----


def test_numbered_scores_become_judgements() -> None:
    form = with_numbered_scores(BriefEvaluationAnswer, 2)
    answer = form.model_validate({"evaluations": {"1": 0.9, "2": 0.1}})
    assert [(each.candidate, each.score) for each in answer.evaluations] == [(1, 0.9), (2, 0.1)]
    assert '{"1": score, "2": score}' in form_of(form)


def test_judgements_in_a_list_are_taken_all_the_same() -> None:
    form = with_numbered_scores(BriefEvaluationAnswer, 2)
    answer = form.model_validate({"evaluations": [{"candidate": 2, "score": 0.4}]})
    assert [(each.candidate, each.score) for each in answer.evaluations] == [(2, 0.4)]


@pytest.mark.parametrize("said", [{"1": "good"}, {"first": 0.5}, {"1": 7}, "0.5", None])
def test_what_is_no_score_of_a_candidate_is_refused(said: Any) -> None:
    form = with_numbered_scores(BriefEvaluationAnswer, 2)
    with pytest.raises(ValidationError):
        form.model_validate({"evaluations": said})


def test_the_schema_admits_no_candidate_without_a_score() -> None:
    schema = strict_schema(with_numbered_scores(BriefEvaluationAnswer, 2))
    jsonschema.validate({"evaluations": {"1": 0.5, "2": 0.5}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"evaluations": {"1": 0.5}}, schema)
