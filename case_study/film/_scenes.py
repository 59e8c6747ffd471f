"""What one picture of a film tells, before it is drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from coag.schema import one_line, well_formed
from vacuum_world.world import DIRECTIONS, Cell, Direction

from ._boards import Board

_LOOKED_AT = 4_000
"""Characters of a text that are looked at; a picture has room for far fewer."""


class Mark(StrEnum):
    """What is known of a candidate so far."""

    PROPOSED = "proposed"
    ALLOWED = "allowed"
    REJECTED = "rejected"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One candidate, as a line of the caption."""

    text: str
    """The action with its arguments."""
    mark: Mark
    score: float | None = None
    """The model's judgement, 1 is best; None if it gave none."""
    died_of: str = ""
    """Name of the check or constraint that forbade it."""
    reason: str = ""
    """What that said, or why the candidate was proposed."""
    way: Direction | None = None
    """Where it would move to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One picture."""

    cycle: int
    """The cycle; of a plain run the turn."""
    phase: str
    """The phase that is shown; empty for what stands outside of the phases."""
    about: str
    """What it is about, as a sentence or two."""
    options: tuple[Option, ...] = ()
    truth: Board | None
    """The grid as it is; None where the trace does not tell."""
    belief: Board | None
    """The grid as the agent believes it; None where the trace does not tell."""
    path: tuple[Cell, ...] = ()
    """Where the robot was, oldest first."""
    by_return: bool = False
    """True if place, charge and near dirt of `truth` are by the last return, as no later
    snapshot tells."""
    lasting: float = 1.0
    """How long it is shown, in shares of an average picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """The pictures of one cycle."""

    cycle: int
    scenes: tuple[Scene, ...]


def said(text: str, limit: int = 240) -> str:
    """The beginning of a foreign text on one line, with nothing in it that could steer."""
    line = one_line(well_formed(text[:_LOOKED_AT]), limit=_LOOKED_AT)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def call_text(action: str, arguments: Mapping[str, Any] | str | None) -> str:
    """An action with its arguments, as short as can be read."""
    if isinstance(arguments, Mapping):
        shown = ", ".join(
            said(value if isinstance(value, str) else json.dumps(value), 60)
            for value in list(arguments.values())[:4]
        )
    else:
        shown = said(arguments or "", 60)
    return f"{said(action, 60)} {shown}".strip()


def way_of(action: str, arguments: Mapping[str, Any] | None) -> Direction | None:
    """Which way a move goes; None for all that is no move."""
    if action != "move_agent" or not isinstance(arguments, Mapping):
        return None
    wanted = arguments.get("direction")
    return next((way for way in DIRECTIONS if way == wanted), None)
