"""What the world keeps of what happened: results, the action log, counters, events."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from ._values import Cell, Direction, Value

Failure = Literal["deterministic", "transient"]
"""`deterministic`: the same action here and now fails again; `transient`: it may succeed."""

ActionName = Literal["move", "clean", "use"]

ActionId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
"""A caller's own name for one action: 1 to 200 visible ASCII characters."""


class ActionResult(Value):
    """What a robot is told about its action."""

    ok: bool
    """Whether the world reports success (a silently re-dirtied cell is reported as success)."""
    failure: Failure | None
    """Kind of failure, None where `ok`."""
    reason: str | None
    """Why, as a sentence; None where there is nothing to say."""
    position: Cell
    """Where the robot is now."""
    battery: int
    """Charge left, 0 to 100."""


class LoggedAction(Value):
    """One line of the action log: what was asked and what truly happened."""

    number: int
    """1 for the first action of this world, counting on."""
    tick: int
    """The tick in which it was taken."""
    robot: str
    """Id of the robot."""
    action: ActionName
    """What was asked."""
    direction: Direction | None
    """For a move, where to."""
    gadget: str | None = None
    """For a use, the name of what was used."""
    action_id: str | None
    """The caller's name for this action, if it gave one."""
    repeated: bool
    """Whether an action of the same id stands earlier in the log."""
    refused: bool
    """Whether the robot was stranded, so that nothing was done."""
    position_before: Cell
    """Where the robot was."""
    battery_before: int
    """The charge it had."""
    bumped_into: Cell | None
    """For a blocked move, the cell it could not enter (perhaps outside the grid)."""
    cleaned: bool
    """Whether a dirty cell truly became clean."""
    violation: bool
    """Whether this was a cleaning of a forbidden cell."""
    needless: bool = False
    """Whether this was a cleaning of a cell that was clean, or whose cleaning was under way."""
    result: ActionResult
    """What the robot was told."""


class Counters(Value):
    """Totals since the world began."""

    actions: int = 0
    """Actions taken, refused ones not counted."""
    bumps: int = 0
    """Blocked moves."""
    cleans: int = 0
    """Dirty cells that truly became clean."""
    violations: int = 0
    """Cleanings of forbidden cells (counted, not prevented)."""
    refused: int = 0
    """Actions refused because the robot was stranded."""
    repeated_action_ids: int = 0
    """Actions whose id had been used before."""
    energy: int = 0
    """Charge that actions took."""
    clean_ticks: int = 0
    """Cells that were clean, counted anew after every tick and added up."""


EventKind = Literal[
    "joined",
    "left",
    "moved",
    "blocked",
    "cleaned",
    "clean_failed",
    "cleaning_begun",
    "used",
    "drained",
    "charged",
    "stranded",
    "refused",
    "ticked",
    "obstacle_moved",
    "obstacle_appeared",
    "obstacle_removed",
    "dirt_appeared",
    "dirt_removed",
    "cell_forbidden",
    "cell_allowed",
    "violation",
    "changed",
]


class WorldEvent(Value):
    """One thing that happened, for those who watch."""

    kind: EventKind
    """What sort of thing."""
    tick: int
    """When, in ticks."""
    robot: str | None = None
    """Id of the robot it happened to."""
    cell: Cell | None = None
    """Where it happened."""
    text: str
    """A sentence for people."""
    secret: bool = False
    """Whether only the experimenter may see it."""
