"""Components that break: sensors, motors, the world, and recall.

A `Breaker` decides in which cycles a component is broken. Every component of a run asks it; only
the one that the fault is about gets a yes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal, get_args

from case_study.robot import CONSTRAINTS, ForbidCleaning
from coag.errors import RecordStoreError
from coag.proof import Cause
from coag.schema import (
    Constraint,
    MemoryKind,
    Provenance,
    RecalledRecord,
    Record,
    Scalar,
    Trust,
    record_id,
)
from coag.store import RecordStore, Search, WrappedStore
from vacuum_world.client import (
    Membership,
    OutcomeUnknownError,
    WorldClient,
    WorldControl,
    WorldRefusedError,
    WorldUnreachableError,
)
from vacuum_world.scenarios import ScenarioSetup, build_scenario
from vacuum_world.world import (
    DIRECTIONS,
    STILL,
    ActionResult,
    AddDirt,
    AddObstacle,
    Cell,
    Direction,
    Intervention,
    PlaceRobot,
    Reading,
    RemoveDirt,
    Robot,
    SetBattery,
    SetDynamics,
    WorldState,
    cells_of,
    inside,
    neighbour,
    obstacle_cells,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One component that breaks, and when."""

    cause: Cause
    """The component, by the cause that its failures have."""
    variant: str
    """In which way it breaks."""
    cycle: int
    """The first cycle in which it may strike; it waits for its first opportunity."""
    cycles: int
    """For how many cycles it then stays broken."""
    seed: int
    """What its details are drawn from."""


@dataclass(slots=True)
class Breaker:
    """Strikes from the first opportunity on, for as many cycles as the fault lasts.

    Every component of a run asks it; only the one that the fault is about gets a yes.
    """

    fault: Fault | None = None
    """None for a run in which nothing breaks."""
    now: Callable[[], int] = lambda: 0
    """The cycle that is going on."""
    struck: list[int] = field(default_factory=list[int])
    """The cycles in which it struck, once for every time."""

    def due(self, cause: Cause, cycle: int | None = None) -> bool:
        """Whether the component with this cause is to break now.

        Args:
            cause: Which component asks.
            cycle: The cycle it asks for; None for the one that is going on.
        """
        if self.fault is None or self.fault.cause is not cause:
            return False
        at = self.now() if cycle is None else cycle
        first = self.struck[0] if self.struck else max(self.fault.cycle, at)
        return first <= at < first + self.fault.cycles

    def strike(self, cycle: int | None = None) -> None:
        """Notes that the component broke."""
        self.struck.append(self.now() if cycle is None else cycle)

    @property
    def variant(self) -> str:
        """In which way the component breaks; empty where nothing does."""
        return self.fault.variant if self.fault else ""

    def dice(self, about: object = "") -> random.Random:
        """Chance for the details: the same dice for the same question."""
        return random.Random(f"{self.fault.seed if self.fault else 0} {about}")


StageName = Literal["sudden-wall", "energy-dilemma", "phantom-object", "evolution"]
STAGES: tuple[StageName, ...] = get_args(StageName)
SCOPE = "robot"
_THEN = datetime(2026, 1, 1, tzinfo=UTC)
_SMALL_TALK = (
    "The charger at ({x}, {y}) restored the battery to 100 within one move.",
    "Moves to the east along the upper row went well on an earlier day.",
    "The user likes a short report at the end.",
    "A full round of a room takes about ten moves.",
    "The robot was serviced and its wheels were oiled.",
    "The grid was measured: {width} cells wide and {height} cells high.",
    "Somebody asked whether the robot is loud; it is not.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One scenario and seed, with what the robot remembers and the rules that hold."""

    name: StageName
    """The scenario. `sudden-wall` is its second episode: the hidden wall stands, and a record
    tells of it. In `evolution` the rule holds from the start, and a record tells of it."""
    setup: ScenarioSetup
    """The instance."""
    records: tuple[Record, ...]
    """What long-term memory holds: what is needed, among what is not."""
    rules: tuple[Constraint, ...]
    """The constraints in force."""

    @property
    def needed(self) -> frozenset[str]:
        """Ids of the records without which the robot comes to grief."""
        return frozenset(one.id for one in self.records if one.type != "note")


def stage_of(name: StageName, seed: int) -> Stage:
    """The stage that a seed gives."""
    setup = _setup(name, seed)
    facts = setup.facts
    dice = random.Random(f"stage {name} {seed}")
    records = [remembered(text) for text in dice.sample(_small_talk(setup), 3)]
    rules = list(CONSTRAINTS.values())
    if facts.wall is not None:
        records.append(wall_record(_beside(setup), facts.wall))
    if facts.forbidden is not None:
        records.append(rule_record(facts.forbidden))
        rules.append(ForbidCleaning(facts.forbidden))
    dice.shuffle(records)
    return Stage(name=name, setup=setup, records=tuple(records), rules=tuple(rules))


def remembered(text: str, kind: str = "note", **metadata: Scalar) -> Record:
    """A record of an earlier day."""
    return Record(
        id=record_id(MemoryKind.EPISODIC, SCOPE, text),
        kind=MemoryKind.EPISODIC,
        text=text,
        scope=SCOPE,
        created_at=_THEN,
        provenance=Provenance(
            run="20260101-000000-robot",
            activity="clean",
            cycle=3,
            source=SCOPE,
            source_kind="tool_return",
            trust=Trust.UNTRUSTED,
        ),
        type=kind,
        metadata=metadata,
        sensed=bool(metadata),
    )


def wall_record(here: Cell, wall: Cell) -> Record:
    """What the agent writes down after a bump: in its words, with the robot's metadata."""
    text = (
        f"Obstacle: moving from ({here[0]}, {here[1]}) failed, "
        f"cell ({wall[0]}, {wall[1]}) is blocked."
    )
    place = {"x": here[0], "y": here[1], "blocked_x": wall[0], "blocked_y": wall[1]}
    return remembered(text, "obstacle", **place)


def rule_record(cell: Cell) -> Record:
    """What the agent writes down after its cleaning was rejected."""
    return remembered(f"Rule: cleaning cell ({cell[0]}, {cell[1]}) is forbidden.", "rule")


def _small_talk(setup: ScenarioSetup) -> list[str]:
    """What is remembered besides: true in this instance, and of no use."""
    (x, y), (width, height) = setup.world.charger, setup.world.grid
    return [text.format(x=x, y=y, width=width, height=height) for text in _SMALL_TALK]


def _setup(name: StageName, seed: int) -> ScenarioSetup:
    if name != "sudden-wall":
        return build_scenario(name, seed)
    first = build_scenario(name, seed)
    try:
        return build_scenario(name, seed, episode=2, wall=None)
    except ValueError:  # no wall can stand on the straight way: where it rises is left open
        cells = _ways(first)
        return next(found for found in (_with_wall(seed, cell) for cell in cells) if found)


def _with_wall(seed: int, cell: Cell) -> ScenarioSetup | None:
    try:
        return build_scenario("sudden-wall", seed, episode=2, wall=cell)
    except ValueError:
        return None


def _ways(setup: ScenarioSetup) -> Sequence[Cell]:
    start = setup.facts.start
    return [neighbour(start, way) for way in ("north", "east", "south", "west")]


def _beside(setup: ScenarioSetup) -> Cell:
    """A cell from which the wall was run into: the start, where it is next to it."""
    wall, start = setup.facts.wall or (0, 0), setup.facts.start
    near = [neighbour(wall, way) for way in ("north", "east", "south", "west")]
    return start if start in near else near[0]


Lie = Callable[[Reading, Reading, random.Random], Reading]
"""From a true reading, the true one before it, and dice, to what the agent is told."""


def _battery(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """A gauge that is off by 20 to 60."""
    off = dice.choice((-60, -45, -30, -20, 20, 30, 45, 60))
    told = min(100, max(5, reading.battery + off))
    return reading.model_copy(update={"battery": told})


def _position(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It locates itself in a neighbouring cell."""
    near = [neighbour(reading.position, direction) for direction in DIRECTIONS]
    places = [cell for cell in near if inside(cell, reading.grid)]
    return reading.model_copy(update={"position": dice.choice(places)})


def _stale(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It shows the reading before this one."""
    return before


def _dirt_here(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """Clean floor looks dirty, or dirty floor clean, underfoot."""
    return _with_dirt(reading, "here", not reading.dirty.here)


def _dirt_near(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """The same in a neighbouring cell."""
    direction = dice.choice(_open_ways(reading))
    return _with_dirt(reading, direction, not getattr(reading.dirty, direction))


def _blind_to_dirt(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It sees no dirt at all."""
    seen = {name: False for name, dirty in reading.dirty.model_dump().items() if dirty}
    return reading.model_copy(update={"dirty": reading.dirty.model_copy(update=seen)})


def _proximity(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It feels an obstacle where there is none, or none where there is one."""
    direction = dice.choice(_open_ways(reading))
    felt = not getattr(reading.blocked, direction)
    blocked = reading.blocked.model_copy(update={direction: felt})
    return reading.model_copy(update={"blocked": blocked})


LIES: Mapping[str, Lie] = MappingProxyType(
    {
        "battery gauge off": _battery,
        "located next door": _position,
        "stale reading": _stale,
        "dirt underfoot flipped": _dirt_here,
        "dirt next door flipped": _dirt_near,
        "blind to dirt": _blind_to_dirt,
        "proximity flipped": _proximity,
    }
)
"""The ways in which sensors lie, by name. One more, `no reading`, is a sensor that fails."""


def _with_dirt(reading: Reading, where: str, dirty: bool) -> Reading:
    return reading.model_copy(update={"dirty": reading.dirty.model_copy(update={where: dirty})})


def _open_ways(reading: Reading) -> list[Direction]:
    def there(direction: Direction) -> Cell:
        return neighbour(reading.position, direction)

    return [direction for direction in DIRECTIONS if inside(there(direction), reading.grid)]


Plan = Callable[[WorldState, Robot, Direction | None, random.Random], Intervention | None]
"""From the world, the robot, where it is about to move (None: to clean) and dice, to what is
done; None where it cannot be done now."""


def _wall(visible: bool) -> Plan:
    def plan(
        world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
    ) -> Intervention | None:
        if direction is None:
            return None
        cell = neighbour(robot.position, direction)
        if cell == world.charger or not _free(world, cell):
            return None
        return AddObstacle(cell=cell, visible=visible)

    return plan


def _drained(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """The battery loses most of its charge."""
    left = dice.choice((6, 8, 11, 16, 21))
    if left >= robot.battery or robot.position == world.charger:
        return None
    return SetBattery(robot=robot.id, battery=left)


def _carried_off(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """Somebody puts the robot elsewhere."""
    there = neighbour(robot.position, direction) if direction else robot.position
    places = [
        cell
        for cell in cells_of(world.grid)
        if _free(world, cell) and cell not in (robot.position, there, world.charger)
    ]
    return PlaceRobot(robot=robot.id, cell=dice.choice(places)) if places else None


def _somebody_cleans(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """The dirt that the robot is about to clean is gone."""
    if direction is not None or robot.position not in world.dirty:
        return None
    return RemoveDirt(cell=robot.position)


def _dirt_returns(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """A cell that was cleaned gets dirty again, within sight of where the robot goes."""
    end = neighbour(robot.position, direction) if direction else robot.position
    near = [end, *(neighbour(end, way) for way in ("north", "east", "south", "west"))]
    again = [
        cell
        for cell in near
        if cell in world.cleaned and cell not in world.dirty and inside(cell, world.grid)
    ]
    return AddDirt(cell=dice.choice(again)) if again else None


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "wall in the way": _wall(True),
        "hidden wall in the way": _wall(False),
        "battery drained": _drained,
        "carried off": _carried_off,
        "somebody cleans": _somebody_cleans,
        "dirt returns": _dirt_returns,
    }
)
"""What can happen to the world, by name."""


def _free(world: WorldState, cell: Cell) -> bool:
    robots = {robot.position for robot in world.robots}
    return inside(cell, world.grid) and cell not in obstacle_cells(world) | robots


Hits = list[RecalledRecord]

NEEDED_LEFT_OUT = "needed record left out"
NOTHING_COMES = "nothing comes"
EPISODES_UNASKED = "episodes not asked"
OUT_OF_REACH = "memory out of reach"
MISSED = (NEEDED_LEFT_OUT, NOTHING_COMES, EPISODES_UNASKED, OUT_OF_REACH)
"""The ways in which recall misses what it should bring."""

CELL_SHIFTED, NEGATED = "cell shifted", "negated"
CHANGED = (CELL_SHIFTED, NEGATED)
"""The ways in which the needed record comes changed."""


def _false_rule(stage: Stage, dice: random.Random) -> tuple[Record, ...]:
    """A cell of the task is said to be forbidden."""
    facts = stage.setup.facts
    return (rule_record(dice.choice([c for c in facts.dirty if c != facts.forbidden])),)


def _false_wall(stage: Stage, dice: random.Random) -> tuple[Record, ...]:
    """A free cell between start and work is said to be blocked."""
    facts, world = stage.setup.facts, stage.setup.world
    near = _around(facts.start, world.grid)
    cells = [cell for cell in near if cell not in (*facts.dirty, facts.wall, world.charger)]
    return (wall_record(facts.start, dice.choice(cells)),) if cells else ()


def _walled_in(stage: Stage, dice: random.Random) -> tuple[Record, ...]:
    """All cells around one cell of the task are said to be blocked."""
    facts, world = stage.setup.facts, stage.setup.world
    targets = [cell for cell in facts.dirty if cell not in (facts.start, facts.forbidden)]
    if not targets:
        return ()
    target = dice.choice(targets)
    return tuple(wall_record(target, cell) for cell in _around(target, world.grid))


UNTRUE: Mapping[str, Callable[[Stage, random.Random], tuple[Record, ...]]] = MappingProxyType(
    {
        "false rule": _false_rule,
        "false wall": _false_wall,
        "walled in": _walled_in,
    }
)
"""The untrue records that come besides the true ones, by variant."""


class BrokenStore(WrappedStore):
    """A store whose searches break; all else goes to the true one.

    Args:
        store: The true one.
        breaker: Says what breaks when.
        stage: Says which records are needed.
    """

    def __init__(self, store: RecordStore, breaker: Breaker, stage: Stage) -> None:
        super().__init__(store)
        self._breaker = breaker
        self._stage = stage

    async def search(self, search: Search) -> list[RecalledRecord]:
        """The most similar records, as far as recall works."""
        hits = await super().search(search)
        if search.text is None:
            return hits
        cycle = self._breaker.now() + 1  # Retrieval is the first phase of the next cycle
        for cause, broken in (
            (Cause.MISSED_RETRIEVAL, self._missing),
            (Cause.WRONG_FACT, self._untrue),
        ):
            if self._breaker.due(cause, cycle):
                told = broken(hits, search)
                if told != hits:
                    self._breaker.strike(cycle)
                return told
        return hits

    def _missing(self, hits: Hits, search: Search) -> Hits:
        variant = self._breaker.variant
        episodes = search.kind is MemoryKind.EPISODIC
        if variant == OUT_OF_REACH and episodes:
            self._breaker.strike(self._breaker.now() + 1)
            raise RecordStoreError("The memory cannot be reached: the connection was refused.")
        if variant == NOTHING_COMES or (variant == EPISODES_UNASKED and episodes):
            return []
        return [hit for hit in hits if hit.record.id not in self._stage.needed]

    def _untrue(self, hits: Hits, search: Search) -> Hits:
        if search.kind is not MemoryKind.EPISODIC:
            return hits
        variant, dice = self._breaker.variant, self._breaker.dice()
        if variant in CHANGED:
            return [self._changed(hit) for hit in hits]
        score = max((hit.score for hit in hits), default=0.5)
        untrue = UNTRUE[variant](self._stage, dice)
        return [*(RecalledRecord(record=one, score=score) for one in untrue), *hits][: search.k]

    def _changed(self, hit: RecalledRecord) -> RecalledRecord:
        """The needed record with another content under its id."""
        if hit.record.id not in self._stage.needed:
            return hit
        facts = self._stage.setup.facts
        true = facts.wall or facts.forbidden or (0, 0)
        if self._breaker.variant == NEGATED:
            x, y = true
            told = remembered(f"Cell ({x}, {y}) was looked at again: nothing is there.")
        else:
            cells = [cell for cell in cells_of(self._stage.setup.world.grid) if cell != true]
            cell = self._breaker.dice().choice(cells)
            told = wall_record(facts.start, cell) if facts.wall else rule_record(cell)
        update = {"text": told.text, "metadata": told.metadata}
        return hit.model_copy(update={"record": hit.record.model_copy(update=update)})


def _around(cell: Cell, grid: Cell) -> list[Cell]:
    near = [neighbour(cell, way) for way in ("north", "east", "south", "west")]
    return [one for one in near if inside(one, grid)]


NO_READING = "no reading"
HANGS = "hangs"
TOOL_VARIANTS = (
    "raises",
    HANGS,
    "fails without a reason",
    "world out of reach",
    "line lost",
    "does nothing",
    "worn brush",
)
"""The ways in which a tool breaks."""
_RAISED = (
    RuntimeError("motor controller: no acknowledgement"),
    OSError("bus error while writing to the drive"),
    ValueError("checksum mismatch in frame 3"),
    KeyError("wheel_left"),
)
_REASONS = ("connection reset by peer", "read timed out", "server disconnected")


class BrokenClient(WorldClient):
    """Drives one robot, as well as its breaker lets it.

    Args:
        url: Where the world is served.
        member: The robot and its token.
        breaker: Says what breaks when.
        control: The experimenter's way to the same world.
    """

    def __init__(
        self, url: str, member: Membership, breaker: Breaker, control: WorldControl
    ) -> None:
        super().__init__(url, member.id, member.token)
        self._breaker = breaker
        self._control = control
        self._before: Reading | None = None

    async def sense(self) -> Reading:
        """All sensors at one moment, as far as they work."""
        true = await super().sense()
        before, self._before = self._before or true, true
        breaker = self._breaker
        if not breaker.due(Cause.MISPERCEPTION):
            return true
        if breaker.variant == NO_READING:
            breaker.strike()
            raise WorldRefusedError("GET /api/sensor/all", 503, "unavailable", "try later", {})
        told = LIES[breaker.variant](true, before, breaker.dice())
        if told != true:
            breaker.strike()
        return told

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell, if the motors and the world let it."""
        act = super().move
        return await self._act(direction, lambda: act(direction, action_id))

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell, if the brush and the world let it."""
        act = super().clean
        return await self._act(None, lambda: act(action_id))

    async def _act(
        self, direction: Direction | None, act: Callable[[], Awaitable[ActionResult]]
    ) -> ActionResult:
        if self._breaker.due(Cause.CHANGED_ENVIRONMENT):
            await self._intervene(direction)
        if self._breaker.due(Cause.FAILED_EXECUTION):
            return await self._break(direction, act)
        return await act()

    async def _intervene(self, direction: Direction | None) -> None:
        world = await self._control.world()
        robot = next(one for one in world.robots if one.id == self.robot_id)
        plan = PLANS[self._breaker.variant]
        intervention = plan(world, robot, direction, self._breaker.dice())
        if intervention is not None:
            await self._control.intervene(intervention)
            self._breaker.strike()

    async def _break(
        self, direction: Direction | None, act: Callable[[], Awaitable[ActionResult]]
    ) -> ActionResult:
        variant, dice = self._breaker.variant, self._breaker.dice()
        if variant == "worn brush":
            return await act() if direction else await self._worn(act)
        self._breaker.strike()
        match variant:
            case "raises":
                raise dice.choice(_RAISED)
            case "hangs":
                await asyncio.Event().wait()
            case "world out of reach":
                raise WorldUnreachableError(self._call(direction), self.url, dice.choice(_REASONS))
            case "line lost":
                await act()
                raise OutcomeUnknownError(self._call(direction), self.url, dice.choice(_REASONS))
            case _:
                pass
        return await self._told(ok=variant == "does nothing")

    async def _worn(self, act: Callable[[], Awaitable[ActionResult]]) -> ActionResult:
        """A cleaning that fails by the world's own rules; half of the time it says so."""
        self._breaker.strike()
        worn = STILL.model_copy(update={"clean_uncertainty": 1.0})
        await self._control.intervene(SetDynamics(dynamics=worn))
        try:
            return await act()
        finally:
            await self._control.intervene(SetDynamics(dynamics=STILL))

    async def _told(self, *, ok: bool) -> ActionResult:
        """What a tool tells that did nothing."""
        true = await super().sense()
        where: dict[str, Any] = {"position": true.position, "battery": true.battery}
        return ActionResult(ok=ok, failure=None, reason=None, **where)

    @staticmethod
    def _call(direction: Direction | None) -> str:
        return "POST /api/agent/move" if direction else "POST /api/env/clean"
