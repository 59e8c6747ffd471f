"""What a decision rested on, as a small graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NodeSort(StrEnum):
    """What a node stands for; also its column, from left to right."""

    PERCEPT = "percept"
    RECORD = "record"
    PROCEDURE = "procedure"
    REASONING = "reasoning"
    CANDIDATE = "candidate"
    CONSTRAINT = "constraint"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One thing that took part."""

    id: str
    sort: NodeSort
    label: str
    """A few words."""
    detail: str = ""
    """All of it, for whoever asks."""
    good: bool | None = None
    """False for what was rejected, True for what was chosen."""
    link: str = ""
    """A fragment of the cycle's page (`#proposal`), or empty."""
    note: str = ""
    """A word beside what it is, such as its score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What flowed into what."""

    source: str
    target: str
    label: str = ""
    """E.g. a score, or `forbids`."""
    good: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyGraph:
    """The decision of one cycle."""

    cycle: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0
    """Nodes beyond those there is room for."""
    trouble: str = ""
    """Why it cannot be told, where that is so."""
    sentences: tuple[str, ...] = ()
    """The same in words, for whoever cannot see it."""
