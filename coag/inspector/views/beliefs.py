"""What pages show of beliefs, memory and records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from coag.schema import Phase, RecalledRecord, Record

# ---- What the agent held to be so beside what was so ----


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefPoint:
    """One field at the beginning of one cycle."""

    cycle: int
    believed: Any
    """A scalar, or a short list of numbers such as a position; None where it is not held."""
    true: Any = None
    """The same of the environment; None where it does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefTrack:
    """One field of the perceptual state over time."""

    path: str
    """Dotted, within the perceptual state."""
    true_path: str
    """The field of the environment that it was paired with; empty for none."""
    points: tuple[BeliefPoint, ...]
    numeric: bool
    """True if it can be drawn as a line (for a position: a line for each part)."""
    wrong: int = 0
    """At how many points belief and truth differ."""

    @property
    def steady(self) -> bool:
        """True if it was the same throughout, and right as far as that is told."""
        return not self.wrong and all(
            point.believed == self.points[0].believed for point in self.points
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChange:
    """What a list held more and less of at the beginning of a cycle than at the one before."""

    cycle: int
    added: tuple[str, ...] = ()
    """Items as JSON."""
    removed: tuple[str, ...] = ()
    length: int = 0
    """How many items it held then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTrack:
    """A list of the perceptual state, such as the cells that are dirty, over time."""

    path: str
    """Dotted, within the perceptual state."""
    changes: tuple[ListChange, ...] = ()
    """Cycles in which it was another one than before; with the first that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """All fields that can be followed."""

    tracks: tuple[BeliefTrack, ...] = ()
    """Those with a truth to compare first."""
    lists: tuple[ListTrack, ...] = ()
    """Those that changed."""
    told: bool = False
    """True if the environment tells its state in this trace."""
    every: int = 1
    """Of a long run every how-many-eth cycle is shown."""


# ---- What a decision rested on, as a small graph ----


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


# ---- Long-term memory as a run used it ----


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record that was written in the run."""

    record: Record
    cycle: int
    at: datetime
    recalled: tuple[int, ...] = ()
    """Cycles that recalled it afterwards, the first ones of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRow:
    """One retrieval."""

    cycle: int
    query: str
    hits: tuple[RecalledRecord, ...]
    """With the parts of their scores."""
    left_out: tuple[str, ...] = ()
    """Ids of those for which the prompt had no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """A page of each."""

    written: tuple[RecordRow, ...] = ()
    written_total: int = 0
    recalls: tuple[RecallRow, ...] = ()
    """Retrievals that brought something, newest first."""
    recalls_total: int = 0
    page: int = 1
    pages: int = 1
    unreadable: int = 0
    """How many of what was written on this page are no records."""


# ---- One record of a trace, whole ----


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One record as it stands in the trace."""

    run: str
    """Key of the run."""
    number: int
    """From 0; one less than its line."""
    kind: str
    """What it is, such as `outcome`; empty where it cannot be read."""
    cycle: int | None
    """Its cycle; None for what stands before the first one."""
    phase: Phase | None
    """Its phase, where it has one."""
    of: int
    """How many records are known by now."""
    text: str
    """Its JSON on many lines, with all escaped that steers a terminal; else why it is not shown."""
