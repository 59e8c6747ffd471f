"""Playing scenarios of the vacuum world by their rules: plans and searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vacuum_world.scenarios import ScenarioSetup, measure
from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    MOVE_COST,
    Cell,
    WorldState,
    clean,
    distances_from,
    inside,
    join,
    move,
    neighbour,
    obstacle_cells,
    use,
)

ROBOT = "r1"


def began(setup: ScenarioSetup) -> WorldState:
    """The world of a set-up with its robot in it."""
    return join(setup.world, "ann").state


def act(world: WorldState, word: str) -> WorldState:
    """The world after an action: a direction, `clean`, or the name of a gadget."""
    for direction in DIRECTIONS:
        if word == direction:
            return move(world, ROBOT, direction).state
    if word == "clean":
        return clean(world, ROBOT).state
    return use(world, ROBOT, word).state


def after(setup: ScenarioSetup, plan: Iterable[str]) -> WorldState:
    """The world after a plan."""
    world = began(setup)
    for word in plan:
        world = act(world, word)
    return world


_Node = tuple[Cell, frozenset[Cell], int]


def planned(setup: ScenarioSetup, start: WorldState | None = None) -> tuple[str, ...]:
    """A shortest plan for the work that may be done, walls known; quicker than the search below.

    Args:
        setup: What is played.
        start: The world to begin in; None for the beginning.
    """
    world = start or began(setup)
    facts, robot = setup.facts, world.robots[0]
    work = set(facts.dirty) - {facts.forbidden, facts.conflict}
    first = (robot.position, frozenset(work), robot.battery)
    plans: dict[_Node, tuple[str, ...]] = {first: ()}
    layer = [first]
    while layer:
        following: list[_Node] = []
        for node in layer:
            if not node[1]:
                return plans[node]
            for word, there in _ways(world, node):
                if there not in plans:
                    plans[there] = (*plans[node], word)
                    following.append(there)
        layer = following
    raise AssertionError(f"{setup.name} with seed {setup.seed} cannot be solved")


def _ways(world: WorldState, node: _Node) -> Iterator[tuple[str, _Node]]:
    here, left, battery = node
    if here in left and battery > CLEAN_COST:
        yield "clean", (here, left - {here}, battery - CLEAN_COST)
    for word in DIRECTIONS:
        there = neighbour(here, word)
        if inside(there, world.grid) and there not in obstacle_cells(world):
            charge = 100 if there == world.charger else battery - MOVE_COST
            if battery >= MOVE_COST and charge > 0:
                yield word, (there, left, charge)


def fewest_actions(setup: ScenarioSetup) -> tuple[str, ...]:
    """The shortest plan to success, by a search that knows nothing but the rules: slow."""
    seen: set[object] = set()
    layer: list[tuple[WorldState, tuple[str, ...]]] = [(began(setup), ())]
    while layer:
        following: list[tuple[WorldState, tuple[str, ...]]] = []
        for world, plan in layer:
            if plan[-1:] == ("clean",) and measure(setup, world).success:
                return plan
            for word in _sensible(world):
                there = act(world, word)
                if not _futile(world, there) and (key := _essence(there)) not in seen:
                    seen.add(key)
                    following.append((there, (*plan, word)))
        layer = following
    raise AssertionError(f"{setup.name} with seed {setup.seed} cannot be solved")


def _sensible(world: WorldState) -> tuple[str, ...]:
    robot = world.robots[0]
    if robot.stranded:
        return ()
    begun = {cleaning.cell for cleaning in world.under_way}
    dirty = robot.position in world.dirty and robot.position not in begun
    return (*DIRECTIONS, "clean") if dirty else DIRECTIONS


def _futile(before: WorldState, after: WorldState) -> bool:
    """A move that led nowhere and changed nothing is never part of a shortest plan."""
    if before.robots[0].position != after.robots[0].position:
        return False
    same_dirt = (before.dirty, before.under_way) == (after.dirty, after.under_way)
    return same_dirt and before.obstacles == after.obstacles


def _essence(world: WorldState) -> object:
    """The parts of a world that decide what can follow."""
    robot = world.robots[0]
    begun = frozenset(cleaning.cell for cleaning in world.under_way)
    left = frozenset(world.dirty) - begun
    home = any(line.result.position == world.charger for line in world.log)
    violated = world.counters.violations > 0
    return robot.position, robot.battery, left, world.obstacles, home, violated


def walked(world: WorldState, target: Cell) -> WorldState:
    """The world after the robot went around every obstacle to the target, or stranded."""
    left = distances_from(target, world.grid, obstacle_cells(world))
    while world.robots[0].position != target and not world.robots[0].stranded:
        here = world.robots[0].position
        ways = {word: neighbour(here, word) for word in DIRECTIONS}
        world = act(world, min(ways, key=lambda word: left.get(ways[word], 99)))
    return world
