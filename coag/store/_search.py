"""What is asked of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coag.schema import MemoryKind

from ._ranking import Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question to a store of records."""

    text: str | None
    """What to look for; None lists whatever matches the rest, newest first, with score 1."""
    kind: MemoryKind
    k: int = 5
    """At most this many records come back."""
    scopes: tuple[str, ...] | None = None
    """Whose records; None for everyone's."""
    where: Mapping[str, Any] | None = None
    """A filter over fields and metadata, see `parse_where`."""
    min_score: float | None = None
    """Records less similar are left out; None takes the embedder's own minimum."""
    include_superseded: bool = False
    """Whether records that another one superseded come back too."""
    ranking: Ranking | None = None
    """How to weigh meaning, words and the rest; None for the cosine alone."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k!r}.")
        if self.min_score is not None and not 0.0 <= self.min_score <= 1.0:
            raise ValueError(f"min_score must be between 0 and 1, not {self.min_score!r}.")
        if self.scopes == ():
            raise ValueError("scopes is empty and would match nothing; give None for all scopes.")

    @property
    def is_empty(self) -> bool:
        """True for a text of nothing but white space: it is similar to nothing."""
        return self.text is not None and not self.text.strip()
