"""What the task of a vacuum robot tells, as a program takes it."""

from __future__ import annotations

from dataclasses import dataclass

from vacuum_world.scenarios import ScenarioFacts
from vacuum_world.world import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a task says, in the terms of a program; what it hides is not here."""

    dirty: frozenset[Cell] = frozenset()
    """Cells that it asks to clean."""
    off_limits: frozenset[Cell] = frozenset()
    """Cells that it forbids to clean."""
    column: int | None = None
    """The column in which it forbids to clean."""
    row: int | None = None
    """The row in which it forbids to clean."""
    slow: bool = False
    """Whether it says that a cleaning takes a while to show."""
    open_ended: bool = False
    """Whether all dirt that is found is to be cleaned, for as long as there is time."""

    def allows(self, cell: Cell) -> bool:
        """Whether cleaning the cell is not forbidden."""
        return cell not in self.off_limits and cell[0] != self.column and cell[1] != self.row


def told_of(facts: ScenarioFacts) -> Told:
    """What the task of a scenario tells."""
    return Told(
        dirty=frozenset(facts.dirty),
        off_limits=frozenset(facts.off_limits),
        column=facts.column,
        row=facts.row,
        slow=facts.delay is not None,
        open_ended=facts.horizon is not None,
    )
