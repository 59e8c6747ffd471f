"""Values of spans and metrics: attributes, contents, decision events, meters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.util.types import AttributeValue

from coag._util.text import well_formed
from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ModelCall,
    Outcome,
    ProposalOutcome,
    ReasoningOutcome,
    Redactor,
    RetrievalOutcome,
    SelectionOutcome,
)
from coag.tracing import RunKind

from . import names
from .names import OTHER

# ---- Values of records in the form that OpenTelemetry can send ----
#
# A span with a value that does not fit its format is lost, with all those beside it.


_LONGEST_NAME = 200
_MOST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Attributes = dict[str, AttributeValue]


def nanoseconds(at: datetime) -> int:
    """A time as OpenTelemetry counts it; one without a zone is taken for UTC."""
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max((aware - _EPOCH) // _MICROSECOND * 1_000, 0), _MOST)


def duration(seconds: float) -> int:
    """Nanoseconds of a duration; 0 for what is none."""
    return int(min(seconds * 1e9, _MOST)) if seconds > 0 else 0


def later(start: int, by: int) -> int:
    """A time after another, as far as there are times."""
    return min(start + by, _MOST)


def count(number: int) -> int:
    """A count that fits into 64 bits."""
    return min(max(number, 0), _MOST)


def name(text: str) -> str:
    """A name on one line, cut to a length that a name may have."""
    line = " ".join(well_formed(text[: 2 * _LONGEST_NAME]).split())
    return line if len(line) <= _LONGEST_NAME else f"{line[:_LONGEST_NAME]}…"


def present(values: Mapping[str, AttributeValue | None]) -> Attributes:
    """The values that are there; names and other strings made fit to be sent."""
    return {key: value for key, value in values.items() if value is not None}


# ---- Whose run it is, for the names of spans ----


_PROVIDERS = {
    "AzureOpenAI": "azure.ai.openai",
    "OpenAI": "openai",
    "Anthropic": "anthropic",
    "Ollama": "ollama",
    "ScriptedModel": "scripted",
}
"""Who serves the model, by how the class of AutoGen's client begins."""
_SCHEMES = ("openai", "anthropic", "ollama", "scripted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose run it is."""

    agent: str
    """The agent's name."""
    run: str = ""
    """The run's id; empty if it is not known."""
    provider: str = OTHER
    """Who serves its models, in OpenTelemetry's words (`openai`, `anthropic`, ...)."""
    kind: RunKind | None = None
    """None if it is not known."""
    parent: str | None = None
    """The run that this one was forked from."""


def provider_of(*, client: object | None = None, model: str = "") -> str:
    """Who serves a model, in OpenTelemetry's words; `_OTHER` if it is not known.

    Args:
        client: The AutoGen client that speaks to it, recognised by the name of its class.
        model: The model as the user named it, e.g. `openai:gpt-5`.
    """
    named = type(client).__name__
    for beginning, provider in _PROVIDERS.items():
        if named.startswith(beginning):
            return provider
    scheme = model.partition(":")[0]
    return scheme if scheme in _SCHEMES else OTHER


def model_name(model: str) -> str:
    """The model's own name: without an address, which may hold a key."""
    if "://" not in model:
        return model
    try:
        parts = urlsplit(model)
        return parts.fragment or parts.hostname or OTHER
    except ValueError:
        return OTHER


# ---- Contents as attributes; only with `record_content=True` ----
#
# The format of messages is OpenTelemetry's: a list of messages with a role and parts. Secrets are
# taken out as a trace's writer does, and long texts are cut.


LONGEST = 8_000
"""Characters of a text that are sent."""
_LOOKED_AT = 64_000
"""Characters of it that are looked through for secrets; a half one at their end is not sent."""
_MOST_MESSAGES = 100


class Content:
    """Makes texts fit to be sent."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor.from_environment()

    def text(self, text: str) -> str:
        """A text without secrets, cut to its bound; what is missing is counted."""
        looked_at = well_formed(text[:_LOOKED_AT])
        clean = str(json.loads(self._redactor.clean(json.dumps(looked_at))))
        missing = len(text) - min(len(looked_at), LONGEST)
        return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]} [… {missing} more]"

    def json(self, value: Any) -> str:
        """A value as JSON; where that is long, its beginning."""
        return self.text(json.dumps(value, ensure_ascii=False, default=str))

    def sent(self, call: ModelCall) -> str:
        """The messages of a request; of very many the last."""
        last = call.messages[-_MOST_MESSAGES:]
        return json.dumps([self._message(message) for message in last], ensure_ascii=False)

    def answered(self, call: ModelCall) -> str:
        """The answer to a request."""
        parts = [self._text_part(call.raw)] if call.raw else []
        parts += [self._call_part(one) for one in call.tool_calls[:_MOST_MESSAGES]]
        return self.message("assistant", parts, call.finish_reason)

    def response(self, text: str) -> str:
        """The agent's answer of a turn."""
        return self.message("assistant", [self._text_part(text)], "stop")

    def message(self, role: str, parts: list[dict[str, Any]], reason: str | None) -> str:
        """A list of one message, as JSON."""
        one = {"role": role, "parts": parts, "finish_reason": self.text(reason or "")}
        return json.dumps([one], ensure_ascii=False)

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message.get("content", "")
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        return {"role": self.text(str(message.get("role", ""))), "parts": [self._text_part(text)]}

    def _text_part(self, text: str) -> dict[str, Any]:
        return {"type": "text", "content": self.text(text)}

    def _call_part(self, call: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "tool_call",
            "id": self.text(str(call.get("id", ""))),
            "name": self.text(str(call.get("name", ""))),
            "arguments": self.text(str(call.get("arguments", ""))),
        }


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))
"""Bounds of the histograms' buckets, as OpenTelemetry's conventions advise."""

_DURATIONS = {
    names.OPERATION_DURATION: "Time that a call of a model took.",
    names.TURN_DURATION: "Time that a turn took, from the message to the answer.",
    names.CYCLE_DURATION: "Time that the six phases of a cycle took.",
    names.PHASE_DURATION: "Time that a phase took.",
    names.ACTION_DURATION: "Time that an external action took.",
}
_COUNTERS = {
    names.VETOES: ("{candidate}", "Candidates that a constraint or a check rejected."),
    names.IMPASSES: ("{cycle}", "Cycles in which no candidate survived."),
    names.NOTES: ("{note}", "Repairs, fallbacks, modules left out, and other remarks."),
    names.TOKENS_CACHED: ("{token}", "Input tokens that a server took from its cache."),
}


class Meters:
    """The instruments that a run is measured with."""

    def __init__(self, provider: MeterProvider | None, version: str) -> None:
        meter = (provider or get_meter_provider()).get_meter("coag", version)
        self._durations = {
            name: meter.create_histogram(
                name, unit="s", description=text, explicit_bucket_boundaries_advisory=_SECONDS
            )
            for name, text in _DURATIONS.items()
        }
        self._counters = {
            name: meter.create_counter(name, unit=unit, description=text)
            for name, (unit, text) in _COUNTERS.items()
        }
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            unit="{token}",
            description="Tokens that calls of models used, by their type.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def took(self, what: str, nanoseconds: int, attributes: Attributes) -> None:
        """Measures how long something took; `what` is the metric's name."""
        self._durations[what].record(max(nanoseconds, 0) / 1e9, attributes)

    def add(self, what: str, attributes: Attributes, amount: int = 1) -> None:
        """Counts something; `what` is the metric's name."""
        self._counters[what].add(amount, attributes)

    def used(self, call: ModelCall, attributes: Attributes) -> None:
        """Measures the tokens of a call, unless they were only estimated."""
        if call.usage_estimated:
            return
        usage = call.usage
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            if tokens > 0:
                self._tokens.record(count(tokens), {**attributes, names.TOKEN_TYPE: kind})
        if usage.cached_tokens > 0:
            self.add(names.TOKENS_CACHED, attributes, count(usage.cached_tokens))


# ---- Attributes and decision events of the outcome of a phase ----


_MADE_UP = "action_exists"
"""The check that rejects actions that do not exist; what they are called is a model's text."""
_MOST_EVENTS = 100
"""Events of a phase that are sent; all rejected candidates are counted."""


@dataclass(frozen=True, slots=True)
class PhaseEvent:
    """Something that happened in a phase."""

    name: str
    attributes: Attributes = field(default_factory=Attributes)


@dataclass(slots=True)
class Decisions:
    """Reads outcomes; keeps the candidates of the cycle."""

    content: Content | None
    """None to send no texts."""
    candidates: Mapping[str, Candidate] = field(default_factory=dict[str, Candidate])

    def attributes(self, outcome: Outcome) -> Attributes:
        """The attributes of the phase's span."""
        match outcome:
            case RetrievalOutcome():
                return {
                    names.RECALLED: len(outcome.records),
                    names.CONSTRAINTS: [name(one) for one in outcome.constraints[:_MOST_EVENTS]],
                }
            case ReasoningOutcome():
                status: Attributes = {names.GOAL_STATUS: outcome.goal_status.value}
                return status | self._content(outcome.situation)
            case ProposalOutcome():
                self.candidates = {one.id: one for one in outcome.candidates}
                return {
                    names.CANDIDATES: len(outcome.candidates),
                    names.PROPOSED_BY: outcome.proposed_by,
                }
            case EvaluationOutcome():
                survivors = sum(one.survived for one in outcome.evaluations)
                count = len(outcome.evaluations)
                return {names.CANDIDATES: count, names.SURVIVORS: survivors}
            case SelectionOutcome():
                decided = outcome.decided_by and outcome.decided_by.value
                return present({names.DECIDED_BY: decided})
            case ExecutionOutcome():
                return {names.ACTION_STATUS: outcome.status.value}

    def events(self, outcome: Outcome) -> Iterator[PhaseEvent]:
        """The decisions in an outcome."""
        match outcome:
            case EvaluationOutcome():
                rejected = [one for one in outcome.evaluations if not one.survived]
                yield from (self._rejected(one) for one in rejected[:_MOST_EVENTS])
            case SelectionOutcome(impasse=True):
                yield PhaseEvent(names.IMPASSE_EVENT, self._content(outcome.reason))
            case SelectionOutcome():
                yield from (self._selected(outcome, one) for one in outcome.chosen[:_MOST_EVENTS])
            case _:
                return

    def _rejected(self, evaluation: Evaluation) -> PhaseEvent:
        verdict = evaluation.rejected_by
        constraint = verdict.constraint if verdict else ""
        attributes: Attributes = {
            names.CANDIDATE_ID: name(evaluation.candidate_id),
            names.CONSTRAINT: name(constraint),
        }
        if constraint != _MADE_UP or self.content is not None:
            attributes |= self._action_of(evaluation.candidate_id)
        reason = self._content(verdict.reason if verdict else "")
        return PhaseEvent(names.REJECTED_EVENT, attributes | reason)

    def _selected(self, outcome: SelectionOutcome, chosen: str) -> PhaseEvent:
        decided_by = outcome.decided_by and outcome.decided_by.value
        attributes = present({names.CANDIDATE_ID: name(chosen), names.DECIDED_BY: decided_by})
        attributes |= self._action_of(chosen)
        return PhaseEvent(names.SELECTED_EVENT, attributes | self._content(outcome.reason))

    def _action_of(self, candidate_id: str) -> Attributes:
        candidate = self.candidates.get(candidate_id)
        if candidate is None:
            return {}
        action = candidate.action if self.content is None else self.content.text(candidate.action)
        return {names.ACTION: name(action)}

    def _content(self, text: str) -> Attributes:
        """The text itself, where texts are sent."""
        if self.content is None or not text:
            return {}
        return {names.CONTENT: self.content.text(text)}
