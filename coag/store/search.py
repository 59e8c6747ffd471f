"""What is asked of a store of records, how parts of a score weigh, and the order of the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from coag.schema import MemoryKind, RecalledRecord, Value

from .filters import Condition, all_of, one_of, parse_where
from .records import CURRENT


class Ranking(Value):
    """How much each part of a score weighs."""

    dense: float = Field(default=0.55, ge=0.0)
    """Of the cosine."""
    lexical: float = Field(default=0.45, ge=0.0)
    """Of the share of the query's words."""
    neighbours: tuple[float, ...] = (0.5, 0.2)
    """Of records one place before and after in the same episode, two places, and so on."""
    episode: float = Field(default=0.2, ge=0.0)
    """Of the mean of the three best records of its episode."""
    source: float = Field(default=0.18, ge=0.0)
    """For a record of the one source that the query names."""
    question: float = Field(default=0.09, ge=0.0)
    """Taken from a record that asks: questions seldom answer."""
    length: float = Field(default=0.15, ge=0.0)
    """For a text that says much; a shorter one has a part of it."""
    recency: float = Field(default=0.02, ge=0.0)
    """For the newest record found; an older one has a part of it."""
    half_life: float = Field(default=30.0, gt=0.0)
    """Days after which recency has halved."""
    importance: float = Field(default=0.05, ge=0.0)
    """For a record of importance 1; taken from one of importance 0."""
    untrusted: float = Field(default=0.02, ge=0.0)
    """Taken from a record that is not to be trusted."""
    pool: int = Field(default=40, ge=1)
    """How many records each index proposes."""
    centres: int = Field(default=30, ge=1)
    """How many of the best have their neighbours looked at."""
    alike: float = Field(default=0.9, gt=0.0)
    """Of texts that share this part of their words, the first counts; the others come last."""


DEFAULT_RANKING = Ranking()
"""The weights that were measured."""


class LinkSource(Protocol):
    """Links that were learned between records, e.g. from use."""

    def neighbours(self, ids: Collection[str]) -> Mapping[str, Mapping[str, float]]:
        """What each of these records is tied to, with weights of 0..1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question to a store of records."""

    text: str | None
    """What to look for; None lists all that meets the rest, newest first, with score 1."""
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
    links: LinkSource | None = None
    """What the one who asks has learned of the records; a store need not look at it."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k!r}.")
        if self.min_score is not None and not 0.0 <= self.min_score <= 1.0:
            raise ValueError(f"min_score must be between 0 and 1, not {self.min_score!r}.")
        check_scopes(self.scopes)

    @property
    def is_empty(self) -> bool:
        """True for a text of nothing but white space: it is similar to nothing."""
        return self.text is not None and not self.text.strip()


def condition_of(search: Search) -> Condition:
    """Everything that a search asks of a record besides similarity."""
    scopes = [] if search.scopes is None else [one_of("scope", search.scopes)]
    current = [] if search.include_superseded else [one_of(CURRENT, (True,))]
    return all_of([parse_where(search.where), *scopes, *current])


def check_scopes(scopes: Sequence[str] | None) -> None:
    """Refuses an empty choice of scopes."""
    if scopes is not None and not scopes:
        raise ValueError("scopes is empty and would match nothing; give None for all scopes.")


def ranked(hits: Iterable[RecalledRecord], k: int) -> list[RecalledRecord]:
    """The k best in the order of every store: by score, then newest first, then by id."""

    def place(hit: RecalledRecord) -> tuple[float, float, str]:
        return -hit.score, -hit.record.created_at.timestamp(), hit.record.id

    return sorted(hits, key=place)[:k]
