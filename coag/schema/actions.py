"""Actions: what there is, what is proposed, what was started, and its result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import Field
from typing_extensions import deprecated

from .percepts import Failure, Percept
from .values import Moment, SparseValue, Value

# ---- Actions: what Execution can run ----


class ActionSpec(SparseValue):
    """An action as it is offered in Proposal and checked in Evaluation."""

    SPARSE = frozenset({"critical"})

    name: str
    description: str
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments; the root is an object."""
    internal: bool = False
    """True if it touches the agent's own memory or flow, not the environment (CoALA §4.2)."""
    repeatable: bool = False
    """True if running it twice does no more than running it once. An internal action that is
    so runs without an intent, and may be run again after a crash."""
    read_only: bool = False
    """True if it changes nothing outside (MCP's `readOnlyHint`). Calls of one batch that are so
    run side by side, and one that gave no answer may be repeated."""
    idempotent: bool = False
    """True if running it again with the same arguments does no more than running it once (MCP's
    `idempotentHint`). One of unknown outcome may be repeated."""
    critical: bool = False
    """True if what it does cannot be undone, or costs money (MCP's `destructiveHint`)."""
    idempotency_key: bool = False
    """True if it takes an argument `idempotency_key`, which `parameters` do not show: the same key
    is filled in for the same action and arguments within a goal."""


class ActionCall(Value):
    """A selected action that is about to be run."""

    id: str
    """The intent's id; tools get it as their call id, servers may log it."""
    action: str
    arguments: dict[str, Any]
    call_id: str = ""
    """The model's own id of its tool call, for display; it may come again."""


class ActionResult(Value):
    """The result of running an action."""

    content: str
    data: Any = None
    """Structured form of the content where the action has one (JSON)."""
    is_error: bool = False
    failure: Failure | None = None
    """For failures: whether repeating the same call can help."""
    output: str | None = None
    """The whole output where `content` is cut; for later readers, never for the log."""
    outcome_unknown: bool = False
    """True if the action may or may not have had its effect: no answer in time, a lost line."""
    nothing_done: bool = False
    """For failures: our own code, or the tool's by raising, says that nothing was done."""
    percepts: tuple[Percept, ...] = ()
    """Further percepts that the action brings, besides its own return."""
    ends_turn: bool = False
    """True for `respond`: the content is the answer of this turn."""
    suspends: bool = False
    """True for an internal action that waits: the turn ends, and the goal stays open until
    something arrives."""


# ---- Candidates and how they are judged ----


class UnsettledAction(Value):
    """An external action of which it is not known whether it had its effect."""

    intent_id: str
    action: str
    arguments: dict[str, Any]
    cycle: int
    """The cycle in which it began."""
    memory_scope: str = ""
    """For whom it began, where the domain separates people."""


Reconciliation = Literal["happened", "did_not_happen", "unknown"]
"""What could be found out about such an action."""


class Candidate(Value):
    """A proposed action with its arguments, reason and expected effect (CoALA §4.6)."""

    id: str
    action: str
    raw_arguments: str = "{}"
    """The arguments as the model wrote them: a JSON object in a string, not yet checked."""
    arguments: dict[str, Any] | None = None
    """The arguments parsed and valid for the action's schema; None before Evaluation."""
    reason: str = ""
    expected_effect: str = ""
    batch: str | None = None
    """Id shared by the tool calls of one answer: no alternatives (`proposal="native"`)."""
    call_id: str = ""
    """The model's own id of its tool call; empty where it called none, or gave no id of its own."""
    draft_score: float | None = Field(default=None, ge=0.0, le=1.0)
    """The model's own score where one call gave candidates and scores (`depth="compact"`)."""
    unsettled: tuple[UnsettledAction, ...] = ()
    """For constraints: the external actions whose outcome is not known. While there is one, the
    perceptual state may be wrong. Empty in the trace."""


class Verdict(Value):
    """What one constraint says about one candidate."""

    allowed: bool
    reason: str = ""
    constraint: str = ""
    """Name of the constraint; filled in by its caller."""

    @classmethod
    def allow(cls, reason: str = "") -> Verdict:
        """The candidate may be executed as far as this constraint is concerned."""
        return cls(allowed=True, reason=reason)

    @classmethod
    def forbid(cls, reason: str, constraint: str = "") -> Verdict:
        """The candidate must not be executed; `reason` is shown to the agent and logged."""
        return cls(allowed=False, reason=reason, constraint=constraint)


class Evaluation(Value):
    """Everything that was found out about one candidate before one is selected."""

    candidate_id: str
    arguments: dict[str, Any] | None = None
    """The parsed arguments; None if they could not be parsed or fail the schema."""
    verdicts: tuple[Verdict, ...]
    """One per check and constraint in force, in order; the first that forbids ends the list."""
    projection: dict[str, Any] | None = None
    """The perceptual state that the domain's forward model predicts, as JSON."""
    gain: float | None = Field(default=None, ge=-1.0, le=1.0)
    """By how much the domain's heuristic value of the predicted state exceeds that of the state
    now, limited to -1..1; None where the domain has no such value."""
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    """The model's judgement of a surviving candidate, 1 is best; None if it gave none."""
    reason: str = ""

    def rank(self, unscored: float = 0.5) -> float:
        """What ranking goes by: the score and the gain together.

        Args:
            unscored: Takes the place of a score that was not given.
        """
        return (unscored if self.score is None else self.score) + (self.gain or 0.0)

    @property
    def survived(self) -> bool:
        """True if nothing forbids the candidate."""
        return all(verdict.allowed for verdict in self.verdicts)

    @property
    def rejected_by(self) -> Verdict | None:
        """The verdict that ended it, or None for a survivor."""
        return next((verdict for verdict in self.verdicts if not verdict.allowed), None)

    @property
    @deprecated("Evaluation.died_of is now Evaluation.rejected_by.")
    def died_of(self) -> Verdict | None:
        """The old name of `rejected_by`."""
        return self.rejected_by


def numbered(evaluations: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """The survivors in the order of their numbers in prompts: by predicted gain, the best first.

    Small models favour the first item of a list, so the domain's prediction decides the order.
    Without gains it is the order of the proposal.
    """
    survivors = (judged for judged in evaluations if judged.survived)
    return tuple(sorted(survivors, key=lambda judged: -(judged.gain or 0.0)))


UNPARSED = "unparsed"
"""Key under which arguments that are no JSON object are recorded, as they were written."""


def parsed_arguments(written: str) -> dict[str, Any]:
    """The arguments of a call that a model wrote, as an intent records them."""
    try:
        parsed: object = json.loads(written)
    except (ValueError, RecursionError):
        return {UNPARSED: written}
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {UNPARSED: written}


class Intent(Value):
    """Written and flushed right before an action that must not be run twice."""

    record: Literal["intent"] = "intent"
    id: str
    at: Moment
    cycle: int
    candidate_id: str | None
    """The selected candidate; None for a plain agent."""
    action: str
    arguments: dict[str, Any]
    """With the one key `unparsed` where a model wrote no JSON object."""
    internal: bool = False
    """True for an action of a module: its return is no percept, only that it is not known."""


class ReceiptStatus(StrEnum):
    """How an external action ended, as far as the agent can know."""

    DONE = "done"
    FAILED = "failed"
    """The action reported a failure, or could not be started."""
    UNKNOWN = "unknown"
    """No answer in time, or the line broke: it may or may not have had its effect."""
    CANCELLED = "cancelled"
    """The turn was cancelled while it ran: it may or may not have had its effect."""


class Returned(Value):
    """The part of a tool's result that the text of its receipt does not show."""

    type: str | None = None
    """Import name of the result's class; None for AutoGen's `ToolResult`."""
    name: str | None = None
    """The tool's name in the result, where it is not the action's."""
    is_error: bool = False
    """Whether the result says that it is an error."""
    parts: tuple[dict[str, Any], ...] | None = None
    """Each part as `{"text": ...}` or `{"image": ...}` (a data URI); None for one text."""
    fields: dict[str, Any] = Field(default_factory=dict)
    """What else a result of this class holds, as JSON."""
    shown: tuple[dict[str, Any], ...] = ()
    """What the tool showed while it ran, in order: `{"value": ...}`, with the `type` of models."""
    raised: str | None = None
    """The error that was raised in place of a result."""


class Receipt(Value):
    """Written and flushed right after an action that had an intent."""

    record: Literal["receipt"] = "receipt"
    intent_id: str
    at: Moment
    cycle: int
    status: ReceiptStatus
    content: str
    failure: Failure | None = None
    seconds: float = 0.0
    returned: Returned | None = None
    """None where the result is one text, `content`, and an error only if `status` is not `done`."""
