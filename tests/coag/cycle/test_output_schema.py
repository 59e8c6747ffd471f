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


@given(st.text(max_size=500))
def test_a_wordy_brief_answer_is_cut_too(text: str) -> None:
    answer = BriefDeliberationAnswer.model_validate(
        {"situation": text, "candidates": [{"reason": text, "action": "look"}] * 9}
    )
    assert len(answer.situation) <= 80
    assert [len(each.reason) <= 240 for each in answer.candidates] == [True] * 4
