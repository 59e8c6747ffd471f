"""Figures of one run, counted from its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import Field

from coag.schema import (
    RESUMED,
    EvaluationOutcome,
    Intent,
    ModelCall,
    Note,
    ProposalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Value,
)

_UNKNOWN_ACTION = "action_exists"
"""The check of Evaluation of which candidates die whose action does not exist."""


class Figures(Value):
    """Counts of one run, or sums over several."""

    actions: int = 0
    """External actions that reached Execution: moves, cleanings, looks, futile attempts."""
    model_calls: int = 0
    """Requests to the model, failed ones included."""
    questions: int = 0
    """What the model was asked; a question that had to be repeated counts once."""
    unusable_answers: int = 0
    """Questions whose answer stayed unusable, so that a phase fell back; 0 for a plain agent."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server took from its cache, where it tells."""
    seconds: float = 0.0
    """Time spent in turns."""
    decisions: dict[str, int] = Field(default_factory=dict)
    """How many actions were decided by whom: model, rank or only_survivor."""
    rejections: dict[str, int] = Field(default_factory=dict)
    """How many candidates each check or constraint rejected."""
    phantom_proposals: int = 0
    """Times that an action was wanted that does not exist."""
    phantom_attempts: int = 0
    """Those that reached Execution."""
    belief_error: int | None = None
    """Largest gap between a battery that the agent states and the true one."""

    def __add__(self, other: Figures) -> Figures:
        errors = [e for e in (self.belief_error, other.belief_error) if e is not None]
        return Figures(
            actions=self.actions + other.actions,
            model_calls=self.model_calls + other.model_calls,
            questions=self.questions + other.questions,
            unusable_answers=self.unusable_answers + other.unusable_answers,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            seconds=round(self.seconds + other.seconds, 3),
            decisions=dict(Counter(self.decisions) + Counter(other.decisions)),
            rejections=dict(Counter(self.rejections) + Counter(other.rejections)),
            phantom_proposals=self.phantom_proposals + other.phantom_proposals,
            phantom_attempts=self.phantom_attempts + other.phantom_attempts,
            belief_error=max(errors, default=None),
        )

    def decided_by(self) -> dict[str, float]:
        """The share of the actions that each decided, adding up to 1."""
        total = sum(self.decisions.values())
        return {who: round(count / total, 3) for who, count in sorted(self.decisions.items())}


@dataclass(slots=True)
class _Counting:
    """The figures on the way."""

    known: frozenset[str]
    usage: TokenUsage = field(default_factory=TokenUsage)
    calls: int = 0
    fallbacks: int = 0
    questions: set[object] = field(default_factory=set[object])
    actions: int = 0
    attempts: int = 0
    wanted: int = 0
    deliberates: bool = False
    seconds: float = 0.0
    turn_began: datetime | None = None
    written: datetime | None = None
    """When the record before was written."""
    decisions: Counter[str] = field(default_factory=Counter[str])
    rejections: Counter[str] = field(default_factory=Counter[str])

    def take(self, record: TraceRecord) -> None:
        match record:
            case ModelCall():
                self.calls += 1
                asked = (record.cycle, record.phase) if record.phase else record.id
                self.questions.add(asked)
                self.usage += record.usage
                self.wanted += sum(call["name"] not in self.known for call in record.tool_calls)
            case Intent():
                self.actions += 1
                self.attempts += record.action not in self.known
            case ProposalOutcome():
                self.deliberates = True
            case EvaluationOutcome():
                died = [e.died_of.constraint for e in record.evaluations if e.died_of]
                self.rejections.update(died)
                self.wanted += died.count(_UNKNOWN_ACTION)
            case SelectionOutcome() if record.decided_by is not None:
                self.decisions[record.decided_by.value] += 1
            case Note(about="fallback"):
                self.fallbacks += 1
            case TurnStart() | TurnEnd():
                self._time(record)
            case Note(about=about) if about == RESUMED:
                self._leave_out_the_break(record)
            case _:
                pass
        self.written = record.at

    def _time(self, record: TurnStart | TurnEnd) -> None:
        if isinstance(record, TurnStart):
            self.turn_began = record.at
        elif self.turn_began is not None:
            self.seconds += (record.at - self.turn_began).total_seconds()
            self.turn_began = None

    def _leave_out_the_break(self, resumed: Note) -> None:
        """The time in which no process played does not count as the turn's."""
        if self.turn_began is not None and self.written is not None:
            self.turn_began += resumed.at - self.written


def figures_of(
    records: Iterable[TraceRecord], known: Iterable[str], belief_error: int | None = None
) -> Figures:
    """The figures of a run.

    Args:
        records: Its trace, in order.
        known: Names of the tools that exist.
        belief_error: The gap in its beliefs, measured elsewhere.
    """
    counting = _Counting(known=frozenset(known))
    for record in records:
        counting.take(record)
    decisions = counting.decisions
    if not counting.deliberates and counting.actions:
        decisions = Counter({"model": counting.actions})
    return Figures(
        actions=counting.actions,
        model_calls=counting.calls,
        questions=len(counting.questions),
        unusable_answers=counting.fallbacks,
        prompt_tokens=counting.usage.prompt_tokens,
        completion_tokens=counting.usage.completion_tokens,
        cached_tokens=counting.usage.cached_tokens,
        seconds=round(counting.seconds, 3),
        decisions=dict(decisions),
        rejections=dict(counting.rejections),
        phantom_proposals=counting.wanted,
        phantom_attempts=counting.attempts,
        belief_error=belief_error,
    )
