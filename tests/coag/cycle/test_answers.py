from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.cycle import (
    DeliberationAnswer,
    EvaluationAnswer,
    ProposalAnswer,
    ReasoningAnswer,
    SelectionAnswer,
)
from coag.cycle._answers import form_of, with_enumerated_actions


@given(st.text(max_size=2_000))
def test_a_wordy_answer_is_cut_rather_than_refused(text: str) -> None:
    answer = ReasoningAnswer.model_validate({"situation": text, "risks": [text] * 9})
    assert len(answer.situation) <= 800
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
