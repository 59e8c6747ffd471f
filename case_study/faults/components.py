"""Components that break: sensors, motors, the world, and recall.

A `Breaker` decides in which cycles a component is broken. Every component of a run asks it; only
the one that the fault is about gets a yes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
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


def _setup(name: StageName, seed: int) -> ScenarioSetup:
    first = build_scenario(name, seed)
    if name != "sudden-wall":
        return first
    # Without room for a wall on the straight way, try each neighbour of the start.
    for wall in (None, *(neighbour(first.facts.start, way) for way in DIRECTIONS)):
        with suppress(ValueError):
            return build_scenario(name, seed, episode=2, wall=wall)
    raise ValueError(f"There is no place for a wall in {name!r}, seed {seed!r}.")


def _remembered(text: str, kind: str = "note", **metadata: Scalar) -> Record:
    provenance = Provenance(
        run="20260101-000000-robot",
        activity="clean",
        cycle=3,
        source=SCOPE,
        source_kind="tool_return",
        trust=Trust.UNTRUSTED,
    )
    return Record(
        id=record_id(MemoryKind.EPISODIC, SCOPE, text),
        kind=MemoryKind.EPISODIC,
        text=text,
        scope=SCOPE,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        provenance=provenance,
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


# ---- sensors, the world, recall: in which ways each breaks ----

NO_READING, HANGS = "no reading", "hangs"
LIES = (
    *("battery gauge off", "located next door", "stale reading", "dirt underfoot flipped"),
    *("dirt next door flipped", "blind to dirt", "proximity flipped"),
)
"""The ways in which sensors lie. One more, `no reading`, is a sensor that fails."""
PLANS = (
    *("wall in the way", "hidden wall in the way", "battery drained", "carried off"),
    *("somebody cleans", "dirt returns"),
)
"""What can happen to the world."""
MISSED = ("needed record left out", "nothing comes", "episodes not asked", "memory out of reach")
"""The ways in which recall misses what it should bring."""
CHANGED, UNTRUE = ("cell shifted", "negated"), ("false rule", "false wall", "walled in")
"""The ways in which the needed record comes changed; the untrue ones that come beside it."""
TOOL_VARIANTS = (
    *("raises", HANGS, "fails without a reason", "world out of reach", "line lost"),
    *("does nothing", "worn brush"),
)
"""The ways in which a tool breaks."""


def lied(variant: str, reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """What the agent gets, from a true reading and the true one before it."""
    here, grid, dirty = reading.position, reading.grid, reading.dirty

    def open_way() -> Direction:
        return dice.choice([way for way in DIRECTIONS if inside(neighbour(here, way), grid)])

    match variant:
        case "battery gauge off":
            off = dice.choice((-60, -45, -30, -20, 20, 30, 45, 60))
            update: dict[str, Any] = {"battery": min(100, max(5, reading.battery + off))}
        case "located next door":
            update = {"position": dice.choice(around(here, grid))}
        case "stale reading":
            return before
        case "blind to dirt":
            seen = {name: False for name, found in dirty.model_dump().items() if found}
            update = {"dirty": dirty.model_copy(update=seen)}
        case "proximity flipped":
            way = open_way()
            felt = {way: not getattr(reading.blocked, way)}
            update = {"blocked": reading.blocked.model_copy(update=felt)}
        case _:
            where = "here" if variant == "dirt underfoot flipped" else open_way()
            flipped = {where: not getattr(dirty, where)}
            update = {"dirty": dirty.model_copy(update=flipped)}
    return reading.model_copy(update=update)


def planned(
    variant: str, world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """What is done to the world while a robot is about to move there, or to clean (None).

    None where it cannot be done now.
    """
    here, charger = robot.position, world.charger
    there = neighbour(here, direction) if direction else here
    taken = obstacle_cells(world) | {each.position for each in world.robots}
    free = [cell for cell in cells_of(world.grid) if cell not in taken]
    match variant:
        case "battery drained":
            left = dice.choice((6, 8, 11, 16, 21))
            if left < robot.battery and here != charger:
                return SetBattery(robot=robot.id, battery=left)
        case "carried off":
            places = [cell for cell in free if cell not in (here, there, charger)]
            return PlaceRobot(robot=robot.id, cell=dice.choice(places)) if places else None
        case "somebody cleans":
            if direction is None and here in world.dirty:
                return RemoveDirt(cell=here)
        case "dirt returns":  # where it was cleaned, within sight of where the robot goes
            near = [*([there] if inside(there, world.grid) else []), *around(there, world.grid)]
            again = [cell for cell in near if cell in world.cleaned and cell not in world.dirty]
            return AddDirt(cell=dice.choice(again)) if again else None
        case _:
            if direction and there != charger and there in free:
                return AddObstacle(cell=there, visible=variant == "wall in the way")
    return None


def untrue_records(variant: str, stage: Stage, dice: random.Random) -> list[Record]:
    """The untrue records that come beside the true ones."""
    facts, world = stage.setup.facts, stage.setup.world
    if variant == "false rule":
        return [_rule_record(dice.choice([c for c in facts.dirty if c != facts.forbidden]))]
    if variant == "false wall":  # between start and work
        near = around(facts.start, world.grid)
        cells = [cell for cell in near if cell not in (*facts.dirty, facts.wall, world.charger)]
        return [_wall_record(facts.start, dice.choice(cells))] if cells else []
    targets = [cell for cell in facts.dirty if cell not in (facts.start, facts.forbidden)]
    if not targets:
        return []
    target = dice.choice(targets)
    return [_wall_record(target, cell) for cell in around(target, world.grid)]


Hits = list[RecalledRecord]


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
        untrue = untrue_records(variant, self._stage, self._breaker.dice())
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
        reported = lied(breaker.variant, true, before, breaker.dice())
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
            variant, dice = self._breaker.variant, self._breaker.dice()
            intervention = planned(variant, world, robot, direction, dice)
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
        """A cleaning that fails by the world's own rules."""
        worn = STILL.model_copy(update={"clean_uncertainty": 1.0})
        await self._control.intervene(SetDynamics(dynamics=worn))
        try:
            return await act()
        finally:
            await self._control.intervene(SetDynamics(dynamics=STILL))
