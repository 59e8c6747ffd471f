"""What holds for every scenario."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.vacuum_trials import after, began, fewest_actions, planned

from vacuum_world.errors import UnknownScenarioError
from vacuum_world.scenarios import (
    ADVERSARIAL,
    OPEN_WORLD,
    PAPER,
    SCENARIOS,
    ScenarioSetup,
    build_scenario,
    measure,
)

SAMPLE = range(0, 1000, 67)
STAGED = (("sudden-wall", 1), ("energy-dilemma", 1))
"""Those in which the world changes, or the order counts: no plan but by their rules."""
EPISODES = [
    (name, episode) for name in SCENARIOS for episode in range(1, SCENARIOS[name].episodes + 1)
]
HEADINGS = (
    "Description",
    "Observation space",
    "Action space",
    "Transition dynamics",
    "Success",
    "Starting state",
    "Episode end",
    "Arguments",
)


def test_the_scenarios_are_the_papers_six_more_and_the_open_world() -> None:
    assert (*ADVERSARIAL, *OPEN_WORLD) == tuple(SCENARIOS)
    assert ADVERSARIAL[:4] == PAPER
    assert (len(ADVERSARIAL), len(OPEN_WORLD)) == (10, 3)


@pytest.mark.parametrize(
    ("name", "episode"), [(name, number) for name, number in EPISODES if name in ADVERSARIAL]
)
def test_every_instance_can_be_solved_within_its_bound(name: str, episode: int) -> None:
    staged = (name, episode) in STAGED
    for seed in SAMPLE[:4] if staged else SAMPLE:
        setup = build_scenario(name, seed, episode=episode)
        plan = fewest_actions(setup) if staged else planned(setup)
        assert len(plan) == setup.shortest, setup
        assert measure(setup, after(setup, plan)).success, setup
        assert setup.shortest + 4 <= setup.max_actions <= 20


@pytest.mark.parametrize("name", [name for name in ADVERSARIAL if (name, 1) not in STAGED])
def test_no_plan_is_shorter_than_the_shortest(name: str) -> None:
    setup = min((build_scenario(name, seed) for seed in range(20)), key=lambda one: one.shortest)
    assert len(fewest_actions(setup)) == setup.shortest


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_seed_gives_the_same_instance_and_seeds_differ(name: str) -> None:
    instances = [build_scenario(name, seed).model_dump_json() for seed in range(30)]
    assert instances == [build_scenario(name, seed).model_dump_json() for seed in range(30)]
    worlds = {
        build_scenario(name, seed).world.model_dump_json(exclude={"seed", "streams"})
        for seed in range(30)
    }
    assert len(worlds) > 25


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_size_and_corner_of_the_charger_are_varied_by_the_seed(name: str) -> None:
    worlds = [build_scenario(name, seed).world for seed in range(150)]
    assert {side for world in worlds for side in world.grid} == {4, 5, 6}
    assert len({world.grid for world in worlds}) == 9
    corners = {(world.charger[0] > 0, world.charger[1] > 0) for world in worlds}
    assert len(corners) == 4


@pytest.mark.parametrize(("name", "episode"), EPISODES)
@given(seed=st.integers(0, 2**40))
def test_the_world_begins_as_the_facts_say(name: str, episode: int, seed: int) -> None:
    setup = build_scenario(name, seed, episode=episode)
    facts, world = setup.facts, setup.world
    robot = began(setup).robots[0]
    assert (robot.position, robot.battery) == (facts.start, facts.battery)
    assert (world.charger, world.grid) == (facts.charger, facts.grid)
    bait = facts.off_limits if name == "distraction" else ()
    assert world.dirty == tuple(sorted((*facts.dirty, *bait)))
    assert set(facts.off_limits) <= set(world.forbidden)
    assert world.faults == facts.faults
    assert world.gadgets == (() if facts.gadget is None else (facts.gadget,))
    assert world.clean_delay == (facts.delay or 0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_set_up_goes_through_json(name: str) -> None:
    for seed in range(5):
        setup = build_scenario(name, seed)
        assert ScenarioSetup.model_validate_json(setup.model_dump_json()) == setup


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_described_under_the_usual_headings(name: str) -> None:
    description = SCENARIOS[name].description
    assert [f"## {heading}" for heading in HEADINGS] == [
        line for line in description.splitlines() if line.startswith("## ")
    ]


def test_an_unknown_scenario_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UnknownScenarioError, match="'wall'; there are: sudden-wall, energy-"):
        build_scenario("wall", 0)


def test_episodes_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1, got 0"):
        build_scenario("sudden-wall", 0, episode=0)
