"""The record of asking a model."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from ._outcomes import TokenUsage
from ._phase import Phase
from ._value import Value


class Rung(StrEnum):
    """How a model was told which form its answer must have; from strictest to loosest."""

    JSON_SCHEMA = "json_schema"
    JSON_MODE = "json_mode"
    PROMPT = "prompt"
    NATIVE = "native"
    """Tools were offered; the answer is tool calls or text."""
    TEXT = "text"
    """No form was asked for (plain agents)."""


class ModelCall(Value):
    """One request to a model and what came of it; failed ones included."""

    record: Literal["model_call"] = "model_call"
    id: str
    at: datetime
    cycle: int = 0
    phase: Phase | None = None
    """The phase that asked; None for a plain agent."""
    model: str
    expected: str | None = None
    """Name of the answer's type, where one was asked for."""
    rung: Rung
    attempt: int
    """1 for the first request, 2 for the one that repeats it with the error."""
    messages: tuple[dict[str, Any], ...]
    """The messages as sent: `role`, `content`, and tool calls for plain agents."""
    raw: str
    """The answer as it came; empty if none came."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were offered."""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """The tool calls in the answer: `id`, `name`, `arguments`."""
    usage: TokenUsage
    usage_estimated: bool = False
    """True if the client told no usage that can be; the tokens are estimated from the texts."""
    finish_reason: str | None = None
    repaired: bool = False
    """True if the raw answer was no valid JSON and could be repaired."""
    error: str | None = None
    """Why the answer could not be used, or why none came."""
    seconds: float = 0.0
