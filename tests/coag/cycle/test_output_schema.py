"""Candidates as a ranking of different calls."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.cycle import (
    DeliberationAnswer,
    EvaluationAnswer,
    ProposalAnswer,
    ReasoningAnswer,
)
from coag.cycle.output_schema import (
    BriefDeliberationAnswer,
    BriefEvaluationAnswer,
    BriefProposalAnswer,
    EnumeratedCalls,
    calls_of,
    with_enumerated_actions,
    with_enumerated_calls,
    with_numbered_scores,
    with_ranked_calls,
)
from coag.models import strict_schema
from coag.schema import ActionSpec


@given(st.text(max_size=2_000))
def test_a_wordy_answer_is_cut_rather_than_refused(text: str) -> None:
    answer = ReasoningAnswer.model_validate({"situation": text, "risks": [text] * 9})
    assert len(answer.situation) <= 800
    assert [len(risk) <= 240 for risk in answer.risks] == [True] * 4
    drafted = [{"reason": text, "action": "look"}] * 9
    brief = BriefDeliberationAnswer.model_validate({"situation": text, "candidates": drafted})
    assert len(brief.situation) <= 80
    assert [len(each.reason) <= 240 for each in brief.candidates] == [True] * 4


@pytest.mark.parametrize("score", [-0.1, 1.1, -1201201201201201.0])
def test_a_score_out_of_range_is_refused(score: float) -> None:
    with pytest.raises(ValidationError):
        EvaluationAnswer.model_validate({"evaluations": [{"candidate": 1, "score": score}]})


def test_enumerated_actions_leave_no_other_name() -> None:
    form = with_enumerated_actions(ProposalAnswer, ("move", "respond"))
    assert form.model_validate({"candidates": [{"action": "move"}]}).candidates
    with pytest.raises(ValidationError):
        form.model_validate({"candidates": [{"action": "fly"}]})
    assert form.__name__ == "ProposalAnswer"


MOVE = ActionSpec(
    name="move",
    description="Go.",
    parameters={
        "type": "object",
        "properties": {
            "direction": {"type": "string", "enum": ["north", "east"]},
            "fast": {"type": "boolean"},
        },
    },
)
LOOK = ActionSpec(name="look", description="Look around.")
SAY = ActionSpec(
    name="say",
    description="Say something.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}},
)


@pytest.mark.parametrize("answer", [BriefProposalAnswer, BriefDeliberationAnswer, ProposalAnswer])
def test_a_whole_call_is_taken_apart(
    answer: type[ProposalAnswer] | type[DeliberationAnswer],
) -> None:
    form = with_enumerated_calls(answer, calls_of([MOVE, LOOK, SAY]))
    said = [
        {"action": "move direction=east fast=false"},
        {"action": "look"},
        {"action": "fly", "arguments": '{"to": "the moon"}'},
    ]
    taken = form.model_validate({"situation": "Here.", "candidates": said}).candidates
    assert [(each.action, json.loads(each.arguments)) for each in taken] == [
        ("move", {"direction": "east", "fast": False}),
        ("look", {}),
        ("fly", {"to": "the moon"}),
    ]


# ---- Candidates as a ranking of different calls ----


MOVE_ranking = ActionSpec(
    name="move",
    description="Move.",
    parameters={
        "type": "object",
        "properties": {"direction": {"type": "string", "enum": ["north", "south"]}},
        "required": ["direction"],
    },
)
CALLS = calls_of([LOOK, MOVE_ranking, SAY])


def _ranked(**places: Any) -> DeliberationAnswer:
    form = with_ranked_calls(BriefDeliberationAnswer, CALLS)
    return form.model_validate({"situation": "Here.", "candidates": places})


def _admits(answer: dict[str, Any], calls: EnumeratedCalls = CALLS) -> bool:
    schema = strict_schema(with_ranked_calls(BriefProposalAnswer, calls))
    try:
        jsonschema.validate({"candidates": answer}, schema)
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


@pytest.mark.parametrize(
    ("best", "second", "third", "admitted"),
    [
        ("look", "move direction=north", "move direction=south", True),
        ("look", "look", "move direction=south", False),
        ("look", "move direction=north", "look", False),
        ("look", "move direction=south", "move direction=south", False),
        ("fly", "look", "move direction=south", False),
    ],
)
def test_the_schema_admits_no_call_twice(
    best: str, second: str, third: str, admitted: bool
) -> None:
    assert _admits({"best": best, "second": second, "third": third}) is admitted


def test_of_two_calls_two_places_are_asked_for() -> None:
    calls = calls_of([MOVE_ranking])
    assert _admits({"best": "move direction=north", "second": "move direction=south"}, calls)
    assert not _admits({"best": "move direction=north"}, calls)


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists))
@example(None)
@example("look")
def test_what_is_neither_ranking_nor_list_is_refused_as_an_invalid_answer(said: Any) -> None:
    form = with_ranked_calls(BriefProposalAnswer, CALLS)
    if not isinstance(said, list):
        with pytest.raises(ValidationError):
            form.model_validate({"candidates": said})
    try:
        answer = form.model_validate({"candidates": {"best": said}})
    except ValidationError:
        return
    assert all(isinstance(each.action, str) for each in answer.candidates)


# ---- numbered scores ----


NUMBERED = with_numbered_scores(BriefEvaluationAnswer, 2)


@pytest.mark.parametrize("said", [{"1": "good"}, {"first": 0.5}, {"1": 7}, "0.5", None])
def test_what_is_no_score_of_a_candidate_is_refused(said: Any) -> None:
    with pytest.raises(ValidationError):
        NUMBERED.model_validate({"evaluations": said})


def test_the_schema_admits_no_candidate_without_a_score() -> None:
    schema = strict_schema(NUMBERED)
    jsonschema.validate({"evaluations": {"1": 0.5, "2": 0.5}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"evaluations": {"1": 0.5}}, schema)
