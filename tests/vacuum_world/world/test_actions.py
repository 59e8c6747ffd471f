from __future__ import annotations

from collections.abc import Callable

import pytest

from vacuum_world.errors import UnknownRobotError
from vacuum_world.world import (
    Direction,
    Dynamics,
    Obstacle,
    WorldState,
    clean,
    join,
    move,
    robot_of,
)

MakeWorld = Callable[..., WorldState]


@pytest.mark.parametrize(
    ("direction", "there"),
    [("north", (2, 1)), ("east", (3, 2)), ("south", (2, 3)), ("west", (1, 2))],
)
def test_a_move_changes_the_cell_and_costs_5(
    make_world: MakeWorld, direction: Direction, there: tuple[int, int]
) -> None:
    step = move(make_world(), "r1", direction)
    assert step.result.result.model_dump() == {
        "ok": True,
        "failure": None,
        "reason": None,
        "position": there,
        "battery": 95,
    }


@pytest.mark.parametrize(
    ("at", "obstacle", "reason"),
    [
        ((2, 2), (2, 1), "blocked by an obstacle to the north"),
        ((2, 0), (4, 4), "blocked by the edge of the grid to the north"),
    ],
)
def test_a_blocked_move_costs_5_and_fails_deterministically(
    make_world: MakeWorld, at: tuple[int, int], obstacle: tuple[int, int], reason: str
) -> None:
    world = make_world(at=at, obstacles=(Obstacle(cell=obstacle, visible=False),))
    line = move(world, "r1", "north").result
    assert (line.result.ok, line.result.failure) == (False, "deterministic")
    assert (line.result.reason, line.result.position, line.result.battery) == (reason, at, 95)
    assert line.bumped_into == (at[0], at[1] - 1)


def test_robots_block_one_another_for_the_time_being(make_world: MakeWorld) -> None:
    world = join(make_world(at=(0, 0)), "bob").state
    assert robot_of(world, "r2").position == (0, 1)
    result = move(world, "r1", "south").result.result
    assert (result.failure, result.reason) == ("transient", "blocked by another robot to the south")


def test_a_cleaning_costs_10_and_makes_the_cell_clean(make_world: MakeWorld) -> None:
    step = clean(make_world(dirty=((2, 2),)), "r1")
    assert step.result.result.ok
    assert step.result.result.battery == 90
    assert (step.state.dirty, step.state.cleaned) == ((), ((2, 2),))


def test_a_clean_cell_cannot_be_cleaned_but_the_attempt_costs_10(make_world: MakeWorld) -> None:
    step = clean(make_world(), "r1")
    assert step.result.result.failure == "deterministic"
    assert step.result.result.battery == 90
    assert not step.result.cleaned


def test_uncertain_cleaning_fails_as_often_openly_as_silently(make_world: MakeWorld) -> None:
    open_failures = silent_failures = successes = 0
    dynamics = Dynamics(obstacle_mobility=0, dirt_entropy=0, clean_uncertainty=0.4)
    for seed in range(1000):
        step = clean(make_world(dirty=((2, 2),), dynamics=dynamics, seed=seed), "r1")
        line = step.result
        assert line.result.battery == 90
        assert line.cleaned == ((2, 2) not in step.state.dirty)
        open_failures += line.result.failure == "transient"
        silent_failures += line.result.ok and not line.cleaned
        successes += line.cleaned
    assert 540 < successes < 660
    assert 150 < open_failures < 250
    assert 150 < silent_failures < 250


@pytest.mark.parametrize(("action", "battery"), [("clean", 9), ("move", 4)])
def test_an_action_dearer_than_the_charge_drains_it_without_effect(
    make_world: MakeWorld, action: str, battery: int
) -> None:
    world = make_world(battery=battery, dirty=((2, 2),))
    step = clean(world, "r1") if action == "clean" else move(world, "r1", "north")
    result = step.result.result
    assert (result.ok, result.battery, result.position) == (False, 0, (2, 2))
    assert step.state.dirty == ((2, 2),)
    assert robot_of(step.state, "r1").stranded
    assert "stranded" in (result.reason or "")


def test_the_charger_restores_before_the_stranded_check(make_world: MakeWorld) -> None:
    step = move(make_world(at=(1, 0), battery=5), "r1", "west")
    assert step.result.result.battery == 100
    assert not robot_of(step.state, "r1").stranded


def test_draining_on_the_charger_strands_nobody(make_world: MakeWorld) -> None:
    world = make_world(at=(0, 0))
    low = robot_of(world, "r1").model_copy(update={"battery": 3})
    step = clean(world.model_copy(update={"robots": (low,)}), "r1")
    assert not step.result.result.ok
    assert step.result.result.battery == 100


def test_the_last_charge_spent_off_the_charger_strands(make_world: MakeWorld) -> None:
    step = move(make_world(battery=5), "r1", "north")
    assert step.result.result.ok
    assert robot_of(step.state, "r1").stranded


def test_a_stranded_robot_is_refused_and_no_time_passes(make_world: MakeWorld) -> None:
    world = move(make_world(battery=5), "r1", "north").state
    step = move(world, "r1", "south", "late")
    assert step.result.refused
    assert step.state.tick == world.tick
    assert step.state.robots == world.robots
    assert step.state.counters.refused == 1
    assert step.state.log[-1].action_id == "late"


def test_a_repeated_action_id_is_logged_counted_and_still_carried_out(
    make_world: MakeWorld,
) -> None:
    world = move(make_world(), "r1", "north", "a-1").state
    world = move(world, "r1", "north", "a-2").state
    step = clean(world, "r1", "a-1")
    assert [line.repeated for line in step.state.log] == [False, False, True]
    assert step.state.counters.repeated_action_ids == 1
    assert step.state.counters.actions == 3


def test_actions_without_an_id_repeat_nothing(make_world: MakeWorld) -> None:
    world = move(move(make_world(), "r1", "north").state, "r1", "south").state
    assert world.counters.repeated_action_ids == 0


@pytest.mark.parametrize(("ticks", "passed"), [("action", 1), ("manual", 0), ("clock", 0)])
def test_time_passes_by_actions_only_where_it_shall(
    make_world: MakeWorld, ticks: str, passed: int
) -> None:
    assert move(make_world(ticks=ticks), "r1", "north").state.tick == passed


def test_the_log_says_what_truly_happened(make_world: MakeWorld) -> None:
    line = move(make_world(), "r1", "east", "x").result
    assert (line.number, line.robot, line.action, line.direction) == (1, "r1", "move", "east")
    assert (line.position_before, line.battery_before, line.refused) == ((2, 2), 100, False)


def test_an_unknown_robot_is_named_together_with_the_known(make_world: MakeWorld) -> None:
    with pytest.raises(UnknownRobotError, match=r"no robot 'r9'.*there are: r1"):
        move(make_world(), "r9", "north")
