"""What the model is asked for in each phase: small, bounded forms, reasoning first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from itertools import product
from math import prod
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from coag.schema import ActionSpec, Candidate, GoalAssessment

from .actions import RESPOND

MAX_CANDIDATES = 4
BRIEF_CANDIDATES = 3


def _cut(limit: int) -> BeforeValidator:
    """Cuts a text or a list that is too long, where it would be refused."""
    return BeforeValidator(
        lambda value: cast("list[Any]", value)[:limit] if isinstance(value, str | list) else value
    )


def _as_json_text(value: Any) -> Any:
    """Models that were asked for JSON in a string sometimes give the object itself."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


Sentence = Annotated[str, Field(max_length=240), _cut(240)]
Paragraph = Annotated[str, Field(max_length=800), _cut(800)]
Remark = Annotated[str, Field(max_length=80), _cut(80)]
Phrase = Annotated[str, Field(max_length=40), _cut(40)]
ArgumentsText = Annotated[str, Field(max_length=4_000), BeforeValidator(_as_json_text)]
Score = Annotated[float, Field(ge=0.0, le=1.0)]
ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT", bound=BaseModel)


class FormExample(str):
    """How a field is shown in the form of an answer, where its schema is not that of its type."""

    __slots__ = ()


Listed = Annotated[Sequence[ItemT], Field(max_length=MAX_CANDIDATES), _cut(MAX_CANDIDATES)]
_BriefList = Annotated[
    Sequence[ItemT],
    Field(
        max_length=MAX_CANDIDATES,
        json_schema_extra={"minItems": BRIEF_CANDIDATES, "maxItems": BRIEF_CANDIDATES},
    ),
    _cut(MAX_CANDIDATES),
]
"""So many are asked for, that there is a choice; fewer, or one more, are taken all the same."""


class SummaryAnswer(BaseModel, frozen=True):
    """What a model makes of the older part of a dialogue."""

    summary: Annotated[str, Field(max_length=1_600), _cut(1_600)]


class ReasoningAnswer(BaseModel, frozen=True):
    """How the model sees the situation."""

    situation: Paragraph
    risks: Annotated[list[Sentence], Field(max_length=4), _cut(4)] = Field(
        default_factory=list[str]
    )
    goal_status: GoalAssessment = GoalAssessment.OPEN


class CandidateAnswer(BaseModel, frozen=True):
    """One proposed action. `arguments` is a JSON object written as a string."""

    reason: Sentence = ""
    action: str = Field(max_length=64)
    arguments: ArgumentsText = "{}"
    expected_effect: Sentence = ""

    def as_candidate(self, candidate_id: str) -> Candidate:
        """The candidate that this answer proposes; an answer in plain text is taken as its text."""
        plain = self.action == RESPOND.name and not self.arguments.lstrip().startswith("{")
        as_json = json.dumps({"text": self.arguments}, ensure_ascii=False)
        return Candidate(
            id=candidate_id,
            action=self.action,
            raw_arguments=as_json if plain and self.arguments.strip() else self.arguments,
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


class DeliberationAnswer(ReasoningAnswer, frozen=True):
    """Reasoning, candidates and scores in one answer (`depth="compact"`)."""

    candidates: Listed[ScoredCandidateAnswer]


def _brief(answer: type[AnswerT], **fields: Any) -> type[AnswerT]:
    """The form with other fields: for small models, which are asked for as little as possible."""
    return create_model(f"Brief{answer.__name__}", __base__=answer, **fields)


_UNASKED: Any = (SkipJsonSchema[Sentence], "")
"""A text that a brief form does not ask for, but takes."""
_SITUATION: dict[str, Any] = {
    "situation": (Remark, ...),
    "risks": (SkipJsonSchema[list[Sentence]], Field(default_factory=list[str])),
    "goal_status": (SkipJsonSchema[GoalAssessment], GoalAssessment.OPEN),
}
BriefReasoningAnswer = _brief(ReasoningAnswer, **_SITUATION)
BriefCandidateAnswer = _brief(CandidateAnswer, reason=_UNASKED, expected_effect=_UNASKED)
BriefProposalAnswer = _brief(ProposalAnswer, candidates=(_BriefList[BriefCandidateAnswer], ...))
BriefJudgementAnswer = _brief(JudgementAnswer, reason=_UNASKED)
BriefEvaluationAnswer = _brief(EvaluationAnswer, evaluations=(Listed[BriefJudgementAnswer], ...))
BriefSelectionAnswer = _brief(SelectionAnswer, reason=(Phrase, ""))
BriefScoredCandidateAnswer = _brief(
    ScoredCandidateAnswer, reason=_UNASKED, expected_effect=_UNASKED
)
BriefDeliberationAnswer = _brief(
    DeliberationAnswer, **_SITUATION, candidates=(_BriefList[BriefScoredCandidateAnswer], ...)
)


FormT = TypeVar("FormT", bound=ProposalAnswer | DeliberationAnswer)


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
    properties = model.model_json_schema()["properties"]
    fields: list[str] = []
    for name, field in model.model_fields.items():
        own = next((each for each in field.metadata if isinstance(each, FormExample)), "")
        if name in properties:
            fields.append(f'"{name}": {own or _placeholder(name, field.annotation)}')
    return "{" + ", ".join(fields) + "}"


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


SPOKEN = json.dumps({"text": "..."})
"""Arguments by which an answer is judged before it is written."""
MOST_CALLS = 12
"""Calls of one action that are written out; one that has more is listed by its name."""


@dataclass(frozen=True, slots=True)
class EnumeratedCalls:
    """The calls that an answer may name."""

    names: tuple[str, ...]
    """How an action may be written: `move direction=east`, or the name of an action whose
    arguments cannot be counted."""
    written: tuple[tuple[str, str, str], ...]
    """For each call that is written out: how, the action, and its arguments as JSON."""

    @property
    def whole(self) -> list[str]:
        """Those that are written out with their arguments; the others are names of actions."""
        written = {text for text, _, _ in self.written}
        return [name for name in self.names if name in written]

    @property
    def can_be_ranked(self) -> bool:
        """Whether there is a choice of whole calls, and one that a schema can list."""
        return len(self.whole) >= 2 and len(self.names) <= MOST_CALLS

    def judged(self) -> list[tuple[str, str]]:
        """The calls that can be judged before they are made, as action and arguments.

        An answer in words counts as one, whatever its words.
        """
        calls = [(name, arguments) for text, name, arguments in self.written if text in self.names]
        return [*calls, *((name, SPOKEN) for name in self.names if name == RESPOND.name)]

    def without(self, rejected: Set[tuple[str, str]]) -> EnumeratedCalls:
        """These calls but for rejected ones (action and arguments); all, if fewer than two stay."""
        gone = {text for text, name, arguments in self.written if (name, arguments) in rejected}
        gone |= {name for name in self.names if (name, SPOKEN) in rejected}
        remaining = tuple(name for name in self.names if name not in gone)
        return EnumeratedCalls(remaining, self.written) if len(remaining) > 1 else self


def calls_of(specs: Sequence[ActionSpec]) -> EnumeratedCalls:
    """Every call of the actions whose arguments can be counted, and the names of the others."""
    names: list[str] = []
    written: list[tuple[str, str, str]] = []
    for spec in specs:
        properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
        choices = {name: _values(schema) for name, schema in properties.items()}
        if not 0 < prod(map(len, choices.values())) <= MOST_CALLS:
            names.append(spec.name)
            continue
        for values in product(*choices.values()):
            chosen = dict(zip(choices, values, strict=True))
            pairs = [f"{key}={v if isinstance(v, str) else _json(v)}" for key, v in chosen.items()]
            names.append(" ".join([spec.name, *pairs]))
            written.append((names[-1], spec.name, _json(chosen)))
    return EnumeratedCalls(tuple(names), tuple(written))


def _values(schema: Any) -> list[Any]:
    if not isinstance(schema, Mapping):
        return []
    properties = cast("Mapping[str, Any]", schema)
    if "const" in properties:
        return [properties["const"]]
    listed: Any = properties.get("enum")
    if isinstance(listed, list):
        return cast("list[Any]", listed)
    return [True, False] if properties.get("type") == "boolean" else []


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=256)
def with_enumerated_actions(answer: type[FormT], names: tuple[str, ...]) -> type[FormT]:
    """The same form with `action` limited to the given names."""
    base = candidates_of(answer)
    action: Any = Literal[names]
    return with_candidates(answer, create_model(base.__name__, __base__=base, action=(action, ...)))


@lru_cache(maxsize=256)
def with_enumerated_calls(answer: type[FormT], calls: EnumeratedCalls) -> type[FormT]:
    """The same form with `action` listing whole calls.

    Only the schema holds the list. Anything else, from a server that enforces nothing, is taken as
    it is, and judged in Evaluation.
    """
    return with_candidates(answer, _naming_calls(answer, calls))


def _naming_calls(answer: type[FormT], calls: EnumeratedCalls) -> type[CandidateAnswer]:
    """The form of a candidate in an answer, with `action` listing whole calls."""
    base = candidates_of(answer)
    table = {text: (name, arguments) for text, name, arguments in calls.written}

    def unfold(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        described = cast("dict[str, Any]", value)
        result = table.get(str(described.get("action")))
        if result is None or described["action"] == result[0]:
            return described
        return {**described, "action": result[0], "arguments": result[1]}

    listed = {"type": "string", "enum": list(calls.names)}
    action: Any = Annotated[str, WithJsonSchema(listed)]
    return create_model(
        base.__name__,
        __base__=base,
        __validators__={"unfold": cast("Any", model_validator(mode="before")(unfold))},
        action=(action, ...),
    )


# ---- Candidates as a ranking of calls, and numbered scores, for servers that enforce schemas ----
#
# Asked for a list of candidates, a small model writes one and the same call three times. In a
# ranking the schema lists, for each call that may come first, only others for the places after
# it. The order takes the place of scores, as where language models rank a list of passages (Sun
# et al. 2023, RankGPT).


PLACES = ("best", "second", "third")
"""What is asked for, the most promising first."""
DRAFTS = (0.8, 0.6, 0.4)
"""Draft scores by place, where a ranking has to do without numbers."""
_ARGUMENTS = 160
"""Characters of arguments that a ranking has room for."""
_WAYS = 30
"""Beginnings of a ranking that a schema spells out; of more, the third may repeat the second."""


@lru_cache(maxsize=256)
def with_ranked_calls(answer: type[FormT], calls: EnumeratedCalls) -> type[FormT]:
    """The same form with `candidates` as a ranking of the calls, if they `can_be_ranked`.

    What comes as a list all the same, from a server that enforces nothing, is taken as one.
    """
    item = _naming_calls(answer, calls)
    listed: Any = Annotated[
        Listed[item],
        BeforeValidator(_in_order),
        WithJsonSchema({"anyOf": list(_rankings(calls))}),
        FormExample('{"best": "...", "second": "...", "third": "..."}'),
    ]
    return create_model(answer.__name__, __base__=answer, candidates=(listed, ...))


@lru_cache(maxsize=64)
def with_numbered_scores(answer: type[EvaluationAnswer], count: int) -> type[EvaluationAnswer]:
    """The same form with `evaluations` as a score under each candidate's number, none left out.

    Asked for a list of judgements, a small model judges the first candidate and ends.
    """
    numbers = [str(number) for number in range(1, count + 1)]
    shown = ", ".join(f'"{number}": score' for number in numbers)
    listed: Any = Annotated[
        Listed[JudgementAnswer],
        BeforeValidator(_judgements),
        WithJsonSchema(_object({number: {"type": "number"} for number in numbers})),
        FormExample(f"{{{shown}}}"),
    ]
    return create_model(answer.__name__, __base__=answer, evaluations=(listed, ...))


def _judgements(value: Any) -> Any:
    """Numbered scores as a list of judgements; anything else as it is."""
    if not isinstance(value, dict):
        return value
    scores = cast("dict[str, Any]", value)
    return [{"candidate": number, "score": score} for number, score in scores.items()]


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


def _rankings(calls: EnumeratedCalls) -> Iterator[dict[str, Any]]:
    """A schema for each call that may be best and, where they are not too many, each second one.

    A place for which no call is left is not asked for. An action whose arguments are free can only
    be first; its arguments are a field of their own.
    """
    for first in calls.names:
        others = [name for name in calls.whole if name != first]
        few = len(calls.names) * len(others) <= _WAYS
        for second in ([[name] for name in others] if few else [others]) or [[]]:
            slots: dict[str, Any] = {"best": {"type": "string", "enum": [first]}}
            if first not in calls.whole:
                slots["arguments"] = {"type": "string", "maxLength": _ARGUMENTS}
            third = [name for name in others if second != [name]]
            for place, names in (("second", second), ("third", third)):
                if names:
                    slots[place] = {"type": "string", "enum": names}
            yield _object(slots)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
