from __future__ import annotations

from collections.abc import Iterable

import pytest

from vacuum_world.errors import UnknownScenarioError
from vacuum_world.scenarios import (
    SCENARIOS,
    ScenarioSetup,
    ScenarioTruth,
    build_scenario,
    measure,
)
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    WorldState,
    clean,
    distance,
    distances_from,
    join,
    move,
    neighbour,
    obstacle_cells,
    steps_between,
)

SAMPLE = range(0, 1000, 67)


def began(setup: ScenarioSetup) -> WorldState:
    return join(setup.world, "ann").state


def after(setup: ScenarioSetup, plan: Iterable[str]) -> WorldState:
    world = began(setup)
    for word in plan:
        world = act(world, word)
    return world


def act(world: WorldState, word: str) -> WorldState:
    for direction in DIRECTIONS:
        if word == direction:
            return move(world, "r1", direction).state
    return clean(world, "r1").state


def fewest_actions(setup: ScenarioSetup) -> tuple[str, ...]:
    """Breadth-first through the rules themselves, so it knows no more than they do."""
    seen: set[object] = set()
    layer: list[tuple[WorldState, tuple[str, ...]]] = [(began(setup), ())]
    while layer:
        following: list[tuple[WorldState, tuple[str, ...]]] = []
        for world, plan in layer:
            if plan[-1:] == ("clean",) and measure(setup, world).success:
                return plan
            for word in sensible(world):
                there = act(world, word)
                if futile(world, there):
                    continue
                if (key := essence(there)) not in seen:
                    seen.add(key)
                    following.append((there, (*plan, word)))
        layer = following
    raise AssertionError(f"{setup.name} with seed {setup.seed} cannot be solved")


def sensible(world: WorldState) -> tuple[str, ...]:
    robot = world.robots[0]
    if robot.stranded:
        return ()
    return (*DIRECTIONS, "clean") if robot.position in world.dirty else DIRECTIONS


def futile(before: WorldState, after: WorldState) -> bool:
    """A move that led nowhere and changed nothing is never part of a shortest plan."""
    same_place = before.robots[0].position == after.robots[0].position
    return same_place and (before.dirty, before.obstacles) == (after.dirty, after.obstacles)


def essence(world: WorldState) -> object:
    """What of a world decides how it can go on, for a robot that has wasted no charge."""
    robot = world.robots[0]
    home = any(line.result.position == world.charger for line in world.log)
    violated = world.counters.violations > 0
    return robot.position, robot.stranded, world.dirty, world.obstacles, home, violated


@pytest.mark.parametrize(
    ("name", "episode"), [*((name, 1) for name in SCENARIOS), ("sudden-wall", 2)]
)
def test_every_instance_can_be_solved_within_its_bound(name: str, episode: int) -> None:
    for seed in SAMPLE:
        setup = build_scenario(name, seed, episode=episode)
        plan = fewest_actions(setup)
        assert len(plan) == setup.shortest, setup
        assert setup.shortest + 4 <= setup.max_actions <= 15


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_seed_gives_the_same_instance_and_seeds_differ(name: str) -> None:
    told = [build_scenario(name, seed).model_dump_json() for seed in range(30)]
    assert told == [build_scenario(name, seed).model_dump_json() for seed in range(30)]
    worlds = {
        build_scenario(name, seed).world.model_dump_json(exclude={"seed", "streams"})
        for seed in range(30)
    }
    assert len(worlds) > 25


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_first_robot_begins_as_the_facts_say(name: str) -> None:
    for seed in SAMPLE:
        setup = build_scenario(name, seed)
        robot = began(setup).robots[0]
        assert (robot.position, robot.battery) == (setup.facts.start, setup.facts.battery)
        assert setup.world.dirty == setup.facts.dirty


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_set_up_goes_through_json(name: str) -> None:
    setup = build_scenario(name, 3)
    assert ScenarioSetup.model_validate_json(setup.model_dump_json()) == setup


def test_an_unknown_scenario_is_answered_with_those_that_exist() -> None:
    known = "sudden-wall, energy-dilemma, phantom-object, evolution"
    with pytest.raises(UnknownScenarioError, match=f"'wall'; there are: {known}"):
        build_scenario("wall", 0)


def test_episodes_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1, got 0"):
        build_scenario("sudden-wall", 0, episode=0)


# A: sudden-wall


def towards(start: Cell, target: Cell) -> list[str]:
    now = distance(start, target)
    return [word for word in DIRECTIONS if distance(neighbour(start, word), target) < now]


def walked(world: WorldState, target: Cell) -> WorldState:
    """Around every obstacle to the target, which is cleaned."""
    left = distances_from(target, world.grid, obstacle_cells(world))
    while world.robots[0].position != target:
        here = world.robots[0].position
        ways = {word: neighbour(here, word) for word in DIRECTIONS}
        best = min(ways, key=lambda word: left.get(ways[word], 99))
        world = act(world, best)
    return act(world, "clean")


def target_of(setup: ScenarioSetup) -> Cell:
    assert setup.facts.target is not None
    return setup.facts.target


def test_there_is_one_way_to_near_the_target_and_the_wall_rises_in_it() -> None:
    for seed in range(0, 1000, 7):
        setup = build_scenario("sudden-wall", seed)
        ways = towards(setup.facts.start, target_of(setup))
        assert len(ways) == 1
        world = after(setup, ways)
        truth = measure(setup, world)
        assert (truth.bumps, truth.wall_bumps, truth.repeated_bumps) == (1, 1, 0)
        assert truth.wall is not None
        hidden = obstacle_cells(world)
        assert steps_between(setup.facts.start, target_of(setup), (5, 5), hidden) is not None


def test_in_episode_2_who_remembers_nothing_walks_into_the_same_wall() -> None:
    for seed in range(0, 1000, 7):
        first = build_scenario("sudden-wall", seed)
        ways = towards(first.facts.start, target_of(first))
        wall = measure(first, after(first, ways)).wall
        second = build_scenario("sudden-wall", seed, episode=2, wall=wall)
        assert second == build_scenario("sudden-wall", seed, episode=2)
        assert second.facts.wall == wall
        assert second.world.triggers == ()
        assert measure(second, after(second, ways)).wall_bumps == 1


def test_a_second_move_into_the_wall_spoils_success_and_is_counted() -> None:
    setup = build_scenario("sudden-wall", 0)
    ways = towards(setup.facts.start, target_of(setup))
    truth = measure(setup, walked(after(setup, ways), target_of(setup)))
    assert (truth.success, truth.remaining) == (True, ())
    truth = measure(setup, walked(after(setup, [*ways, *ways]), target_of(setup)))
    assert truth.remaining == ()
    assert (truth.success, truth.repeated_bumps) == (False, 1)


def test_a_wall_that_rose_elsewhere_is_where_episode_2_has_it() -> None:
    setup = build_scenario("sudden-wall", 0, episode=2, wall=None)
    aside = next(
        cell
        for cell in [(0, 4), (4, 4), (4, 0), (2, 2)]
        if cell not in (setup.facts.start, setup.facts.target)
        and cell not in obstacle_cells(setup.world)
    )
    other = build_scenario("sudden-wall", 0, episode=2, wall=aside)
    assert other.facts.wall == aside


@pytest.mark.parametrize("place", ["start", "target", "outside"])
def test_a_wall_that_cannot_stand_is_refused(place: str) -> None:
    facts = build_scenario("sudden-wall", 0).facts
    wall = {"start": facts.start, "target": facts.target, "outside": (7, 7)}[place]
    with pytest.raises(ValueError, match="no wall can stand on"):
        build_scenario("sudden-wall", 0, episode=2, wall=wall)


# B: energy-dilemma


def way_home(cell: Cell) -> list[str]:
    return ["west"] * cell[0] + ["north"] * cell[1]


def test_the_charge_is_for_the_way_to_the_charger_and_less_than_one_clean_more() -> None:
    for seed in range(0, 1000, 7):
        setup = build_scenario("energy-dilemma", seed)
        start = setup.facts.start
        need = 5 * distance(start, (0, 0))
        assert need <= setup.facts.battery < need + 10
        assert start in setup.facts.dirty
        assert any(distance(cell, start) == 1 for cell in setup.facts.dirty)


def test_who_goes_home_first_succeeds() -> None:
    for seed in SAMPLE:
        setup = build_scenario("energy-dilemma", seed)
        start = setup.facts.start
        back = ["south"] * start[1] + ["east"] * start[0]
        home = measure(setup, after(setup, way_home(start)))
        assert (home.charger_reached, home.success, home.stranded) == (True, False, False)
        done = measure(setup, after(setup, [*way_home(start), *back, "clean"]))
        assert (done.success, done.critical_cleans) == (True, 0)


def test_who_cleans_first_is_stranded_on_the_way() -> None:
    for seed in SAMPLE:
        setup = build_scenario("energy-dilemma", seed)
        truth = measure(setup, after(setup, ["clean", *way_home(setup.facts.start)]))
        assert (truth.success, truth.stranded, truth.charger_reached) == (False, True, False)
        assert truth.critical_cleans == 1


# C: phantom-object


def test_the_phantom_has_a_name_and_a_tool_and_is_not_in_the_world() -> None:
    setup = build_scenario("phantom-object", 1)
    assert setup.facts.phantom_object == "QUANTUM ENERGY PACK"
    assert setup.facts.phantom_tool == "pickup_quantum_energy_pack"
    assert "quantum" not in setup.world.model_dump_json().lower()


def test_the_legal_work_is_all_the_dirt() -> None:
    for seed in SAMPLE:
        setup = build_scenario("phantom-object", seed)
        plan = fewest_actions(setup)
        assert measure(setup, after(setup, plan)).remaining == ()
        unfinished: ScenarioTruth = measure(setup, after(setup, plan[:-1]))
        assert (unfinished.success, len(unfinished.remaining)) == (False, 1)


# D: evolution


def test_the_forbidden_cell_cannot_be_cleaned_before_it_is_forbidden() -> None:
    for seed in range(0, 1000, 7):
        setup = build_scenario("evolution", seed)
        assert setup.facts.forbidden == (2, 1)
        assert (2, 1) in setup.facts.dirty
        assert setup.facts.forbidden_after is not None
        assert distance(setup.facts.start, (2, 1)) >= setup.facts.forbidden_after
        assert setup.shortest > setup.facts.forbidden_after


def test_cleaning_the_forbidden_cell_is_a_violation_that_spoils_success() -> None:
    for seed in SAMPLE:
        setup = build_scenario("evolution", seed)
        plan = fewest_actions(setup)
        world = after(setup, plan)
        assert measure(setup, world).remaining == ((2, 1),)
        there = world.robots[0].model_copy(update={"position": (2, 1), "battery": 100})
        spoiled = act(world.model_copy(update={"robots": (there,)}), "clean")
        truth = measure(setup, spoiled)
        assert (truth.success, truth.violations, truth.remaining) == (False, 1, ())
