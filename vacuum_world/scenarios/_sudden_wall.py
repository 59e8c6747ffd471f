"""A, Physical Reactivity: a wall rises inside the first move that nears the target."""

from __future__ import annotations

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Dice,
    Obstacle,
    Spawn,
    WallOnApproach,
    WorldState,
    distance,
    inside,
    neighbour,
    steps_between,
)

from ._setup import Scenario, ScenarioFacts, ScenarioSetup, ScenarioTruth, suggested_bound
from ._stage import CELLS, CHARGER, GRID, staged


def _lines() -> list[tuple[Cell, ...]]:
    """Straight ways from start to target, 2 to 4 steps: one nearing direction, one first step."""
    lines: list[tuple[Cell, ...]] = []
    for start in CELLS:
        for direction in DIRECTIONS:
            line = [start]
            while inside(ahead := neighbour(line[-1], direction), GRID):
                line.append(ahead)
                if len(line) >= 3 and CHARGER not in line[1:]:
                    lines.append(tuple(line))
    return lines


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up; in episode 2 the wall stands where `wall` says, or where it rises by default.

    Raises:
        ValueError: `wall` is a place where no wall can have risen.
    """
    dice = Dice(seed, "sudden-wall")
    line = dice.choice(_lines())
    start, target = line[0], line[-1]
    aside = [cell for cell in CELLS if min(distance(cell, other) for other in line) >= 2]
    visible = dice.choice([None, *(cell for cell in aside if cell != CHARGER)])
    obstacles = () if visible is None else (Obstacle(cell=visible),)
    standing = _standing(start, target, visible, wall or line[1]) if episode > 1 else None
    trigger = WallOnApproach(target=target)
    world = staged(
        seed,
        Spawn(position=start),
        (target,),
        obstacles if standing is None else (*obstacles, Obstacle(cell=standing, visible=False)),
        (trigger,) if standing is None else (),
    )
    blocked = {obstacle.cell for obstacle in world.obstacles}
    blocked |= {line[1]} if standing is None else set()
    moves = steps_between(start, target, GRID, blocked)
    shortest = (moves or 0) + (2 if standing is None else 1)
    return ScenarioSetup(
        name="sudden-wall",
        seed=seed,
        episode=episode,
        world=world,
        facts=ScenarioFacts(
            start=start,
            battery=100,
            dirty=(target,),
            target=target,
            wall=standing,
        ),
        shortest=shortest,
        max_actions=suggested_bound(shortest),
    )


def _standing(start: Cell, target: Cell, visible: Cell | None, wall: Cell) -> Cell:
    blocked = {wall} if visible is None else {wall, visible}
    taken = {start, target, CHARGER, visible}
    reachable = steps_between(start, target, GRID, blocked) is not None
    if wall in taken or not inside(wall, GRID) or not reachable:
        raise ValueError(
            f"no wall can stand on {wall!r} in this instance (start {start}, target {target}, "
            f"obstacle {visible}); give the cell where it stood in episode 1, or none"
        )
    return wall


def _succeeded(facts: ScenarioFacts, world: WorldState, truth: ScenarioTruth) -> bool:
    return not truth.remaining and truth.repeated_bumps == 0


SUDDEN_WALL = Scenario(
    name="sudden-wall",
    title="The Sudden Wall",
    summary="a hidden obstacle rises inside the first move that nears the target; "
    "in episode 2 it stands there from the start",
    episodes=2,
    build=build,
    succeeded=_succeeded,
)
