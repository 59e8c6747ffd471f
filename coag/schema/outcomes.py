"""Outcomes: the one typed result of each phase; the log line and the state change at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from .actions import Candidate, Evaluation
from .depth import DepthChoice
from .percepts import Percept
from .records import FeltRecord, RecalledRecord
from .values import Moment, Phase, SparseValue, Value


class TokenUsage(Value):
    """Tokens, and money, of one or more model calls."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """How many of the prompt tokens the server took from its cache, where it says so."""
    calls: int = 0
    cost: float = 0.0
    """In the currency of the prices that the agent was given; 0 without prices."""

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def nothing(self) -> bool:
        """True if no model was called and nothing was used."""
        return not (self.calls or self.tokens or self.cached_tokens or self.cost)

    def __add__(self, other: TokenUsage) -> TokenUsage:
        if self.nothing or other.nothing:
            return other if self.nothing else self
        return TokenUsage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            calls=self.calls + other.calls,
            cost=self.cost + other.cost,
        )


class GoalAssessment(StrEnum):
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
    at: Moment
    usage: TokenUsage = TokenUsage()
    """What the model calls of this phase used, failed attempts included."""
    untrusted_from: tuple[str, ...] = ()
    """Modules, and speakers of another context's dialogue, whose untrusted text was shown in this
    phase and not before in the activity."""


CountedFor = Literal["goal", "run", "person"]
"""How long a call counts: for the goal that it was made for, while working memory lasts, or for
the person that it was made for."""


class RetrievalOutcome(_OutcomeBase, SparseValue):
    """What was recalled, and which procedures and constraints hold for this cycle."""

    SPARSE = frozenset({"felt", "doubted", "counted"})

    phase: Literal[Phase.RETRIEVAL] = Phase.RETRIEVAL
    query: str
    filter: dict[str, Any] | None = None
    """The metadata filter that the domain set on episodic recall."""
    memory_scope: str | None = None
    """Whose records were asked for besides the agent's own, and are written in this cycle. Empty if
    nobody is known; None where the domain does not separate people."""
    records: tuple[RecalledRecord, ...] = ()
    left_out: tuple[str, ...] = ()
    """Ids of records that were recalled too, for which the prompt had no room; best first."""
    felt: tuple[FeltRecord, ...] = ()
    """Records on the tip of the tongue; not written down where there are none."""
    doubted: tuple[str, ...] = ()
    """Ids of records that memory left out: only untrusted sources confirm them, and they are too
    uncertain; not written down where there are none."""
    summary: str = ""
    """What a model made of the messages that have left the dialogue (`summarize=True`)."""
    summarized: int = 0
    """How many messages that summary covers, counted from the first."""
    procedures: dict[str, int] = Field(default_factory=dict)
    """Version of each procedure, pinned for this cycle."""
    constraints: tuple[str, ...] = ()
    """Names of the constraints in force, pinned for this cycle, in the order they are asked."""
    counted: dict[str, CountedFor] = Field(default_factory=dict[str, "CountedFor"])
    """The actions whose calls these constraints count, by patterns of their names, and for what;
    not written down where there are none."""


class ReasoningOutcome(_OutcomeBase, SparseValue):
    """How the agent understands its situation."""

    SPARSE = frozenset({"depth"})

    phase: Literal[Phase.REASONING] = Phase.REASONING
    situation: str
    risks: tuple[str, ...] = ()
    goal_status: GoalAssessment = GoalAssessment.OPEN
    thought: str = ""
    """The model's own thought where its client separates it (`proposal="native"`)."""
    drafts: tuple[Candidate, ...] = ()
    """With `depth="compact"`: the candidates that the same model call gave."""
    depth: DepthChoice | None = None
    """With `depth="auto"`: how deeply this cycle deliberates; else not written down."""


class ProposalOutcome(_OutcomeBase):
    """The actions under consideration. Nothing is run here."""

    phase: Literal[Phase.PROPOSAL] = Phase.PROPOSAL
    candidates: tuple[Candidate, ...] = ()
    thought: str = ""
    """The model's own thought where its client separates it (`proposal="native"`)."""
    proposed_by: Literal["model", "native", "grounded", "draft", "nobody"] = "model"
    """`native`: as tool calls or plain text; `grounded`: from the domain's legal actions;
    `draft`: from Reasoning's call; `nobody`: the model's answer was unusable (a note in the
    trace says how)."""


class EvaluationOutcome(_OutcomeBase, SparseValue):
    """What schemas, projections, constraints and the model say about each candidate."""

    SPARSE = frozenset({"escalated"})

    phase: Literal[Phase.EVALUATION] = Phase.EVALUATION
    evaluations: tuple[Evaluation, ...] = ()
    escalated: str = ""
    """With `depth="auto"`: why the model was asked once more, about candidates that were close."""


class SelectionOutcome(_OutcomeBase):
    """The one candidate to execute, or one batch of them, or an impasse."""

    phase: Literal[Phase.SELECTION] = Phase.SELECTION
    candidate_id: str | None = None
    """The chosen candidate; of a batch the first."""
    batch: tuple[str, ...] = ()
    """All candidates of a chosen batch, in the order of the model's calls; else empty."""
    decided_by: DecidedBy | None = None
    """None exactly when there is an impasse."""
    reason: str = ""

    @property
    def impasse(self) -> bool:
        """True if no candidate survived."""
        return self.candidate_id is None

    @property
    def chosen(self) -> tuple[str, ...]:
        """Ids of everything that is to be executed."""
        return self.batch or ((self.candidate_id,) if self.candidate_id is not None else ())


class ExecutionStatus(StrEnum):
    """How an execution ended."""

    NONE = "none"
    """An impasse: nothing was selected, so nothing was run."""
    DONE = "done"
    FAILED = "failed"
    """The action ran and failed, or was interrupted; its percept says how."""
    REFUSED = "refused"
    """A constraint forbade it at the last moment; it was not run."""


class Executed(Value):
    """One action as Execution dealt with it."""

    candidate_id: str | None
    action: str
    arguments: dict[str, Any] | None = None
    status: ExecutionStatus
    internal: bool = False
    intent_id: str | None = None
    """The intent's id, for external actions that were started."""
    result: str = ""


class ExecutionOutcome(_OutcomeBase):
    """What was run and its result; the world's answer is in the queued percepts.

    Where a batch was run, the fields of a single action are those of its first one.
    """

    phase: Literal[Phase.EXECUTION] = Phase.EXECUTION
    status: ExecutionStatus
    candidate_id: str | None = None
    action: str | None = None
    arguments: dict[str, Any] | None = None
    internal: bool = False
    intent_id: str | None = None
    """The intent's id, for external actions."""
    result: str = ""
    batch: tuple[Executed, ...] = ()
    """Every action of a batch, in the order of the model's calls; else empty."""
    response: str | None = None
    """The answer of the turn, if an action ended it: `respond`, or a handoff."""
    ended_by: str | None = None
    """The action that ended the turn."""
    suspended: bool = False
    """True if it ended the turn without an answer: the activity waits for something to arrive."""
    queued: tuple[Percept, ...] = ()
    """Percepts that wait to be perceived at the next boundary."""

    @classmethod
    def of(
        cls,
        executed: Sequence[Executed],
        *,
        cycle: int,
        at: datetime,
        queued: tuple[Percept, ...] = (),
        response: str | None = None,
        ended_by: str | None = None,
        suspended: bool = False,
    ) -> ExecutionOutcome:
        """The outcome of at least one action that Execution dealt with."""
        first = executed[0]
        return cls(
            cycle=cycle,
            at=at,
            status=_overall([one.status for one in executed]),
            candidate_id=first.candidate_id,
            action=first.action,
            arguments=first.arguments,
            internal=first.internal,
            intent_id=first.intent_id,
            result=first.result,
            batch=tuple(executed) if len(executed) > 1 else (),
            response=response,
            ended_by=ended_by,
            suspended=suspended,
            queued=queued,
        )

    @property
    def executed(self) -> tuple[Executed, ...]:
        """Every action that Execution dealt with; empty at an impasse."""
        if self.batch or self.action is None:
            return self.batch
        return (
            Executed(
                candidate_id=self.candidate_id,
                action=self.action,
                arguments=self.arguments,
                status=self.status,
                internal=self.internal,
                intent_id=self.intent_id,
                result=self.result,
            ),
        )


def _overall(statuses: Sequence[ExecutionStatus]) -> ExecutionStatus:
    """Failed if anything failed, done if anything was done, else refused."""
    for status in (ExecutionStatus.FAILED, ExecutionStatus.DONE):
        if status in statuses:
            return status
    return ExecutionStatus.REFUSED


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
