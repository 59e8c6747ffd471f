"""Intents and receipts: what brackets an action with an effect, so that it is never run twice."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import Field

from ._moment import Moment
from ._percepts import Failure
from ._value import Value

UNPARSED = "unparsed"
"""Stands for arguments that are no JSON object: under it they are recorded as they were written."""


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
    """What a tool gave back that the text of its receipt does not tell."""

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
