"""What is told of a re-embedding: its plan, its progress, and one that is not done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedProgress:
    """How far a re-embedding came."""

    stage: Literal["copying", "switched"]
    """`switched` is said once, at the end: the new vectors are in use."""
    done: int
    """Records that have their new vectors."""
    total: int
    """Records that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedPlan:
    """What a re-embedding has to do, as found without changing anything."""

    state: Literal["needed", "half_way", "done"]
    """`done`: the records have vectors of this embedder, and nothing is left to do."""
    made_with: tuple[str, ...]
    """Names of the embedders whose vectors are in use."""
    embedder: str
    """Name of the one that was asked for."""
    records: int
    """Records that are there."""
    left: int
    """Records that have no vectors of this embedder yet."""
    seconds: float
    """About how long it takes, as measured on some of the records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedUnfinished:
    """A re-embedding that was begun and is not done."""

    embedder: str
    """Name of the embedder whose vectors the records are getting."""
    done: int
    """Records that have them."""
    records: int
    """Records that are there."""
