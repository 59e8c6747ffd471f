"""The values that are sent besides the world's own."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, RootModel
from pydantic_core import PydanticCustomError

from vacuum_world.world import (
    ActionResult,
    Cell,
    Direction,
    GadgetName,
    Intervention,
    Manual,
    RobotName,
    Value,
    WorldEvent,
)

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and the marks that break lines or turn the direction of writing."""


def _showable(name: str) -> str:
    unshowable = _UNSHOWABLE.search(name)
    if unshowable is not None:
        raise PydanticCustomError(
            "unshowable",
            "a name is one line without control characters and marks of the direction of "
            "writing; this one holds U+{code}",
            {"code": f"{ord(unshowable.group()):04X}"},
        )
    return name


class _Wish(Value):
    """What a client asks for: nothing in it is taken for another type than it has."""

    model_config = ConfigDict(strict=True)


class JoinRequest(_Wish):
    """A wish to join."""

    name: Annotated[RobotName, AfterValidator(_showable)]
    """What the robot is called, unique in this world: one line, no control characters."""


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


class MoveRequest(_Wish):
    """A wish to move."""

    direction: Direction
    """Where to."""


class UseRequest(_Wish):
    """A wish to use a gadget."""

    gadget: GadgetName
    """Its name."""


class Manuals(Value):
    """What the gadgets that robots can use claim. It need not be true."""

    gadgets: tuple[Manual, ...]
    """One for each."""


class TickRequest(_Wish):
    """A wish that time pass."""

    count: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many ticks."""


class StepRequest(_Wish):
    """A wish to take some steps while paused."""

    count: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many."""


class InterventionRequest(RootModel[Intervention]):
    """One intervention; `kind` says which."""


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
