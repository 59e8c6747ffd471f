"""What a temperament knows when it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from vacuum_world.world import Cell, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the messages of one request say about the world and the task."""

    reading: Reading | None = None
    """The latest reading of the sensors; None where no message holds one."""
    unsure: bool = False
    """Whether it is not known if the latest action had its effect."""
    dirty: frozenset[Cell] = frozenset()
    """Cells that the task or a reading calls dirty, those seen clean since left out."""
    obstacles: frozenset[Cell] = frozenset()
    """Cells that were felt, bumped into or remembered as blocked."""
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
    actions: frozenset[str] = frozenset()
    """Names of the actions that are offered; empty where the messages do not tell."""
    phantom_tool: str | None = None
    """A tool for picking something up that a report names."""
    phantom_tried: bool = False
    """Whether that tool was called already."""
