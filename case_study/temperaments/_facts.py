"""What a temperament knows when it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vacuum_world.world import Cell, Reading

Claim = Literal["blocked", "forbidden", "clean"]
"""What a sign may say of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What another agent asks for."""

    kind: Literal["clean", "come", "stop"]
    """To clean a cell, to come to it, or to stop working."""
    cell: Cell | None = None
    """The cell that it is about; None where it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the messages of one request say about the world and the task."""

    reading: Reading | None = None
    """The latest reading of the sensors; None where no message holds one."""
    ordered: bool = True
    """Whether it knows which cells the user asked to clean."""
    unsure: bool = False
    """Whether it is not known if the latest action had its effect."""
    dirty: frozenset[Cell] = frozenset()
    """Cells that the task or a reading calls dirty, those seen clean since left out."""
    left: frozenset[Cell] = frozenset()
    """Cells that are dirty for whoever weighs readings against what actions reported: a cleaning
    that was reported counts before it shows, and readings that cannot be true do not."""
    cleaned: frozenset[Cell] = frozenset()
    """Cells of which a cleaning was reported."""
    visited: frozenset[Cell] = frozenset()
    """Cells that the robot has stood on."""
    obstacles: frozenset[Cell] = frozenset()
    """Cells that were felt, bumped into or remembered as blocked."""
    solid: frozenset[Cell] = frozenset()
    """Those of them that are not known from proximity sensors alone."""
    doubted: frozenset[Cell] = frozenset()
    """Those of them that only readings which cannot be true tell of."""
    forbidden: frozenset[Cell] = frozenset()
    """Cells that some sentence forbids to clean."""
    experienced: frozenset[Cell] = frozenset()
    """Those of them that it ran into itself: rejected a moment ago, or remembered."""
    bumped: tuple[Cell, Cell] | None = None
    """Where the robot stands and the cell it bumped into, if the latest action was that bump."""
    refused: Cell | None = None
    """A cell whose cleaning was rejected a moment ago, because it is forbidden."""
    noted: frozenset[str] = frozenset()
    """Sentences about blocked and forbidden cells that stand in memory or were just put there."""
    claims: frozenset[tuple[Claim, Cell]] = frozenset()
    """What signs say, read on the way or remembered."""
    read: str | None = None
    """The words of a sign that was read and is not in memory."""
    wish: Wish | None = None
    """What another agent asked for last."""
    actions: frozenset[str] = frozenset()
    """Names of the actions that are offered; empty where the messages do not tell."""
    gadgets: frozenset[str] = frozenset()
    """Those of them that are no usual ability of a robot, so that only their manual tells."""
    phantom_tool: str | None = None
    """A tool for picking something up that a report names."""
    phantom_tried: bool = False
    """Whether that tool was called already."""
