from __future__ import annotations

from collections.abc import Callable

import pytest

from vacuum_world.errors import ImpossibleInterventionError
from vacuum_world.world import (
    STILL,
    AddDirt,
    AddObstacle,
    AllowCleaning,
    Arm,
    ForbidAfterActions,
    ForbidCleaning,
    Intervention,
    Obstacle,
    PlaceRobot,
    RemoveDirt,
    RemoveObstacle,
    SetBattery,
    SetDynamics,
    WallOnApproach,
    WorldState,
    clean,
    intervene,
    move,
    robot_of,
)

MakeWorld = Callable[..., WorldState]


@pytest.mark.parametrize(
    ("intervention", "reason"),
    [
        (AddObstacle(cell=(2, 2)), "a robot stands on"),
        (AddObstacle(cell=(0, 0)), "is the charger"),
        (AddObstacle(cell=(4, 4)), "an obstacle stands on"),
        (AddObstacle(cell=(5, 0)), "outside the grid"),
        (RemoveObstacle(cell=(1, 1)), "no obstacle stands on"),
        (AddDirt(cell=(-1, 0)), "outside the grid"),
        (PlaceRobot(robot="r1", cell=(4, 4)), "an obstacle stands on"),
        (Arm(trigger=WallOnApproach(target=(9, 9))), "outside the grid"),
    ],
)
def test_an_intervention_that_would_break_the_world_is_refused(
    make_world: MakeWorld, intervention: Intervention, reason: str
) -> None:
    world = make_world(obstacles=(Obstacle(cell=(4, 4)),))
    with pytest.raises(ImpossibleInterventionError, match=reason):
        intervene(world, intervention)


def test_what_is_put_can_be_taken_away_again(make_world: MakeWorld) -> None:
    world = make_world()
    there = world
    for change in (AddObstacle(cell=(1, 1)), AddDirt(cell=(3, 3)), ForbidCleaning(cell=(2, 1))):
        there = intervene(there, change).state
    assert [o.cell for o in there.obstacles] == [(1, 1)]
    assert (there.dirty, there.forbidden) == (((3, 3),), ((2, 1),))
    for back in (
        RemoveObstacle(cell=(1, 1)),
        RemoveDirt(cell=(3, 3)),
        AllowCleaning(cell=(2, 1)),
    ):
        there = intervene(there, back).state
    assert there == world


def test_charge_frees_a_stranded_robot_and_the_charger_fills_it(make_world: MakeWorld) -> None:
    world = move(make_world(battery=5), "r1", "north").state
    freed = intervene(world, SetBattery(robot="r1", battery=20)).state
    assert move(freed, "r1", "north").result.result.ok
    home = intervene(world, PlaceRobot(robot="r1", cell=(0, 0))).state
    assert robot_of(home, "r1").battery == 100


def test_the_dynamics_can_be_changed(make_world: MakeWorld) -> None:
    assert intervene(make_world(), SetDynamics(dynamics=STILL)).state.dynamics == STILL


def test_cleaning_a_forbidden_cell_is_counted_and_not_prevented(make_world: MakeWorld) -> None:
    world = intervene(make_world(dirty=((2, 2),)), ForbidCleaning(cell=(2, 2))).state
    step = clean(world, "r1")
    assert step.result.result.ok
    assert step.result.violation
    assert step.state.counters.violations == 1
    assert step.state.dirty == ()


def test_an_armed_rule_comes_into_force_after_its_actions(make_world: MakeWorld) -> None:
    trigger = ForbidAfterActions(cell=(2, 2), actions=2)
    world = intervene(make_world(), Arm(trigger=trigger)).state
    world = clean(world, "r1").state
    assert world.forbidden == ()
    world = clean(world, "r1").state
    assert (world.forbidden, world.triggers) == (((2, 2),), ())
    assert world.counters.violations == 0
    assert clean(world, "r1").state.counters.violations == 1


def test_a_wall_rises_inside_the_first_move_that_nears_the_target(make_world: MakeWorld) -> None:
    world = intervene(make_world(at=(0, 2)), Arm(trigger=WallOnApproach(target=(3, 2)))).state
    away = move(world, "r1", "south").state
    assert away.obstacles == ()
    step = move(away, "r1", "east")
    assert step.state.obstacles == (Obstacle(cell=(1, 3), visible=False),)
    assert step.result.bumped_into == (1, 3)
    assert step.result.result.failure == "deterministic"
    assert step.state.triggers == ()


def test_a_wall_does_not_rise_on_the_target_or_where_robots_begin(make_world: MakeWorld) -> None:
    world = intervene(make_world(at=(2, 2)), Arm(trigger=WallOnApproach(target=(3, 2)))).state
    assert move(world, "r1", "east").result.result.ok
    back = move(move(world, "r1", "west").state, "r1", "east")
    assert back.result.result.ok
    assert back.state.triggers == world.triggers


def test_a_wall_does_not_rise_where_it_would_shut_the_target_away(make_world: MakeWorld) -> None:
    obstacles = (Obstacle(cell=(1, 1)), Obstacle(cell=(0, 1)))
    world = make_world(at=(2, 0), obstacles=obstacles)
    armed = intervene(world, Arm(trigger=WallOnApproach(target=(0, 0)))).state
    assert move(armed, "r1", "west").result.result.ok
