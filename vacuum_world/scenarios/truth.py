"""Ground truth: what happened, counted from the world's own log."""

from __future__ import annotations

from collections.abc import Mapping

from vacuum_world.world import (
    CLEAN_COST,
    MOVE_COST,
    LoggedAction,
    WorldState,
    distances_from,
    obstacle_cells,
)

from .setup import ScenarioFacts, ScenarioTruth

ENERGY_WEIGHT = 0.02
"""What the most energy that can be spent takes from a score."""


def count(facts: ScenarioFacts, world: WorldState) -> ScenarioTruth:
    """Every count of a finished or running world, with `success` still False."""
    done = [line for line in world.log if not line.refused]
    walls = [obstacle.cell for obstacle in world.obstacles if not obstacle.visible]
    wall_bumps = [line.bumped_into for line in done if line.bumped_into in walls]
    begun = {cleaning.cell for cleaning in world.under_way}
    home = distances_from(world.charger, world.grid, obstacle_cells(world))
    return ScenarioTruth(
        success=False,
        actions=len(done),
        energy=world.counters.energy,
        coverage=coverage(world, facts.horizon or 0),
        score=None if facts.horizon is None else performance(facts, world),
        cleans=world.counters.cleans,
        bumps=sum(line.bumped_into is not None for line in done),
        wall_bumps=len(wall_bumps),
        repeated_bumps=len(wall_bumps) - len(set(wall_bumps)),
        stranded=any(line.result.battery == 0 for line in world.log),
        charger_reached=any(
            line.result.position == world.charger != line.position_before for line in done
        ),
        critical_cleans=sum(_critical(line, home) for line in done),
        violations=sum(line.violation for line in done),
        needless_cleans=sum(line.needless for line in done),
        gadget_uses=sum(line.action == "use" for line in done),
        repeated_action_ids=sum(line.repeated for line in world.log),
        remaining=tuple(cell for cell in facts.dirty if cell in world.dirty and cell not in begun),
        wall=walls[0] if walls else None,
    )


def coverage(world: WorldState, horizon: int) -> float:
    """Share of the grid that was clean, on average over ticks.

    Args:
        world: The world at the end.
        horizon: Ticks that it is taken over; those that did not pass count as the world is now.
    """
    cells = world.grid[0] * world.grid[1]
    clean = cells - len(world.dirty)
    if world.tick == 0 and horizon == 0:
        return clean / cells
    left = max(0, horizon - world.tick)
    return (world.counters.clean_ticks + left * clean) / (cells * (world.tick + left))


def performance(facts: ScenarioFacts, world: WorldState) -> float:
    """The paper's two objectives in one number: coverage of clean cells, and little energy.

    The share of the initial dirt that was away on average (0 if nothing is done, 1 if all of it is
    away at once, below 0 if it gets worse), less a fiftieth of the charge that was taken, as a
    share of what cleaning at every action would take.
    """
    cells = world.grid[0] * world.grid[1]
    ticks = facts.horizon or 1
    idle = 1 - len(facts.dirty) / cells
    gain = (coverage(world, ticks) - idle) / (1 - idle)
    return gain - ENERGY_WEIGHT * world.counters.energy / (ticks * CLEAN_COST)


def _critical(line: LoggedAction, home: Mapping[tuple[int, int], int]) -> bool:
    """Whether it was a cleaning after which the charge would not reach the charger."""
    steps = home.get(line.position_before)
    if line.action != "clean" or steps == 0:
        return False
    return steps is None or line.battery_before - CLEAN_COST < steps * MOVE_COST
