from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from coag.cycle import (
    DeliberationAnswer,
    EvaluationAnswer,
    ProposalAnswer,
    ReasoningAnswer,
    SelectionAnswer,
)
from coag.cycle.output_schema import (
    BriefDeliberationAnswer,
    BriefEvaluationAnswer,
    BriefProposalAnswer,
    BriefReasoningAnswer,
    BriefSelectionAnswer,
    calls_of,
    form_of,
    with_enumerated_actions,
    with_enumerated_calls,
)
from coag.schema import ActionSpec


@given(st.text(max_size=2_000))
def test_a_wordy_answer_is_cut_rather_than_refused(text: str) -> None:
    answer = ReasoningAnswer.model_validate({"situation": text, "risks": [text] * 9})
    assert len(answer.situation) <= 400
    assert len(answer.risks) <= 4


@pytest.mark.parametrize("score", [-0.1, 1.1, -1201201201201201.0])
def test_a_score_out_of_range_is_refused(score: float) -> None:
    with pytest.raises(ValidationError):
        EvaluationAnswer.model_validate({"evaluations": [{"candidate": 1, "score": score}]})


def test_arguments_given_as_an_object_are_taken_as_its_json() -> None:
    answer = ProposalAnswer.model_validate(
        {"candidates": [{"action": "move", "arguments": {"to": "east"}}]}
    )
    assert json.loads(answer.candidates[0].arguments) == {"to": "east"}


def test_enumerated_actions_leave_no_other_name() -> None:
    form = with_enumerated_actions(ProposalAnswer, ("move", "respond"))
    assert form.model_validate({"candidates": [{"action": "move"}]}).candidates
    with pytest.raises(ValidationError):
        form.model_validate({"candidates": [{"action": "fly"}]})
    assert form.__name__ == "ProposalAnswer"


@pytest.mark.parametrize(
    "answer",
    [ReasoningAnswer, ProposalAnswer, EvaluationAnswer, SelectionAnswer, DeliberationAnswer],
)
def test_every_form_shows_all_of_its_fields(answer: type[ReasoningAnswer]) -> None:
    shown = form_of(answer)
    assert all(f'"{name}"' in shown for name in answer.model_fields)


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


def test_calls_with_countable_arguments_are_written_out() -> None:
    calls = calls_of([MOVE, LOOK, SAY])
    assert calls.names == (
        "move direction=north fast=true",
        "move direction=north fast=false",
        "move direction=east fast=true",
        "move direction=east fast=false",
        "look",
        "say",
    )


def test_an_action_with_too_many_calls_is_listed_by_its_name() -> None:
    many = {"type": "object", "properties": {"n": {"enum": list(range(40))}}}
    assert calls_of([ActionSpec(name="pick", description="", parameters=many)]).names == ("pick",)


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


def test_the_schema_of_enumerated_calls_lists_nothing_else() -> None:
    form = with_enumerated_calls(BriefProposalAnswer, calls_of([LOOK, SAY]))
    schema = json.dumps(form.model_json_schema())
    assert '"enum": ["look", "say"]' in schema
    assert '"minItems": 3' in schema


@pytest.mark.parametrize(
    ("brief", "complete"),
    [
        (BriefReasoningAnswer, ReasoningAnswer),
        (BriefProposalAnswer, ProposalAnswer),
        (BriefDeliberationAnswer, DeliberationAnswer),
        (BriefEvaluationAnswer, EvaluationAnswer),
        (BriefSelectionAnswer, SelectionAnswer),
    ],
)
def test_a_brief_form_asks_for_less_and_is_taken_as_the_complete_one(
    brief: type[BaseModel], complete: type[BaseModel]
) -> None:
    assert issubclass(brief, complete)
    assert len(form_of(brief)) <= len(form_of(complete))
    assert "expected_effect" not in form_of(brief)
    assert "risks" not in form_of(brief)
    assert "expected_effect" not in json.dumps(brief.model_json_schema())


@pytest.mark.parametrize(
    "form", [BriefProposalAnswer, BriefDeliberationAnswer, BriefEvaluationAnswer]
)
def test_a_brief_form_asks_for_no_reason_of_each_candidate_but_takes_one(
    form: type[BaseModel],
) -> None:
    assert "reason" not in form_of(form)
    assert '"reason"' not in json.dumps(form.model_json_schema())
    answer = BriefProposalAnswer.model_validate(
        {"candidates": [{"action": "look", "reason": "to see"}]}
    )
    assert answer.candidates[0].reason == "to see"


def test_a_single_brief_candidate_is_taken() -> None:
    answer = BriefProposalAnswer.model_validate({"candidates": [{"action": "look"}]})
    assert len(answer.candidates) == 1


@given(st.text(max_size=500))
def test_a_wordy_brief_answer_is_cut_too(text: str) -> None:
    answer = BriefDeliberationAnswer.model_validate(
        {"situation": text, "candidates": [{"reason": text, "action": "look"}] * 9}
    )
    assert len(answer.situation) <= 80
    assert [len(each.reason) <= 240 for each in answer.candidates] == [True] * 4
