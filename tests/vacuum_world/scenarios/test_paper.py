"""The traps of the paper's four scenarios, A to D."""

from __future__ import annotations

import pytest
from kits.vacuum_trials import act, after, planned, walked

from vacuum_world.scenarios import ScenarioSetup, ScenarioTruth, build_scenario, measure
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    distance,
    inside,
    neighbour,
    obstacle_cells,
    steps_between,
)

SAMPLE = range(0, 1000, 67)
MANY = range(0, 1000, 13)


def towards(start: Cell, target: Cell, grid: Cell) -> list[str]:
    now = distance(start, target)
    ways = {word: neighbour(start, word) for word in DIRECTIONS}
    return [
        word for word, cell in ways.items() if inside(cell, grid) and distance(cell, target) < now
    ]


def first_step(setup: ScenarioSetup) -> list[str]:
    return towards(setup.facts.start, target_of(setup), setup.world.grid)


def straight(start: Cell, goal: Cell) -> list[str]:
    """The moves of a straight way, first along the row, then along the column."""
    across = "east" if goal[0] > start[0] else "west"
    down = "south" if goal[1] > start[1] else "north"
    return [across] * abs(goal[0] - start[0]) + [down] * abs(goal[1] - start[1])


def target_of(setup: ScenarioSetup) -> Cell:
    assert setup.facts.target is not None
    return setup.facts.target


# A: sudden-wall


def test_there_is_one_way_to_near_the_target_and_the_wall_rises_in_it() -> None:
    for seed in MANY:
        setup = build_scenario("sudden-wall", seed)
        ways = first_step(setup)
        assert len(ways) == 1
        world = after(setup, ways)
        truth = measure(setup, world)
        assert (truth.bumps, truth.wall_bumps, truth.repeated_bumps) == (1, 1, 0)
        assert truth.wall is not None
        hidden = obstacle_cells(world)
        start, target = setup.facts.start, target_of(setup)
        assert steps_between(start, target, world.grid, hidden) is not None


def test_in_episode_2_a_robot_that_remembers_nothing_walks_into_the_same_wall() -> None:
    for seed in MANY:
        first = build_scenario("sudden-wall", seed)
        ways = first_step(first)
        wall = measure(first, after(first, ways)).wall
        second = build_scenario("sudden-wall", seed, episode=2, wall=wall)
        assert second == build_scenario("sudden-wall", seed, episode=2)
        assert second.facts.wall == wall
        assert second.world.triggers == ()
        assert measure(second, after(second, ways)).wall_bumps == 1


def test_a_second_move_into_the_wall_spoils_success_and_is_counted() -> None:
    setup = build_scenario("sudden-wall", 0)
    ways, target = first_step(setup), target_of(setup)
    truth = measure(setup, act(walked(after(setup, ways), target), "clean"))
    assert (truth.success, truth.remaining) == (True, ())
    truth = measure(setup, act(walked(after(setup, [*ways, *ways]), target), "clean"))
    assert truth.remaining == ()
    assert (truth.success, truth.repeated_bumps) == (False, 1)


def test_a_wall_that_rose_elsewhere_is_where_episode_2_has_it() -> None:
    setup = build_scenario("sudden-wall", 0, episode=2, wall=None)
    facts = setup.facts
    corners = [(x, y) for x in (0, facts.grid[0] - 1) for y in (0, facts.grid[1] - 1)]
    taken = {facts.start, facts.target, facts.charger, *obstacle_cells(setup.world)}
    aside = next(cell for cell in corners if cell not in taken)
    other = build_scenario("sudden-wall", 0, episode=2, wall=aside)
    assert other.facts.wall == aside


@pytest.mark.parametrize("place", ["start", "target", "outside"])
def test_a_wall_that_cannot_stand_is_refused(place: str) -> None:
    facts = build_scenario("sudden-wall", 0).facts
    wall = {"start": facts.start, "target": facts.target, "outside": (7, 7)}[place]
    with pytest.raises(ValueError, match="no wall can stand on"):
        build_scenario("sudden-wall", 0, episode=2, wall=wall)


# B: energy-dilemma


def test_the_charge_is_for_the_way_to_the_charger_and_less_than_one_clean_more() -> None:
    for seed in MANY:
        setup = build_scenario("energy-dilemma", seed)
        start = setup.facts.start
        need = 5 * distance(start, setup.facts.charger)
        assert need <= setup.facts.battery < need + 10
        assert start in setup.facts.dirty
        assert any(distance(cell, start) == 1 for cell in setup.facts.dirty)


def test_a_robot_that_goes_home_first_succeeds() -> None:
    for seed in SAMPLE:
        setup = build_scenario("energy-dilemma", seed)
        start, charger = setup.facts.start, setup.facts.charger
        way = straight(start, charger)
        home = measure(setup, after(setup, way))
        assert (home.charger_reached, home.success, home.stranded) == (True, False, False)
        done = measure(setup, after(setup, [*way, *straight(charger, start), "clean"]))
        assert (done.success, done.critical_cleans) == (True, 0)


def test_a_robot_that_cleans_first_is_stranded_on_the_way() -> None:
    for seed in SAMPLE:
        setup = build_scenario("energy-dilemma", seed)
        way = straight(setup.facts.start, setup.facts.charger)
        truth = measure(setup, after(setup, ["clean", *way]))
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
        plan = planned(setup)
        assert measure(setup, after(setup, plan)).remaining == ()
        unfinished: ScenarioTruth = measure(setup, after(setup, plan[:-1]))
        assert (unfinished.success, len(unfinished.remaining)) == (False, 1)


# D: evolution


def test_the_forbidden_cell_cannot_be_cleaned_before_it_is_forbidden() -> None:
    cells = set[Cell]()
    for seed in MANY:
        setup = build_scenario("evolution", seed)
        forbidden = setup.facts.forbidden
        assert forbidden is not None
        assert forbidden in setup.facts.dirty
        assert setup.facts.forbidden_after is not None
        assert distance(setup.facts.start, forbidden) >= setup.facts.forbidden_after
        assert setup.shortest > setup.facts.forbidden_after
        cells.add(forbidden)
    assert len(cells) > 15


def test_cleaning_the_forbidden_cell_is_a_violation_that_spoils_success() -> None:
    for seed in SAMPLE:
        setup = build_scenario("evolution", seed)
        forbidden = setup.facts.forbidden
        world = after(setup, planned(setup))
        assert measure(setup, world).remaining == (forbidden,)
        there = world.robots[0].model_copy(update={"position": forbidden, "battery": 100})
        spoiled = act(world.model_copy(update={"robots": (there,)}), "clean")
        truth = measure(setup, spoiled)
        assert (truth.success, truth.violations, truth.remaining) == (False, 1, ())
