"""Outcomes: the one typed result of each phase; the log line and the state change at once."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from ._candidates import Candidate, Evaluation
from ._percepts import Percept
from ._phase import Phase
from ._records import RecalledRecord
from ._value import Value


class TokenUsage(Value):
    """Tokens of one or more model calls."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """How many of the prompt tokens the server took from its cache, where it tells."""
    calls: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            calls=self.calls + other.calls,
        )


class GoalStatus(StrEnum):
    """What Reasoning says about the goal."""

    OPEN = "open"
    ACHIEVED = "achieved"
    IMPOSSIBLE = "impossible"


class DecidedBy(StrEnum):
    """Who made a decision."""

    MODEL = "model"
    RANK = "rank"
    ONLY_SURVIVOR = "only_survivor"


class _OutcomeBase(Value):
    record: Literal["outcome"] = "outcome"
    cycle: int = Field(ge=1)
    at: datetime
    usage: TokenUsage = TokenUsage()
    """What the model calls of this phase used, failed attempts included."""


class RetrievalOutcome(_OutcomeBase):
    """What was recalled, and which procedures and constraints hold for this cycle."""

    phase: Literal[Phase.RETRIEVAL] = Phase.RETRIEVAL
    query: str
    filter: dict[str, Any] | None = None
    """The metadata filter that the domain set on episodic recall."""
    records: tuple[RecalledRecord, ...] = ()
    procedures: dict[str, int] = Field(default_factory=dict)
    """Version of each procedure, pinned for this cycle."""
    constraints: tuple[str, ...] = ()
    """Names of the constraints in force, pinned for this cycle, in the order they are asked."""


class ReasoningOutcome(_OutcomeBase):
    """How the agent understands its situation."""

    phase: Literal[Phase.REASONING] = Phase.REASONING
    situation: str
    risks: tuple[str, ...] = ()
    goal_status: GoalStatus = GoalStatus.OPEN
    drafts: tuple[Candidate, ...] = ()
    """With `depth="compact"`: the candidates that the same model call gave."""


class ProposalOutcome(_OutcomeBase):
    """The actions under consideration. Nothing is run here."""

    phase: Literal[Phase.PROPOSAL] = Phase.PROPOSAL
    candidates: tuple[Candidate, ...] = ()
    proposed_by: Literal["model", "grounded", "draft", "nobody"] = "model"
    """`grounded`: from the domain's legal actions; `draft`: from Reasoning's call;
    `nobody`: the model's answer was unusable (a note in the trace says how)."""


class EvaluationOutcome(_OutcomeBase):
    """What schemas, projections, constraints and the model say about each candidate."""

    phase: Literal[Phase.EVALUATION] = Phase.EVALUATION
    evaluations: tuple[Evaluation, ...] = ()


class SelectionOutcome(_OutcomeBase):
    """The one candidate to execute, or an impasse."""

    phase: Literal[Phase.SELECTION] = Phase.SELECTION
    candidate_id: str | None = None
    decided_by: DecidedBy | None = None
    """None exactly when there is an impasse."""
    reason: str = ""

    @property
    def impasse(self) -> bool:
        """True if no candidate survived."""
        return self.candidate_id is None


class ExecutionStatus(StrEnum):
    """How an execution ended."""

    NONE = "none"
    """An impasse: nothing was selected, so nothing was run."""
    DONE = "done"
    FAILED = "failed"
    """The action ran and failed, or broke off; its percept says how."""
    REFUSED = "refused"
    """A constraint forbade it at the last moment; it was not run."""


class ExecutionOutcome(_OutcomeBase):
    """What was run and what it brought back; the world's answer is in the queued percepts."""

    phase: Literal[Phase.EXECUTION] = Phase.EXECUTION
    status: ExecutionStatus
    candidate_id: str | None = None
    action: str | None = None
    arguments: dict[str, Any] | None = None
    internal: bool = False
    intent_id: str | None = None
    """The intent's id, for external actions."""
    result: str = ""
    response: str | None = None
    """The answer of the turn, if the action was `respond`."""
    queued: tuple[Percept, ...] = ()
    """Percepts that wait to be perceived at the next boundary."""


Outcome = Annotated[
    RetrievalOutcome
    | ReasoningOutcome
    | ProposalOutcome
    | EvaluationOutcome
    | SelectionOutcome
    | ExecutionOutcome,
    Field(discriminator="phase"),
]
"""The result of a phase, tagged by `phase`."""
