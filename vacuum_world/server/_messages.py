"""What goes over the wire besides the world's own values."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from vacuum_world.world import (
    ActionResult,
    Cell,
    Direction,
    Intervention,
    RobotName,
    Value,
    WorldEvent,
)


class JoinRequest(Value):
    """A wish to join."""

    name: RobotName
    """What the robot is called, unique in this world."""


class Joined(Value):
    """A robot and the token that drives it."""

    id: str
    """The robot's id."""
    name: str
    """The robot's name."""
    token: str
    """The bearer token; it is shown here and never again."""
    position: Cell
    """Where the robot is."""
    battery: int
    """Its charge."""


class MoveRequest(Value):
    """A wish to move."""

    direction: Direction
    """Where to."""


class TickRequest(Value):
    """A wish that time pass."""

    count: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many ticks."""


class StepRequest(Value):
    """A wish to go on by some steps."""

    count: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many."""


class InterventionRequest(RootModel[Intervention]):
    """One intervention; `kind` tells which."""


class Happened(Value):
    """What a control call brought about."""

    tick: int
    """Ticks passed since the world began."""
    events: tuple[WorldEvent, ...]
    """What happened."""


class ProblemBody(Value):
    """Why a request was not served."""

    error: str
    """Short name of the problem."""
    detail: str
    """The reason, as a sentence."""


class StrandedBody(ActionResult):
    """Why a stranded robot's action was refused: a problem and an action's result at once."""

    error: Literal["stranded"] = "stranded"
    """Short name of the problem."""
    detail: str
    """The reason, as a sentence."""
