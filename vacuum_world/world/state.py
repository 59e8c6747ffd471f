"""Chance as a value: counted draws from seeded streams.

A stream is a seed and the number of draws made; the n-th draw is a hash of both. So a snapshot
carries its chance with it, the numbers are the same on every platform and Python version, and
one stream cannot shift another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import Field, StringConstraints, model_validator

from vacuum_world.errors import UnknownRobotError

from .values import Cell, Direction, Value, inside

T = TypeVar("T")


class Stream(Value):
    """One source of chance: its n-th number depends on nothing but seed and n."""

    seed: int
    """The name of this stream, different from all others."""
    draws: int = 0
    """How many numbers have been drawn."""


class Streams(Value):
    """The world's three sources of chance, one per kind of dynamics."""

    obstacles: Stream
    """Which obstacles move, and to where."""
    dirt: Stream
    """Which cleaned cells turn dirty."""
    cleaning: Stream
    """Which cleanings fail, and how."""


def _hash(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size])


def stream_named(seed: int, name: str) -> Stream:
    """The stream that belongs to `name` in a world of this seed."""
    return Stream(seed=_hash(f"{seed}/{name}", 6))


def seeded_streams(seed: int) -> Streams:
    """Fresh streams for a world of this seed."""
    return Streams(
        obstacles=stream_named(seed, "obstacles"),
        dirt=stream_named(seed, "dirt"),
        cleaning=stream_named(seed, "cleaning"),
    )


def draw(stream: Stream) -> tuple[float, Stream]:
    """The next number in [0, 1), and the stream after it."""
    number = (_hash(f"{stream.seed}:{stream.draws}", 8) >> 11) / 2**53
    return number, Stream(seed=stream.seed, draws=stream.draws + 1)


def pick(stream: Stream, options: Sequence[T]) -> tuple[T, Stream]:
    """One of `options`, each as likely as the other, and the stream after the choice."""
    number, after = draw(stream)
    return options[int(number * len(options))], after


class Dice:
    """A stream that remembers where it is, for building worlds (the rules never use it)."""

    def __init__(self, seed: int, name: str) -> None:
        self._stream = stream_named(seed, name)

    def choice(self, options: Sequence[T]) -> T:
        """One of `options`."""
        chosen, self._stream = pick(self._stream, options)
        return chosen

    def sample(self, options: Sequence[T], count: int) -> tuple[T, ...]:
        """`count` different members of `options`, in the order drawn."""
        left = list(options)
        drawn: list[T] = []
        for _ in range(count):
            chosen = self.choice(range(len(left)))
            drawn.append(left.pop(chosen))
        return tuple(drawn)


# ---- What the world keeps of what happened: results, the action log, counters, events ----


Failure = Literal["deterministic", "transient"]
"""`deterministic`: the same action here and now fails again; `transient`: it may succeed."""

ActionName = Literal["move", "clean", "use"]

ActionId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
"""A caller's own name for one action: 1 to 200 visible ASCII characters."""


class ActionResult(Value):
    """The outcome of an action, as the robot learns it."""

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
    """Whether an action of the same id is earlier in the log."""
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
    """What the robot learned of it."""


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
    """Cells that were clean, counted after every tick and added up."""


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


# ---- What a world may hold besides dirt and obstacles: faults, gadgets, signs, slow cleaning ----


SensorName = Literal["dirt", "proximity"]
"""Sensors that may fail; a robot always knows its place and its charge."""

FaultKind = Literal["silent", "inverted", "stuck"]
"""`silent`: no reading (None); `inverted`: the opposite; `stuck`: always False."""


class SensorFault(Value):
    """A sensor that reads wrongly, or not at all, for some ticks; the world stays as it is."""

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
    """What a gadget claims. It need not be true."""

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
    """What it claims to do."""
    cost: Annotated[int, Field(ge=1, le=100)]
    """The charge that using it takes, in truth."""
    admits: bool
    """Whether its result says that it did nothing; otherwise it reports success."""


class Sign(Value):
    """Words on a cell, read by a robot that moves there. They need not be true."""

    cell: Cell
    """Where it is."""
    text: Notice
    """What it says."""


class SlowCleaning(Value):
    """A cleaning that was begun and does not show yet."""

    cell: Cell
    """What is being cleaned."""
    due: Annotated[int, Field(ge=1)]
    """The tick in which the cell becomes clean."""


# ---- The whole world as one frozen value ----


FULL_BATTERY = 100
"""What the charger restores."""
MOVE_COST = 5
"""Charge a move takes, blocked or not."""
CLEAN_COST = 10
"""Charge a cleaning takes, successful or not."""

LOG_KEPT = 10_000
"""Lines of the action log that are kept; repeated ids are found among these."""

TickMode = Literal["action", "manual", "clock"]
"""When time passes: after every action, by hand only, or by the server's clock."""

Probability = Annotated[float, Field(ge=0, le=1)]
Battery = Annotated[int, Field(ge=0, le=FULL_BATTERY)]
RobotName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]


class Dynamics(Value):
    """What may change without a robot doing it; the defaults are the paper's."""

    obstacle_mobility: Probability = 0.2
    """Per tick and obstacle: it moves to a random free cell."""
    dirt_entropy: Probability = 0.3
    """Per tick and clean cell that was cleaned before: it turns dirty."""
    clean_uncertainty: Probability = 0.4
    """Per cleaning: it fails; half of the failures are reported as success."""


STILL = Dynamics(obstacle_mobility=0, dirt_entropy=0, clean_uncertainty=0)
"""No dynamics: nothing changes but by robots and interventions."""


class Obstacle(Value):
    """Something that blocks a cell."""

    cell: Cell
    """Where it is."""
    visible: bool = True
    """Whether robots next to it feel it before they bump into it."""


class Robot(Value):
    """A robot that somebody drives."""

    id: str
    """Unique in this world, such as `r1`."""
    name: RobotName
    """Unique in this world, chosen when joining."""
    position: Cell
    """Where it is."""
    battery: Battery
    """Charge left."""
    stranded: bool = False
    """Whether the battery ran empty away from the charger."""


class Spawn(Value):
    """Where robots that join begin (the nearest free cell, if it is taken)."""

    position: Cell
    """The cell."""
    battery: Battery = FULL_BATTERY
    """The charge they begin with."""


class WallOnApproach(Value):
    """Armed: the first move that nears `target` meets a hidden obstacle in its destination.

    It waits for a move whose destination is free, is not where robots begin (so that the same
    world can be met again with the wall in place), and leaves the target reachable.
    """

    kind: Literal["wall_on_approach"] = "wall_on_approach"
    target: Cell
    """The cell that robots must near to set it off."""


class ForbidAfterActions(Value):
    """Armed: once `actions` actions were taken, cleaning `cell` is forbidden."""

    kind: Literal["forbid_after_actions"] = "forbid_after_actions"
    cell: Cell
    """The cell."""
    actions: Annotated[int, Field(ge=0)]
    """How many actions it waits for, those of all robots counted."""


Trigger = Annotated[WallOnApproach | ForbidAfterActions, Field(discriminator="kind")]


class WorldState(Value):
    """Everything there is to know; the rules are functions from this to the next one."""

    version: Literal[1] = 1
    """Version of this format."""
    seed: int
    """The seed it was built from."""
    grid: tuple[Annotated[int, Field(ge=2, le=50)], Annotated[int, Field(ge=2, le=50)]] = (5, 5)
    """Width and height."""
    charger: Cell = (0, 0)
    """The cell that restores the battery."""
    ticks: TickMode = "action"
    """When time passes."""
    tick: Annotated[int, Field(ge=0)] = 0
    """Ticks passed."""
    dynamics: Dynamics = Dynamics()
    """What changes by itself."""
    dirty: tuple[Cell, ...] = ()
    """Dirty cells, sorted."""
    cleaned: tuple[Cell, ...] = ()
    """Cells that were cleaned at least once, sorted; dirt may be back."""
    obstacles: tuple[Obstacle, ...] = ()
    """Obstacles, in a fixed order."""
    robots: tuple[Robot, ...] = ()
    """Robots, in order of joining."""
    joined: Annotated[int, Field(ge=0)] = 0
    """How many robots ever joined; the next one's number."""
    spawn: Spawn | None = None
    """Where robots begin; None means at the charger with a full battery."""
    streams: Streams
    """The state of chance."""
    triggers: tuple[Trigger, ...] = ()
    """Interventions that wait for their moment."""
    forbidden: tuple[Cell, ...] = ()
    """Cells that must not be cleaned, sorted; counted, not enforced."""
    faults: tuple[SensorFault, ...] = ()
    """Sensors that fail for a while, earliest first."""
    gadgets: tuple[Gadget, ...] = ()
    """What robots can use besides moving and cleaning."""
    signs: tuple[Sign, ...] = ()
    """The signs to be read."""
    clean_delay: Annotated[int, Field(ge=0, le=50)] = 0
    """Ticks until a cleaning shows; 0 means at once."""
    under_way: tuple[SlowCleaning, ...] = ()
    """Cleanings that do not show yet, in the order in which they were begun."""
    counters: Counters = Counters()
    """Totals."""
    log: tuple[LoggedAction, ...] = ()
    """The latest actions, oldest first."""

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        places = [o.cell for o in self.obstacles] + [r.position for r in self.robots]
        if len(set(places)) < len(places):
            raise ValueError("two obstacles or robots share a cell")
        if self.charger in {o.cell for o in self.obstacles}:
            raise ValueError(f"an obstacle stands on the charger {self.charger}")
        for cell in self._cells_named():
            if not inside(cell, self.grid):
                raise ValueError(f"cell {cell} lies outside the grid {self.grid}")
        for what in ("id", "name"):
            names = [getattr(robot, what) for robot in self.robots]
            if len(set(names)) < len(names):
                raise ValueError(f"two robots have the same {what}")
        gadgets = [gadget.name for gadget in self.gadgets]
        if len(set(gadgets)) < len(gadgets):
            raise ValueError("two gadgets have the same name")
        return self

    def _cells_named(self) -> list[Cell]:
        things = [*self.obstacles, *self.signs, *self.under_way]
        spawn = [self.spawn.position] if self.spawn else []
        robots = [robot.position for robot in self.robots]
        floor = [*self.dirty, *self.cleaned, *self.forbidden]
        return [self.charger, *(thing.cell for thing in things), *spawn, *robots, *floor]


ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[ResultT]):
    """What a rule gives back: the world after it, its result, and what happened."""

    state: WorldState
    """The world afterwards."""
    result: ResultT
    """What the caller gets."""
    events: tuple[WorldEvent, ...] = ()
    """What happened, in order."""


def robot_of(state: WorldState, robot_id: str) -> Robot:
    """The robot with this id.

    Raises:
        UnknownRobotError: There is none.
    """
    for robot in state.robots:
        if robot.id == robot_id:
            return robot
    raise UnknownRobotError(robot_id, (robot.id for robot in state.robots))


def with_robot(state: WorldState, robot: Robot) -> WorldState:
    """The state in which the robot of this id is as given."""
    robots = tuple(robot if robot.id == other.id else other for other in state.robots)
    return state.model_copy(update={"robots": robots})


def obstacle_cells(state: WorldState) -> frozenset[Cell]:
    """Where obstacles are, hidden ones included."""
    return frozenset(obstacle.cell for obstacle in state.obstacles)


def robot_cells(state: WorldState) -> frozenset[Cell]:
    """Where robots are."""
    return frozenset(robot.position for robot in state.robots)


def with_cell(cells: tuple[Cell, ...], cell: Cell) -> tuple[Cell, ...]:
    """The sorted cells with `cell` among them."""
    return cells if cell in cells else tuple(sorted((*cells, cell)))


def without_cell(cells: tuple[Cell, ...], cell: Cell) -> tuple[Cell, ...]:
    """The cells without `cell`."""
    return tuple(other for other in cells if other != cell)


def powered(robot: Robot, charger: Cell) -> Robot:
    """The robot after the charger's turn and, only then, the stranded check."""
    battery = FULL_BATTERY if robot.position == charger else robot.battery
    return robot.model_copy(update={"battery": battery, "stranded": battery == 0})
