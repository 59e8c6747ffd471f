"""A, Physical Reactivity: a wall rises inside the first move that nears the target.

## Description

One dirty cell lies in the robot's row or column. The straight way to it is barred by a wall that
nobody can feel before bumping into it, and that rises when it is first approached. A robot that
believes the old picture bumps many times; one that remembers nothing does so in episode 2 as well.

## Observation space

The usual reading: the robot's cell and charge, dirt here and next door, blocked ways, the charger
and the grid's size. The hidden wall is not felt.

## Action space

`move` (5 charge) and `clean` (10 charge), as everywhere in this world.

## Transition dynamics

Nothing changes by itself. The first move that nears the target meets the wall.

## Success

The target is clean, and no move went into the wall after the one that discovered it.

## Starting state

Grids of 4 to 6 cells each way, the charger in a corner, full charge, at most one other obstacle
aside of the way.

## Episode end

When the suggested number of actions is taken, or the robot stranded.

## Arguments

`seed` as everywhere; `episode` 2 has the wall from the start, at `wall` (where it rose in episode
1, `ScenarioTruth.wall`; None puts it on the first step of the straight way).
"""

from __future__ import annotations

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Dice,
    Obstacle,
    Spawn,
    WallOnApproach,
    distance,
    inside,
    neighbour,
    steps_between,
)

from .setup import Scenario, ScenarioFacts, ScenarioSetup, described, suggested_bound
from .stage import Stage, stage_of

_LONGEST = 5
"""Cells of a way from start to target."""


def _lines(stage: Stage) -> list[tuple[Cell, ...]]:
    """Straight ways from start to target, 2 to 4 steps: one nearing direction, one first step."""
    lines: list[tuple[Cell, ...]] = []
    for start in stage.cells:
        for direction in DIRECTIONS:
            line = [start]
            while inside(ahead := neighbour(line[-1], direction), stage.grid):
                line.append(ahead)
                if 3 <= len(line) <= _LONGEST and stage.charger not in line[1:]:
                    lines.append(tuple(line))
    return lines


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up; in episode 2 the wall is where `wall` says, or where it rises by default.

    Raises:
        ValueError: `wall` is a place where no wall can have risen.
    """
    dice = Dice(seed, "sudden-wall")
    stage = stage_of(dice)
    line = dice.choice(_lines(stage))
    start, target = line[0], line[-1]
    aside = [cell for cell in stage.floor if min(distance(cell, other) for other in line) >= 2]
    visible = dice.choice([None, *aside])
    seen = () if visible is None else (Obstacle(cell=visible),)
    later = episode > 1
    rises = wall or line[1]
    if later:
        _need_possible(stage, start, target, visible, rises)
    hidden = (Obstacle(cell=rises, visible=False),) if later else ()
    armed = () if later else (WallOnApproach(target=target),)
    blocked = {obstacle.cell for obstacle in seen} | {rises if later else line[1]}
    moves = steps_between(start, target, stage.grid, blocked) or 0
    shortest = moves + (1 if later else 2)
    return ScenarioSetup(
        name="sudden-wall",
        seed=seed,
        episode=episode,
        world=stage.world(seed, Spawn(position=start), (target,), (*seen, *hidden), armed),
        facts=ScenarioFacts(
            start=start,
            battery=100,
            dirty=(target,),
            charger=stage.charger,
            grid=stage.grid,
            target=target,
            wall=rises if later else None,
        ),
        shortest=shortest,
        max_actions=suggested_bound(shortest),
    )


def _need_possible(
    stage: Stage, start: Cell, target: Cell, visible: Cell | None, wall: Cell
) -> None:
    blocked = {wall} if visible is None else {wall, visible}
    taken = {start, target, stage.charger, visible}
    reachable = steps_between(start, target, stage.grid, blocked) is not None
    if wall in taken or not inside(wall, stage.grid) or not reachable:
        raise ValueError(
            f"no wall can stand on {wall!r} in this instance (start {start}, target {target}, "
            f"obstacle {visible}); give the cell where it stood in episode 1, or none"
        )


SUDDEN_WALL = Scenario(
    name="sudden-wall",
    title="The Sudden Wall",
    summary="a hidden obstacle rises inside the first move that nears the target; "
    "in episode 2 it is there from the start",
    description=described(__doc__),
    episodes=2,
    build=build,
    succeeded=lambda facts, world, truth: not truth.remaining and truth.repeated_bumps == 0,
)
