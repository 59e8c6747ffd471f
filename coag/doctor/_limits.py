"""How much an examination may take."""

from __future__ import annotations

from dataclasses import dataclass

_SMALLEST_CONTEXT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of an examination."""

    context: int = 4_096
    """Longest prompt that is tried, in tokens as we estimate them; at least 256."""
    max_tokens: int = 256
    """Longest completion, in tokens. Models that think first may need more."""
    seconds: float = 60.0
    """Seconds until one request is given up."""

    def __post_init__(self) -> None:
        if self.context < _SMALLEST_CONTEXT:
            raise ValueError(
                f"context must be at least {_SMALLEST_CONTEXT} tokens, not {self.context!r}."
            )
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens!r}.")
        if self.seconds <= 0:
            raise ValueError(f"seconds must be more than 0, not {self.seconds!r}.")
