from __future__ import annotations

import itertools
from collections.abc import Callable

from vacuum_world.world import (
    Dynamics,
    Obstacle,
    WorldState,
    clean,
    create_world,
    distances_from,
    join,
    tick,
)

MakeWorld = Callable[..., WorldState]


def _run(world: WorldState, ticks: int) -> list[WorldState]:
    worlds = [world]
    for _ in range(ticks):
        worlds.append(tick(worlds[-1]).state)
    return worlds


def test_an_obstacle_moves_in_about_a_fifth_of_the_ticks(make_world: MakeWorld) -> None:
    dynamics = Dynamics(dirt_entropy=0, clean_uncertainty=0)
    world = make_world(obstacles=(Obstacle(cell=(4, 4)),), dynamics=dynamics)
    worlds = _run(world, 1000)
    moved = sum(a.obstacles != b.obstacles for a, b in itertools.pairwise(worlds))
    assert 150 < moved < 250


def test_obstacles_move_onto_every_free_cell_but_no_robot_and_not_the_charger(
    make_world: MakeWorld,
) -> None:
    dynamics = Dynamics(obstacle_mobility=1, dirt_entropy=0, clean_uncertainty=0)
    world = make_world(obstacles=(Obstacle(cell=(4, 4), visible=False),), dynamics=dynamics)
    seen = {world.obstacles[0].cell for world in _run(world, 600)}
    assert len(seen) == 23
    assert not seen & {(0, 0), (2, 2)}


def test_a_cleaned_cell_turns_dirty_in_about_three_of_ten_ticks(make_world: MakeWorld) -> None:
    dynamics = Dynamics(obstacle_mobility=0, clean_uncertainty=0)
    back = 0
    for seed in range(500):
        world = make_world(dirty=((2, 2),), dynamics=dynamics, ticks="manual", seed=seed)
        back += tick(clean(world, "r1").state).state.dirty == ((2, 2),)
    assert 115 < back < 185


def test_a_cell_that_was_never_cleaned_stays_clean(make_world: MakeWorld) -> None:
    dynamics = Dynamics(obstacle_mobility=0, dirt_entropy=1, clean_uncertainty=0)
    assert _run(make_world(dynamics=dynamics), 5)[-1].dirty == ()


def test_obstacles_stay_where_no_cell_is_free() -> None:
    full = create_world(1, grid=(2, 2)).model_copy(
        update={
            "obstacles": tuple(Obstacle(cell=cell) for cell in ((0, 1), (1, 0), (1, 1))),
            "dynamics": Dynamics(obstacle_mobility=1),
        }
    )
    assert tick(full).state.obstacles == full.obstacles


def test_one_kind_of_dynamics_does_not_shift_the_chance_of_another(make_world: MakeWorld) -> None:
    def outcomes(mobility: float) -> list[bool]:
        dynamics = Dynamics(obstacle_mobility=mobility, dirt_entropy=0, clean_uncertainty=0.4)
        world = make_world(obstacles=(Obstacle(cell=(4, 4)),), dynamics=dynamics, dirty=((2, 2),))
        cleaned: list[bool] = []
        for _ in range(10):
            step = clean(world, "r1")
            cleaned.append(step.result.cleaned)
            dirty = {"dirty": ((2, 2),)}
            world = step.state.model_copy(update=dirty)
        return cleaned

    assert outcomes(0) == outcomes(1)


def test_a_world_made_by_chance_leaves_every_free_cell_reachable() -> None:
    for seed in range(50):
        world = create_world(seed)
        blocked = {obstacle.cell for obstacle in world.obstacles}
        reached = distances_from(world.charger, world.grid, blocked)
        assert len(reached) == 25 - len(blocked)
        assert len(blocked) == 3
        assert len(world.dirty) == 8
        assert not blocked & set(world.dirty)


def test_robots_join_at_the_charger_or_the_nearest_free_cell() -> None:
    world = create_world(0)
    first = join(world, "ann")
    second = join(first.state, "bob")
    assert first.result.position == (0, 0)
    assert sum(second.result.position) == 1
