"""Components that break: sensors, motors, the world, and recall.

A `Breaker` decides in which cycles a component is broken. Every component of a run asks it; only
the one that the fault is about gets a yes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from case_study.grid import around
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
    """One component that breaks, by the cause that its failures have, and when.

    It waits from `cycle` on for its first opportunity, and the component then stays broken for so
    many `cycles`.
    """

    cause: Cause
    variant: str
    cycle: int
    cycles: int
    seed: int
    """What its details are drawn from."""


@dataclass(slots=True)
class Breaker:
    """Strikes from the first opportunity on, for as many cycles as the fault lasts."""

    fault: Fault | None = None
    """None for a run in which nothing breaks."""
    now: Callable[[], int] = lambda: 0
    """The cycle that is going on."""
    struck: list[int] = field(default_factory=list[int])
    """The cycles in which it struck, once for every time."""

    def due(self, cause: Cause, cycle: int | None = None) -> bool:
        """Whether the component with this cause is to break, now or in a cycle."""
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


# ---- the stage: a scenario, what is remembered, and the rules ----

StageName = Literal["sudden-wall", "energy-dilemma", "phantom-object", "evolution"]
STAGES: tuple[StageName, ...] = get_args(StageName)
SCOPE = "robot"
_SMALL_TALK = (
    "The charger at ({x}, {y}) restored the battery to 100 within one move.",
    "Moves to the east along the upper row went well on an earlier day.",
    "The user likes a short report at the end.",
    "A full round of a room takes about ten moves.",
    "The robot was serviced and its wheels were oiled.",
    "The grid was measured: {width} cells wide and {height} cells high.",
    "Somebody asked whether the robot is loud; it is not.",
)
"""True, and of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One scenario and seed, with what the robot remembers and the rules that hold.

    `sudden-wall` is its second episode: the hidden wall is there, and in a record. In
    `evolution` the rule holds from the start, and is in a record.
    """

    name: StageName
    setup: ScenarioSetup
    records: tuple[Record, ...]
    """What is needed, among what is not."""
    rules: tuple[Constraint, ...]

    @property
    def needed(self) -> frozenset[str]:
        """Ids of the records without which the robot comes to grief."""
        return frozenset(one.id for one in self.records if one.type != "note")


def stage_of(name: StageName, seed: int) -> Stage:
    """The stage that a seed gives."""
    setup = _setup(name, seed)
    facts, dice = setup.facts, random.Random(f"stage {name} {seed}")
    (x, y), (width, height) = setup.world.charger, setup.world.grid
    small_talk = [text.format(x=x, y=y, width=width, height=height) for text in _SMALL_TALK]
    records = [_remembered(text) for text in dice.sample(small_talk, 3)]
    rules = list(CONSTRAINTS.values())
    if facts.wall is not None:
        near = [neighbour(facts.wall, way) for way in DIRECTIONS]
        records.append(_wall_record(facts.start if facts.start in near else near[0], facts.wall))
    if facts.forbidden is not None:
        records.append(_rule_record(facts.forbidden))
        rules.append(ForbidCleaning(facts.forbidden))
    dice.shuffle(records)
    return Stage(name=name, setup=setup, records=tuple(records), rules=tuple(rules))


def _remembered(text: str, kind: str = "note", **metadata: Scalar) -> Record:
    """A record of an earlier day."""
    return Record(
        id=record_id(MemoryKind.EPISODIC, SCOPE, text),
        kind=MemoryKind.EPISODIC,
        text=text,
        scope=SCOPE,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
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


def _wall_record(here: Cell, wall: Cell) -> Record:
    """What the agent writes down after a bump: in its words, with the robot's metadata."""
    text = f"Obstacle: moving from {here} failed, cell {wall} is blocked."
    place = {"x": here[0], "y": here[1], "blocked_x": wall[0], "blocked_y": wall[1]}
    return _remembered(text, "obstacle", **place)


def _rule_record(cell: Cell) -> Record:
    """What the agent writes down after its cleaning was rejected."""
    return _remembered(f"Rule: cleaning cell {cell} is forbidden.", "rule")


def _setup(name: StageName, seed: int) -> ScenarioSetup:
    first = build_scenario(name, seed)
    if name != "sudden-wall":
        return first
    # Without room for a wall on the straight way, try each neighbour of the start.
    for wall in (None, *(neighbour(first.facts.start, way) for way in DIRECTIONS)):
        try:
            return build_scenario(name, seed, episode=2, wall=wall)
        except ValueError:
            continue
    raise ValueError(f"There is no place for a wall in {name!r}, seed {seed!r}.")


# ---- sensors ----

Lie = Callable[[Reading, Reading, random.Random], Reading]
"""From a true reading, the true one before it, and dice, to what the agent gets."""


def _battery(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    off = dice.choice((-60, -45, -30, -20, 20, 30, 45, 60))
    return reading.model_copy(update={"battery": min(100, max(5, reading.battery + off))})


def _position(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    return reading.model_copy(
        update={"position": dice.choice(around(reading.position, reading.grid))}
    )


def _blind_to_dirt(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    seen = {name: False for name, dirty in reading.dirty.model_dump().items() if dirty}
    return reading.model_copy(update={"dirty": reading.dirty.model_copy(update=seen)})


def _flipped(sensor: str, reading: Reading, where: str) -> Reading:
    sensed = getattr(reading, sensor)
    update = {where: not getattr(sensed, where)}
    return reading.model_copy(update={sensor: sensed.model_copy(update=update)})


def _open_way(reading: Reading, dice: random.Random) -> Direction:
    here, grid = reading.position, reading.grid
    return dice.choice([way for way in DIRECTIONS if inside(neighbour(here, way), grid)])


LIES: Mapping[str, Lie] = {
    "battery gauge off": _battery,
    "located next door": _position,
    "stale reading": lambda reading, before, dice: before,
    "dirt underfoot flipped": lambda reading, before, dice: _flipped("dirty", reading, "here"),
    "dirt next door flipped": lambda reading, before, dice: _flipped(
        "dirty", reading, _open_way(reading, dice)
    ),
    "blind to dirt": _blind_to_dirt,
    "proximity flipped": lambda reading, before, dice: _flipped(
        "blocked", reading, _open_way(reading, dice)
    ),
}
"""The ways in which sensors lie, by name. One more, `no reading`, is a sensor that fails."""


# ---- the world ----

Plan = Callable[[WorldState, Robot, Direction | None, random.Random], Intervention | None]
"""From the world, the robot, where it is about to move (None: to clean) and dice, to what is
done; None where it cannot be done now."""


def _wall(visible: bool) -> Plan:
    def plan(
        world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
    ) -> Intervention | None:
        cell = neighbour(robot.position, direction) if direction else world.charger
        if cell == world.charger or not _free(world, cell):
            return None
        return AddObstacle(cell=cell, visible=visible)

    return plan


def _drained(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    left = dice.choice((6, 8, 11, 16, 21))
    if left >= robot.battery or robot.position == world.charger:
        return None
    return SetBattery(robot=robot.id, battery=left)


def _carried_off(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    there = neighbour(robot.position, direction) if direction else robot.position
    kept = (robot.position, there, world.charger)
    places = [cell for cell in cells_of(world.grid) if _free(world, cell) and cell not in kept]
    return PlaceRobot(robot=robot.id, cell=dice.choice(places)) if places else None


def _somebody_cleans(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    if direction is not None or robot.position not in world.dirty:
        return None
    return RemoveDirt(cell=robot.position)


def _dirt_returns(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """A cell that was cleaned gets dirty again, within sight of where the robot goes."""
    end = neighbour(robot.position, direction) if direction else robot.position
    seen = [end] if inside(end, world.grid) else []
    near = [*seen, *around(end, world.grid)]
    again = [cell for cell in near if cell in world.cleaned and cell not in world.dirty]
    return AddDirt(cell=dice.choice(again)) if again else None


PLANS: Mapping[str, Plan] = {
    "wall in the way": _wall(True),
    "hidden wall in the way": _wall(False),
    "battery drained": _drained,
    "carried off": _carried_off,
    "somebody cleans": _somebody_cleans,
    "dirt returns": _dirt_returns,
}
"""What can happen to the world, by name."""


def _free(world: WorldState, cell: Cell) -> bool:
    robots = {robot.position for robot in world.robots}
    return inside(cell, world.grid) and cell not in obstacle_cells(world) | robots


# ---- recall ----

Hits = list[RecalledRecord]
MISSED = (
    "needed record left out",
    "nothing comes",
    "episodes not asked",
    "memory out of reach",
)
"""The ways in which recall misses what it should bring."""
CHANGED = ("cell shifted", "negated")
"""The ways in which the needed record comes changed."""


def _false_rule(stage: Stage, dice: random.Random) -> list[Record]:
    """A cell of the task is said to be forbidden."""
    facts = stage.setup.facts
    return [_rule_record(dice.choice([c for c in facts.dirty if c != facts.forbidden]))]


def _false_wall(stage: Stage, dice: random.Random) -> list[Record]:
    """A free cell between start and work is said to be blocked."""
    facts, world = stage.setup.facts, stage.setup.world
    near = around(facts.start, world.grid)
    cells = [cell for cell in near if cell not in (*facts.dirty, facts.wall, world.charger)]
    return [_wall_record(facts.start, dice.choice(cells))] if cells else []


def _walled_in(stage: Stage, dice: random.Random) -> list[Record]:
    """All cells around one cell of the task are said to be blocked."""
    facts = stage.setup.facts
    targets = [cell for cell in facts.dirty if cell not in (facts.start, facts.forbidden)]
    if not targets:
        return []
    target = dice.choice(targets)
    return [_wall_record(target, cell) for cell in around(target, stage.setup.world.grid)]


UNTRUE: Mapping[str, Callable[[Stage, random.Random], list[Record]]] = {
    "false rule": _false_rule,
    "false wall": _false_wall,
    "walled in": _walled_in,
}
"""The untrue records that come beside the true ones, by variant."""


class BrokenStore(WrappedStore):
    """A store whose searches break; all else goes to the true one."""

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
        returned = hits
        if self._breaker.due(Cause.MISSED_RETRIEVAL, cycle):
            returned = self._missing(hits, search, cycle)
        elif self._breaker.due(Cause.WRONG_FACT, cycle):
            returned = self._untrue(hits, search)
        if returned != hits:
            self._breaker.strike(cycle)
        return returned

    def _missing(self, hits: Hits, search: Search, cycle: int) -> Hits:
        variant = self._breaker.variant
        episodes = search.kind is MemoryKind.EPISODIC
        if variant == "memory out of reach" and episodes:
            self._breaker.strike(cycle)
            raise RecordStoreError("The memory cannot be reached: the connection was refused.")
        if variant == "nothing comes" or (variant == "episodes not asked" and episodes):
            return []
        return [hit for hit in hits if hit.record.id not in self._stage.needed]

    def _untrue(self, hits: Hits, search: Search) -> Hits:
        variant = self._breaker.variant
        if search.kind is not MemoryKind.EPISODIC:
            return hits
        if variant in CHANGED:
            return [self._changed(hit) for hit in hits]
        score = max((hit.score for hit in hits), default=0.5)
        untrue = UNTRUE[variant](self._stage, self._breaker.dice())
        return [*(RecalledRecord(record=one, score=score) for one in untrue), *hits][: search.k]

    def _changed(self, hit: RecalledRecord) -> RecalledRecord:
        """The needed record with another content under its id."""
        if hit.record.id not in self._stage.needed:
            return hit
        facts = self._stage.setup.facts
        true = facts.wall or facts.forbidden or (0, 0)
        if self._breaker.variant == "negated":
            changed = _remembered(f"Cell {true} was looked at again: nothing is there.")
        else:
            cells = [cell for cell in cells_of(self._stage.setup.world.grid) if cell != true]
            cell = self._breaker.dice().choice(cells)
            changed = _wall_record(facts.start, cell) if facts.wall else _rule_record(cell)
        update = {"text": changed.text, "metadata": changed.metadata}
        return hit.model_copy(update={"record": hit.record.model_copy(update=update)})


# ---- motors ----

NO_READING, HANGS = "no reading", "hangs"
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
Doing = Callable[[], Awaitable[ActionResult]]


class BrokenClient(WorldClient):
    """Drives one robot, as well as its breaker lets it; `control` leads to the same world."""

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
        reported = LIES[breaker.variant](true, before, breaker.dice())
        if reported != true:
            breaker.strike()
        return reported

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell, if the motors and the world let it."""
        act = super().move
        return await self._act(direction, lambda: act(direction, action_id))

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell, if the brush and the world let it."""
        act = super().clean
        return await self._act(None, lambda: act(action_id))

    async def _act(self, direction: Direction | None, act: Doing) -> ActionResult:
        if self._breaker.due(Cause.CHANGED_ENVIRONMENT):
            world = await self._control.world()
            robot = next(one for one in world.robots if one.id == self.robot_id)
            plan = PLANS[self._breaker.variant]
            intervention = plan(world, robot, direction, self._breaker.dice())
            if intervention is not None:
                await self._control.intervene(intervention)
                self._breaker.strike()
        if self._breaker.due(Cause.FAILED_EXECUTION):
            return await self._break(direction, act)
        return await act()

    async def _break(self, direction: Direction | None, act: Doing) -> ActionResult:
        variant, dice = self._breaker.variant, self._breaker.dice()
        call = "POST /api/agent/move" if direction else "POST /api/env/clean"
        if variant == "worn brush" and direction:
            return await act()
        self._breaker.strike()
        match variant:
            case "worn brush":
                return await self._worn(act)
            case "raises":
                raise dice.choice(_RAISED)
            case "hangs":
                await asyncio.Event().wait()
            case "world out of reach":
                raise WorldUnreachableError(call, self.url, dice.choice(_REASONS))
            case "line lost":
                await act()
                raise OutcomeUnknownError(call, self.url, dice.choice(_REASONS))
            case _:
                pass
        true = await super().sense()
        where: dict[str, Any] = {"position": true.position, "battery": true.battery}
        return ActionResult(ok=variant == "does nothing", failure=None, reason=None, **where)

    async def _worn(self, act: Doing) -> ActionResult:
        """A cleaning that fails by the world's own rules; half of the time it says so."""
        worn = STILL.model_copy(update={"clean_uncertainty": 1.0})
        await self._control.intervene(SetDynamics(dynamics=worn))
        try:
            return await act()
        finally:
            await self._control.intervene(SetDynamics(dynamics=STILL))
