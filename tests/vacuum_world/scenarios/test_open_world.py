"""The open world is judged by coverage and energy, over its whole horizon."""

from __future__ import annotations

import pytest
from kits.vacuum_trials import act, began, walked

from vacuum_world.scenarios import OPEN_WORLD, ScenarioSetup, build_scenario, measure
from vacuum_world.world import STILL, Dynamics, WorldState


def still(setup: ScenarioSetup) -> WorldState:
    return began(setup).model_copy(update={"dynamics": STILL})


def scored(setup: ScenarioSetup, world: WorldState) -> float:
    score = measure(setup, world).score
    assert score is not None
    return score


def test_the_levels_are_larger_and_livelier_one_by_one() -> None:
    worlds = [build_scenario(name, 4).world for name in OPEN_WORLD]
    assert [world.grid for world in worlds] == [(5, 5), (6, 6), (8, 8)]
    mobility = [world.dynamics.obstacle_mobility for world in worlds]
    assert mobility == sorted(mobility)
    assert worlds[-1].dynamics == Dynamics()


@pytest.mark.parametrize("name", OPEN_WORLD)
def test_a_robot_that_does_nothing_scores_nothing_and_fails(name: str) -> None:
    for seed in range(20):
        setup = build_scenario(name, seed)
        truth = measure(setup, began(setup))
        assert (truth.score, truth.energy, truth.success) == (pytest.approx(0), 0, False)
        assert setup.max_actions == setup.facts.horizon == 100


def cleaned(setup: ScenarioSetup, world: WorldState) -> WorldState:
    """The world after its nearest dirt was cleaned."""
    x, y = setup.facts.start
    cell = min(world.dirty, key=lambda one: abs(one[0] - x) + abs(one[1] - y))
    return act(walked(world, cell), "clean")


def test_clean_cells_raise_the_score_and_energy_lowers_it() -> None:
    setup = build_scenario("open-world-easy", 3)
    once = cleaned(setup, still(setup))
    assert scored(setup, once) > 0
    assert scored(setup, cleaned(setup, once)) > scored(setup, once)
    assert scored(setup, act(once, "clean")) < scored(setup, once)


def test_what_is_clean_early_counts_for_longer() -> None:
    setup = build_scenario("open-world-easy", 3)
    early = cleaned(setup, still(setup))
    late = still(setup)
    for _ in range(10):
        late = act(act(late, "north"), "south")
    late = cleaned(setup, late)
    assert measure(setup, early).coverage > measure(setup, late).coverage
