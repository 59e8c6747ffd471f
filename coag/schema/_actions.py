"""Actions: what Execution can run."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ._percepts import Failure, Percept
from ._value import Value


class ActionSpec(Value):
    """An action as it is offered in Proposal and checked in Evaluation."""

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
    idempotency_key: bool = False
    """True if it takes an argument `idempotency_key`, which `parameters` do not show: whoever runs
    it gives the same key for the same action and arguments within a goal."""


class ActionCall(Value):
    """A selected action on its way to being run."""

    id: str
    """The intent's id; tools get it as their call id, servers may log it."""
    action: str
    arguments: dict[str, Any]
    call_id: str = ""
    """The model's own id of its tool call, for whoever is shown it; it may come again."""


class ActionResult(Value):
    """What running an action brought back."""

    content: str
    data: Any = None
    """Structured form of the content where the action has one (JSON)."""
    is_error: bool = False
    failure: Failure | None = None
    """For failures: whether repeating the same call can help."""
    output: str | None = None
    """The whole output where `content` is cut; for whoever passes it on, never for the log."""
    outcome_unknown: bool = False
    """True if the action may or may not have had its effect: no answer in time, a lost line."""
    percepts: tuple[Percept, ...] = ()
    """Further percepts that the action brings, besides its own return."""
    ends_turn: bool = False
    """True for `respond`: the content is the answer of this turn."""
