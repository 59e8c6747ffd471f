"""What the agent held to be so beside what was so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
