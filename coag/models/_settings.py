"""What can be set for a question, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from coag.schema import (
    Clock,
    CountingIds,
    IdSource,
    ModelCall,
    Phase,
    Rung,
    SystemClock,
    TokenUsage,
)

ModelT = TypeVar("ModelT", bound=BaseModel)


def _unheard(call: ModelCall) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Who asks and when, and who is told of each call."""

    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=CountingIds)
    """Gives the id of each call, of kind `call`."""
    cycle: int = 0
    phase: Phase | None = None
    on_call: Callable[[ModelCall], None] = _unheard
    """Is told of every call as soon as it is over, failed and cancelled ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings:
    """The bounds of one question."""

    max_tokens: int | None = None
    """Longest completion, in tokens; None leaves it to the client."""
    timeout: float | None = 600.0
    """Seconds until one call is given up; None waits for ever."""
    reasks: int = 1
    """How many times an unusable answer is asked for again, with the error."""
    rung: Rung | None = None
    """The strictest rung to try; None begins with the strictest that the client can do."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of the client's call; those that ask for a form or a limit win."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens!r}.")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {self.timeout!r}.")
        if self.reasks < 0:
            raise ValueError(f"reasks must not be negative, not {self.reasks!r}.")
        if self.rung is Rung.TEXT:
            raise ValueError("rung TEXT asks for no form; an answer of a type needs another one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[ModelT]):
    """A usable answer and what it took."""

    value: ModelT
    raw: str
    """The answer as the model gave it."""
    repaired: bool
    """True if the raw answer was no valid JSON of the wanted form and could be repaired."""
    calls: tuple[ModelCall, ...]
    """Every request that was made for it, in order; the last one brought the answer."""
    text: str = ""
    """The value as JSON: the raw answer, or what it was repaired to."""
    thought: str | None = None
    """The model's own thought, where its client tells one apart."""

    @property
    def usage(self) -> TokenUsage:
        """What all calls used together."""
        return usage_of(self.calls)


def usage_of(calls: Iterable[ModelCall]) -> TokenUsage:
    """What these calls used together."""
    return sum((call.usage for call in calls), TokenUsage())
