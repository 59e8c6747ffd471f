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

from ._setup import ScenarioFacts, ScenarioTruth


def count(facts: ScenarioFacts, world: WorldState) -> ScenarioTruth:
    """Every count of a finished or running world, with `success` still False."""
    done = [line for line in world.log if not line.refused]
    walls = [obstacle.cell for obstacle in world.obstacles if not obstacle.visible]
    wall_bumps = [line.bumped_into for line in done if line.bumped_into in walls]
    home = distances_from(world.charger, world.grid, obstacle_cells(world))
    return ScenarioTruth(
        success=False,
        actions=len(done),
        cleans=sum(line.cleaned for line in done),
        bumps=sum(line.bumped_into is not None for line in done),
        wall_bumps=len(wall_bumps),
        repeated_bumps=len(wall_bumps) - len(set(wall_bumps)),
        stranded=any(line.result.battery == 0 for line in world.log),
        charger_reached=any(
            line.result.position == world.charger != line.position_before for line in done
        ),
        critical_cleans=sum(_critical(line, home) for line in done),
        violations=sum(line.violation for line in done),
        repeated_action_ids=sum(line.repeated for line in world.log),
        remaining=tuple(cell for cell in facts.dirty if cell in world.dirty),
        wall=walls[0] if walls else None,
    )


def _critical(line: LoggedAction, home: Mapping[tuple[int, int], int]) -> bool:
    """Whether it was a cleaning after which the charge would not reach the charger."""
    steps = home.get(line.position_before)
    if line.action != "clean" or steps == 0:
        return False
    return steps is None or line.battery_before - CLEAN_COST < steps * MOVE_COST
