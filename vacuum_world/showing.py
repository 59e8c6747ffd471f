"""What people who look at a world are shown besides the world: reports of agents, and the pace.

None of it is part of the world: it is in no snapshot, changes no state and outlasts no server.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints, model_validator

from vacuum_world.world import Cell, inside

MOST_CELLS = 2500
"""Cells of the largest grid."""
SLOWEST, QUICKEST = 60.0, 0.01
"""Bounds of the seconds between two ticks of the clock."""

Word = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Sentence = Annotated[str, StringConstraints(max_length=600)]
Phrase = Annotated[str, StringConstraints(max_length=200)]
# JSON has lists where these values have tuples; everything within them stays strict.
_Place = Annotated[Cell, Strict(False)]
Cells = Annotated[tuple[_Place, ...], Field(max_length=MOST_CELLS, strict=False)]


class _Shown(BaseModel):
    """Frozen, complete, and taken as it was written: no text becomes a number."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


class Option(_Shown):
    """One thing that an agent considers doing."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """What, in its driver's words."""
    state: Literal["open", "chosen", "rejected"] = "open"
    """What became of it so far."""
    note: Phrase = ""
    """Why, or how good it looks."""


class Belief(_Shown):
    """What an agent takes to be true of the world; what it leaves out it does not know."""

    position: _Place | None = None
    """Where it takes itself to be."""
    battery: Annotated[int, Field(ge=0, le=100)] | None = None
    """The charge it takes itself to have."""
    dirty: Cells = ()
    """Cells that it takes to be dirty."""
    clean: Cells = ()
    """Cells that it takes to be clean."""
    obstacles: Cells = ()
    """Cells that it takes to be blocked."""

    @model_validator(mode="after")
    def _is_one_belief(self) -> Self:
        both = set(self.dirty) & set(self.clean)
        if both:
            raise ValueError(f"cell {min(both)} is believed both dirty and clean")
        return self

    def outside(self, grid: Cell) -> Cell | None:
        """The first cell of it that lies outside a grid, if there is one."""
        named = [*self.dirty, *self.clean, *self.obstacles]
        cells = named if self.position is None else [self.position, *named]
        return next((cell for cell in cells if not inside(cell, grid)), None)


class Report(_Shown):
    """What an agent's driver reports of its mind, now."""

    phase: Word
    """The step of its thinking that is under way, or was the latest."""
    phases: Annotated[tuple[Word, ...], Field(max_length=12, strict=False)] = ()
    """All steps of its thinking, in order; empty where it has no fixed ones."""
    about: Sentence = ""
    """What the step is about."""
    options: Annotated[tuple[Option, ...], Field(max_length=12, strict=False)] = ()
    """What it considers doing."""
    cycle: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    """Which round of its thinking this is."""
    belief: Belief | None = None
    """What it takes to be true; None where the driver does not say."""


class Pace(_Shown):
    """Whether and how fast a served world runs."""

    paused: bool = False
    """Whether actions are held back and the clock is stopped."""
    steps: int = 0
    """Actions that will be let through although it is paused."""
    interval: float = 1.0
    """Seconds between ticks where time passes by the clock."""
    waiting: Annotated[tuple[str, ...], Strict(False)] = ()
    """Ids of the robots whose actions are held back, in the order of their arrival."""


class PaceChange(_Shown):
    """A wish to pause, to resume, or to change the clock's speed; what is left out stays."""

    paused: bool | None = None
    """Whether to pause."""
    interval: Annotated[float, Field(ge=QUICKEST, le=SLOWEST)] | None = None
    """Seconds between ticks of the clock."""
