"""The vacuum world as a domain of awareness."""

from __future__ import annotations

from collections.abc import Iterator

from case_study.grid import CLEAN, MOVE, SENSE, dirt_sensed, ways_sensed
from coag.awareness import (
    AttentionType,
    Awareness,
    AwarenessState,
    CollaborationMode,
    Entity,
    InjectionBlock,
    InjectionItem,
    InteractionProtocol,
    Need,
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedRelationship,
    PerceptAdapter,
    Resource,
    ScanPattern,
    SelfModel,
    TransitionType,
)
from coag.awareness.adapters import Place
from coag.schema import Percept, PerceptKind
from vacuum_world.world import (
    CLEAN_COST,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Reading,
    distance,
    last_state_line,
)

ROOM, TILE, OBSTACLE, CHARGER, ROBOT = "room", "tile", "obstacle", "charger", "robot"
ENERGY = "energy"
_DIRTY, _X, _Y, _THERE = "dirty", "x", "y", "there"
_ROOM_NAME, _ROBOT_NAME, _CHARGER_NAME = "the room", "the robot", "the charger"
_TTL = 4
"""Steps from one percept to the next, and one to spare: what lasts is reported again."""
_MOST_DIRT = 8
"""Dirty tiles reported as opportunities, the nearest first."""
_SPARE = 4
"""Charge beyond the way to the charger below which it is scarce."""


def vacuum_self() -> SelfModel:
    """What a robot's actions take: moving and cleaning cost energy, looking costs none."""
    return SelfModel(
        resources=(Resource(name=ENERGY, capacity=FULL_BATTERY, remaining=FULL_BATTERY),),
        needs=(
            Need(action=MOVE, resource=ENERGY, amount=MOVE_COST),
            Need(action=CLEAN, resource=ENERGY, amount=CLEAN_COST),
            Need(action=SENSE, resource=ENERGY, amount=0),
        ),
    )


def vacuum_awareness() -> Awareness:
    """The situational awareness of a vacuum robot."""
    return Awareness(VacuumAdapter(), self_model=vacuum_self())


class VacuumAdapter(PerceptAdapter):
    """Reads tiles, obstacles, the charger, energy and dirt from a robot's sensors.

    Its world is one room. A tile that is seen for the first time, or becomes clean, is progress;
    dirt is an opportunity, the nearest the most urgent; energy that hardly covers the
    distance to the charger is a threat.
    """

    @property
    def domain_name(self) -> str:
        """`vacuum`."""
        return "vacuum"

    def define_entity_types(self) -> tuple[str, ...]:
        """Room, tile, obstacle, charger, robot."""
        return (ROOM, TILE, OBSTACLE, CHARGER, ROBOT)

    def define_relationship_types(self) -> tuple[str, ...]:
        """What is on which tile."""
        return ("stands_on",)

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """What a robot watches for."""
        return (
            ScanPattern(name="dirt", description="A tile that is dirty, or dirty again."),
            ScanPattern(name="low energy", description="Energy that hardly reaches the charger."),
            ScanPattern(name="new obstacle", description="A way that is blocked and was not."),
        )

    def define_protocol_defaults(self) -> InteractionProtocol:
        """It acts by itself."""
        return InteractionProtocol(mode=CollaborationMode.AUTONOMOUS)

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        """What a reading says; without one, the known dirt is reported again."""
        reading = last_state_line(percept.content)
        if reading is None or percept.kind is not PerceptKind.TOOL_RETURN:
            dirty = _dirty_before(state)
            return Observation(attention_items=(*_dirt(dirty, _position(state)),))
        dirt = dirt_sensed(reading)
        dirty = (_dirty_before(state) - dirt.keys()) | {
            cell for cell, is_dirty in dirt.items() if is_dirty
        }
        return Observation(
            entities=(*_fixed(reading), *_tiles(dirt), *_obstacles(reading, state)),
            relationships=(
                ObservedRelationship(
                    source=_CHARGER_NAME, type="stands_on", target=f"tile {reading.charger}"
                ),
            ),
            attention_items=(*_dirt(dirty, reading.position), *_threats(reading)),
            resources=(
                Resource(name=ENERGY, capacity=FULL_BATTERY, remaining=max(0, reading.battery)),
            ),
            event=_event(dirt, state),
        )

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """Where the robot is, what is in the way, and how many tiles are known."""
        robot = state.world.get(_ROBOT_NAME)
        obstacles = [one for one in state.world.of_type(OBSTACLE) if one.state.get(_THERE)]
        tiles = state.world.of_type(TILE)
        lines = [f"robot at {_cell_of(robot)}"] if robot and _cell_of(robot) else []
        lines += [f"obstacle at {_cell_of(one)}" for one in obstacles]
        if tiles:
            lines.append(f"{len(tiles)} tiles seen, {len(_dirty_before(state))} known dirty")
        return (
            InjectionBlock(
                heading="ROOM",
                priority=Place.TOPICS,
                items=tuple(InjectionItem(text=line) for line in lines),
                first=10,
            ),
        )


def _fixed(reading: Reading) -> Iterator[ObservedEntity]:
    width, height = reading.grid
    yield ObservedEntity(name=_ROOM_NAME, type=ROOM, state={"width": width, "height": height})
    yield ObservedEntity(
        name=_CHARGER_NAME,
        type=CHARGER,
        state={_X: reading.charger[0], _Y: reading.charger[1]},
        affordances=("recharge",),
    )
    yield ObservedEntity(
        name=_ROBOT_NAME,
        type=ROBOT,
        state={_X: reading.position[0], _Y: reading.position[1], "stranded": reading.stranded},
    )


def _tiles(dirt: dict[Cell, bool]) -> Iterator[ObservedEntity]:
    for cell, dirty in dirt.items():
        yield ObservedEntity(
            name=f"tile {cell}",
            type=TILE,
            state={_X: cell[0], _Y: cell[1], _DIRTY: dirty},
            affordances=(MOVE, CLEAN),
        )


def _obstacles(reading: Reading, state: AwarenessState) -> Iterator[ObservedEntity]:
    """Obstacles that are felt, and known ones that no longer are."""
    for cell, blocked in ways_sensed(reading).items():
        name = f"obstacle at {cell}"
        if blocked or state.world.get(name) is not None:
            yield ObservedEntity(
                name=name, type=OBSTACLE, state={_X: cell[0], _Y: cell[1], _THERE: blocked}
            )


def _dirt(dirty: set[Cell], here: Cell | None) -> Iterator[ObservedAttention]:
    def steps(cell: Cell) -> int:
        return 0 if here is None else distance(here, cell)

    for cell in sorted(dirty, key=lambda cell: (steps(cell), cell))[:_MOST_DIRT]:
        yield ObservedAttention(
            type=AttentionType.OPPORTUNITY,
            description=f"Dirt on tile {cell}",
            urgency=max(0.2, 0.6 - 0.05 * steps(cell)),
            ttl=_TTL,
        )


def _threats(reading: Reading) -> Iterator[ObservedAttention]:
    way = distance(reading.position, reading.charger) * MOVE_COST
    words, urgency = "The energy hardly reaches the charger", 0.9
    if reading.stranded:
        words, urgency = "Stranded: the energy is used up away from the charger", 1.0
    if reading.stranded or reading.battery < way + _SPARE:
        yield ObservedAttention(
            type=AttentionType.THREAT, description=words, urgency=urgency, ttl=_TTL
        )


def _event(dirt: dict[Cell, bool], state: AwarenessState) -> ObservedEvent | None:
    """Progress: tiles that became clean, or are seen for the first time."""
    before = _dirty_before(state)
    cleaned = sorted(cell for cell, dirty in dirt.items() if not dirty and cell in before)
    new = [cell for cell in dirt if state.world.get(f"tile {cell}") is None]
    if not cleaned and not new:
        return None
    parts = [f"tile {cell} is clean now" for cell in cleaned]
    parts += [f"{len(new)} tiles seen for the first time"] if new else []
    return ObservedEvent(type=TransitionType.PROGRESS, description="; ".join(parts))


def _dirty_before(state: AwarenessState) -> set[Cell]:
    tiles = (one for one in state.world.of_type(TILE) if one.state.get(_DIRTY) is True)
    return {cell for cell in map(_cell_of, tiles) if cell is not None}


def _position(state: AwarenessState) -> Cell | None:
    robot = state.world.get(_ROBOT_NAME)
    return _cell_of(robot) if robot else None


def _cell_of(entity: Entity) -> Cell | None:
    x, y = entity.state.get(_X), entity.state.get(_Y)
    return (x, y) if isinstance(x, int) and isinstance(y, int) else None
