"""What the model is asked for in each phase: small, bounded forms, reasoning first."""

from __future__ import annotations

import json
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, create_model

from coag.schema import Candidate, GoalStatus

MAX_CANDIDATES = 4


def _cut_text(limit: int) -> BeforeValidator:
    return BeforeValidator(lambda value: value[:limit] if isinstance(value, str) else value)


def _cut_list(limit: int) -> BeforeValidator:
    return BeforeValidator(
        lambda value: cast("list[Any]", value)[:limit] if isinstance(value, list) else value
    )


def _as_json_text(value: Any) -> Any:
    """Models that were asked for JSON in a string sometimes give the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


Sentence = Annotated[str, Field(max_length=240), _cut_text(240)]
Paragraph = Annotated[str, Field(max_length=800), _cut_text(800)]
ArgumentsText = Annotated[str, Field(max_length=4_000), BeforeValidator(_as_json_text)]
Score = Annotated[float, Field(ge=0.0, le=1.0)]


class ReasoningAnswer(BaseModel):
    """How the model sees the situation."""

    situation: Paragraph
    risks: Annotated[list[Sentence], Field(max_length=4), _cut_list(4)] = Field(
        default_factory=list[str]
    )
    goal_status: GoalStatus = GoalStatus.OPEN


class CandidateAnswer(BaseModel):
    """One proposed action. `arguments` is a JSON object written as a string."""

    reason: Sentence = ""
    action: str = Field(max_length=64)
    arguments: ArgumentsText = "{}"
    expected_effect: Sentence = ""

    def as_candidate(self, candidate_id: str) -> Candidate:
        """The candidate that this answer proposes."""
        return Candidate(
            id=candidate_id,
            action=self.action,
            raw_arguments=self.arguments,
            reason=self.reason,
            expected_effect=self.expected_effect,
        )


class ProposalAnswer(BaseModel):
    """One to four actions, the most promising first."""

    candidates: Annotated[
        list[CandidateAnswer], Field(max_length=MAX_CANDIDATES), _cut_list(MAX_CANDIDATES)
    ]


class JudgementAnswer(BaseModel):
    """What the model thinks of one numbered candidate."""

    candidate: int
    reason: Sentence = ""
    score: Score


class EvaluationAnswer(BaseModel):
    """One judgement per candidate."""

    evaluations: Annotated[
        list[JudgementAnswer], Field(max_length=MAX_CANDIDATES), _cut_list(MAX_CANDIDATES)
    ]


class SelectionAnswer(BaseModel):
    """The number of the chosen candidate."""

    reason: Sentence = ""
    choice: int


class ScoredCandidateAnswer(CandidateAnswer):
    """A proposed action with the model's own score."""

    score: Score = 0.5

    def as_candidate(self, candidate_id: str) -> Candidate:
        """The candidate with its draft score."""
        proposed = super().as_candidate(candidate_id)
        return proposed.model_copy(update={"draft_score": self.score})


class DeliberationAnswer(BaseModel):
    """Reasoning, candidates and scores in one answer (`depth="compact"`)."""

    situation: Paragraph
    risks: Annotated[list[Sentence], Field(max_length=4), _cut_list(4)] = Field(
        default_factory=list[str]
    )
    goal_status: GoalStatus = GoalStatus.OPEN
    candidates: Annotated[
        list[ScoredCandidateAnswer], Field(max_length=MAX_CANDIDATES), _cut_list(MAX_CANDIDATES)
    ]


FormT = TypeVar("FormT", ProposalAnswer, DeliberationAnswer)


@cache
def with_enumerated_actions(answer: type[FormT], names: tuple[str, ...]) -> type[FormT]:
    """The same form with `action` limited to the given names, for servers that enforce it."""
    base = ScoredCandidateAnswer if answer is DeliberationAnswer else CandidateAnswer
    action: Any = Literal[names]
    named: Any = create_model(base.__name__, __base__=base, action=(action, ...))
    items: Any = Annotated[list[named], Field(max_length=MAX_CANDIDATES), _cut_list(MAX_CANDIDATES)]
    return create_model(answer.__name__, __base__=answer, candidates=(items, ...))


@cache
def form_of(answer: type[BaseModel]) -> str:
    """One line that shows a model the form of its answer."""
    return f"Answer with one JSON object of this form: {_example(answer)}"


def _example(model: type[BaseModel]) -> str:
    fields = (
        f'"{name}": {_placeholder(name, field.annotation)}'
        for name, field in model.model_fields.items()
    )
    return "{" + ", ".join(fields) + "}"


def _placeholder(name: str, annotation: Any) -> str:
    if name == "arguments":
        return '"the arguments as a JSON object, or {}"'
    if name == "action":
        return '"the name of one available action"'
    origin = get_origin(annotation)
    if origin is list:
        return f"[{_placeholder('', get_args(annotation)[0])}]"
    if origin is Annotated:
        return _placeholder(name, get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _example(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return '"' + "|".join(str(member.value) for member in annotation) + '"'
    if annotation is int:
        return "1"
    return "0.5" if annotation is float else '"..."'
