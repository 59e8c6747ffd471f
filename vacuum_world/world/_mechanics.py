"""What a world may hold besides dirt and obstacles: faults, gadgets, signs, slow cleaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ._values import Cell, Value

SensorName = Literal["dirt", "proximity"]
"""Sensors that may fail; a robot always knows its place and its charge."""

FaultKind = Literal["silent", "inverted", "stuck"]
"""`silent`: nothing is told (None); `inverted`: the opposite; `stuck`: always False."""


class SensorFault(Value):
    """A sensor that does not tell what is so, for some ticks; the world stays as it is."""

    sensor: SensorName
    """Which one, of every robot."""
    kind: FaultKind
    """What it does instead."""
    since: Annotated[int, Field(ge=0)]
    """The first tick in which it fails."""
    until: Annotated[int, Field(ge=1)]
    """The first tick in which it is well again."""


GadgetName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{2,39}$")]
Promise = Annotated[str, StringConstraints(min_length=1, max_length=400)]
Notice = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Manual(Value):
    """What robots are told of a gadget. It need not be true."""

    name: GadgetName
    """How it is asked for."""
    promise: Promise
    """What it is said to do."""


class Gadget(Value):
    """Something that robots can use anywhere: what is said of it, and what is so.

    In truth every gadget costs charge and does nothing.
    """

    name: GadgetName
    """How it is asked for."""
    promise: Promise
    """What robots are told that it does."""
    cost: Annotated[int, Field(ge=1, le=100)]
    """The charge that using it takes, in truth."""
    admits: bool
    """Whether its result says that it did nothing; otherwise it reports success."""


class Sign(Value):
    """Words on a cell, read by a robot that moves there. They need not be true."""

    cell: Cell
    """Where it stands."""
    text: Notice
    """What it says."""


class SlowCleaning(Value):
    """A cleaning that was begun and does not show yet."""

    cell: Cell
    """What is being cleaned."""
    due: Annotated[int, Field(ge=1)]
    """The tick in which the cell becomes clean."""
