"""What the model is asked for in each phase: small, bounded forms, reasoning first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

from coag.schema import Candidate, GoalStatus

MAX_CANDIDATES = 4
BRIEF_CANDIDATES = 3
_RESPOND = "respond"


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
Remark = Annotated[str, Field(max_length=80), _cut_text(80)]
Phrase = Annotated[str, Field(max_length=40), _cut_text(40)]
ArgumentsText = Annotated[str, Field(max_length=4_000), BeforeValidator(_as_json_text)]
Score = Annotated[float, Field(ge=0.0, le=1.0)]
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Shown:
    """How a field is shown in the form of an answer, where its schema is not that of its type."""

    form: str


Listed = Annotated[Sequence[ItemT], Field(max_length=MAX_CANDIDATES), _cut_list(MAX_CANDIDATES)]
_BriefList = Annotated[
    Sequence[ItemT],
    Field(
        max_length=MAX_CANDIDATES,
        json_schema_extra={"minItems": BRIEF_CANDIDATES, "maxItems": BRIEF_CANDIDATES},
    ),
    _cut_list(MAX_CANDIDATES),
]
"""So many are asked for, that there is a choice; fewer, or one more, are taken all the same."""


class SummaryAnswer(BaseModel, frozen=True):
    """What a model makes of the older part of a dialogue."""

    summary: Annotated[str, Field(max_length=1_600), _cut_text(1_600)]


class ReasoningAnswer(BaseModel, frozen=True):
    """How the model sees the situation."""

    situation: Paragraph
    risks: Annotated[list[Sentence], Field(max_length=4), _cut_list(4)] = Field(
        default_factory=list[str]
    )
    goal_status: GoalStatus = GoalStatus.OPEN


class CandidateAnswer(BaseModel, frozen=True):
    """One proposed action. `arguments` is a JSON object written as a string."""

    reason: Sentence = ""
    action: str = Field(max_length=64)
    arguments: ArgumentsText = "{}"
    expected_effect: Sentence = ""

    def as_candidate(self, candidate_id: str) -> Candidate:
        """The candidate that this answer proposes; an answer in plain text is taken as its text."""
        plain = self.action == _RESPOND and not self.arguments.lstrip().startswith("{")
        told = json.dumps({"text": self.arguments}, ensure_ascii=False)
        return Candidate(
            id=candidate_id,
            action=self.action,
            raw_arguments=told if plain and self.arguments.strip() else self.arguments,
            reason=self.reason,
            expected_effect=self.expected_effect,
        )


class ProposalAnswer(BaseModel, frozen=True):
    """One to four actions, the most promising first."""

    candidates: Listed[CandidateAnswer]


class JudgementAnswer(BaseModel, frozen=True):
    """What the model thinks of one numbered candidate."""

    candidate: int
    reason: Sentence = ""
    score: Score


class EvaluationAnswer(BaseModel, frozen=True):
    """One judgement per candidate."""

    evaluations: Listed[JudgementAnswer]


class SelectionAnswer(BaseModel, frozen=True):
    """The number of the chosen candidate."""

    reason: Sentence = ""
    choice: int


class ScoredCandidateAnswer(CandidateAnswer, frozen=True):
    """A proposed action with the model's own score."""

    score: Score = 0.5

    def as_candidate(self, candidate_id: str) -> Candidate:
        """The candidate with its draft score."""
        proposed = super().as_candidate(candidate_id)
        return proposed.model_copy(update={"draft_score": self.score})


class DeliberationAnswer(BaseModel, frozen=True):
    """Reasoning, candidates and scores in one answer (`depth="compact"`)."""

    situation: Paragraph
    risks: Annotated[list[Sentence], Field(max_length=4), _cut_list(4)] = Field(
        default_factory=list[str]
    )
    goal_status: GoalStatus = GoalStatus.OPEN
    candidates: Listed[ScoredCandidateAnswer]


class BriefReasoningAnswer(ReasoningAnswer, frozen=True):
    """How the model sees the situation, in a sentence."""

    situation: Remark
    risks: SkipJsonSchema[list[Sentence]] = Field(default_factory=list[str])
    goal_status: SkipJsonSchema[GoalStatus] = GoalStatus.OPEN


class BriefCandidateAnswer(CandidateAnswer, frozen=True):
    """One proposed action, without a word."""

    reason: SkipJsonSchema[Sentence] = ""
    expected_effect: SkipJsonSchema[Sentence] = ""


class BriefProposalAnswer(ProposalAnswer, frozen=True):
    """Three actions, the most promising first."""

    candidates: _BriefList[BriefCandidateAnswer]


class BriefJudgementAnswer(JudgementAnswer, frozen=True):
    """What one numbered candidate is worth, without a word."""

    reason: SkipJsonSchema[Sentence] = ""


class BriefEvaluationAnswer(EvaluationAnswer, frozen=True):
    """One score per candidate."""

    evaluations: Listed[BriefJudgementAnswer]


class BriefSelectionAnswer(SelectionAnswer, frozen=True):
    """The number of the chosen candidate, with a short reason."""

    reason: Phrase = ""


class BriefScoredCandidateAnswer(ScoredCandidateAnswer, frozen=True):
    """A proposed action and the model's own score."""

    reason: SkipJsonSchema[Sentence] = ""
    expected_effect: SkipJsonSchema[Sentence] = ""


class BriefDeliberationAnswer(DeliberationAnswer, frozen=True):
    """A sentence on the situation, and three scored candidates."""

    situation: Remark
    risks: SkipJsonSchema[list[Sentence]] = Field(default_factory=list[str])
    goal_status: SkipJsonSchema[GoalStatus] = GoalStatus.OPEN
    candidates: _BriefList[BriefScoredCandidateAnswer]


FormT = TypeVar("FormT", ProposalAnswer, DeliberationAnswer)


def candidates_of(answer: type[ProposalAnswer] | type[DeliberationAnswer]) -> type[CandidateAnswer]:
    """The form of each candidate in an answer."""
    listed: Any = answer.model_fields["candidates"].annotation
    return get_args(listed)[0]


def with_candidates(answer: type[FormT], candidate: type[CandidateAnswer]) -> type[FormT]:
    """The same form with another one of its candidates."""
    brief = candidates_of(answer) in (BriefCandidateAnswer, BriefScoredCandidateAnswer)
    items: Any = _BriefList[candidate] if brief else Listed[candidate]
    return create_model(answer.__name__, __base__=answer, candidates=(items, ...))


@cache
def form_of(answer: type[BaseModel]) -> str:
    """One line that shows a model the form of its answer."""
    return f"Answer with one JSON object of this form: {_example(answer)}"


def _example(model: type[BaseModel]) -> str:
    asked = model.model_json_schema()["properties"]
    fields = (
        f'"{name}": {_shown(field) or _placeholder(name, field.annotation)}'
        for name, field in model.model_fields.items()
        if name in asked
    )
    return "{" + ", ".join(fields) + "}"


def _shown(field: FieldInfo) -> str:
    """What a field says of its own form; empty where its type says it all."""
    return next((each.form for each in field.metadata if isinstance(each, Shown)), "")


def _placeholder(name: str, annotation: Any) -> str:
    if name == "arguments":
        return '"the arguments as a JSON object, or {}"'
    if name == "action":
        return '"the name of one available action"'
    origin = get_origin(annotation)
    if origin in (list, Sequence):
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
