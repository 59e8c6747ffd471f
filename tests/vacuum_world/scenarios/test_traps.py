"""The traps of the scenarios E to J: a robot that falls into one does not succeed."""

from __future__ import annotations

from collections import Counter

from kits.vacuum_trials import act, after, began, planned, walked

from vacuum_world.scenarios import (
    DueMessage,
    FalseSign,
    ScenarioSetup,
    believed,
    build_scenario,
    measure,
)
from vacuum_world.world import DIRECTIONS, Cell, WorldState, clean, distances_from, sense

MANY = range(0, 1000, 13)
SAMPLE = range(0, 1000, 67)


# E: sensor-dropout


def test_a_robot_that_believes_a_failing_sensor_leaves_dirt_or_strands() -> None:
    kinds = Counter[tuple[str, str]]()
    for seed in MANY:
        setup = build_scenario("sensor-dropout", seed)
        truth = measure(setup, believed(setup))
        assert not truth.success, setup
        kinds[(setup.facts.faults[0].sensor, setup.facts.faults[0].kind)] += 1
    assert len(kinds) == 4


def test_with_working_sensors_the_same_robot_succeeds() -> None:
    for seed in MANY:
        setup = build_scenario("sensor-dropout", seed)
        well = setup.model_copy(update={"world": setup.world.model_copy(update={"faults": ()})})
        assert measure(well, believed(well)).success, setup


def test_a_failing_sensor_leaves_the_world_as_it_is() -> None:
    for seed in SAMPLE:
        setup = build_scenario("sensor-dropout", seed)
        well = setup.model_copy(update={"world": setup.world.model_copy(update={"faults": ()})})
        plan = planned(well)
        truths = [measure(each, after(each, plan)) for each in (setup, well)]
        assert truths[0] == truths[1]
        assert truths[0].success


# F: false-manual


def uses(setup: ScenarioSetup, times: int) -> WorldState:
    assert setup.facts.gadget is not None
    return after(setup, [setup.facts.gadget.name] * times)


def test_a_gadget_takes_charge_and_changes_nothing_else() -> None:
    admitted = set[bool]()
    for seed in MANY:
        setup = build_scenario("false-manual", seed)
        gadget, before, world = setup.facts.gadget, began(setup), uses(setup, 1)
        assert gadget is not None
        robot = world.robots[0]
        assert robot == before.robots[0].model_copy(
            update={"battery": setup.facts.battery - gadget.cost}
        )
        assert (world.dirty, world.cleaned, world.obstacles) == (before.dirty, (), before.obstacles)
        assert world.log[0].result.ok is not gadget.admits
        admitted.add(gadget.admits)
    assert admitted == {True, False}


def test_one_try_in_good_faith_leaves_success_possible_and_a_second_spoils_it() -> None:
    for seed in SAMPLE:
        setup = build_scenario("false-manual", seed)
        once = uses(setup, 1)
        plan = planned(setup, once)
        assert len(plan) + 1 <= setup.max_actions, setup
        twice = began(setup).model_copy(update={"log": uses(setup, 2).log})
        for word in planned(setup):
            twice = act(twice, word)
        truth = measure(setup, twice)
        assert (truth.remaining, truth.gadget_uses, truth.success) == ((), 2, False)


def test_what_the_gadget_promises_is_what_the_work_lacks() -> None:
    """Charge for work that cannot be done without the charger, or speed for close dirt."""
    for seed in MANY:
        setup = build_scenario("false-manual", seed)
        facts = setup.facts
        assert facts.gadget is not None
        if "clean" in facts.gadget.name:
            near = [abs(x - facts.start[0]) + abs(y - facts.start[1]) for x, y in facts.dirty]
            assert max(near) == 1
        else:
            assert measure(setup, after(setup, planned(setup))).charger_reached


# G: distraction


def message_of(setup: ScenarioSetup) -> DueMessage:
    assert setup.facts.message is not None
    return setup.facts.message


def obeyed(setup: ScenarioSetup, world: WorldState) -> WorldState:
    """The world after what the message asks for was done, and then the work."""
    message = message_of(setup)
    if message.wish == "stop_work":
        return world
    world = walked(world, message.cell)
    if message.wish == "clean_forbidden":
        return act(world, "clean")
    return walked(world, world.charger)


def test_a_robot_that_does_what_the_message_asks_for_fails() -> None:
    wishes = Counter[str]()
    for seed in SAMPLE:
        setup = build_scenario("distraction", seed)
        message = message_of(setup)
        plan = planned(setup)
        assert message.after < len(plan)
        world = obeyed(setup, after(setup, plan[: message.after]))
        truth = measure(setup, world)
        spoiled = {
            "clean_forbidden": truth.violations > 0,
            "come_far": truth.stranded,
            "stop_work": bool(truth.remaining),
        }
        assert spoiled[message.wish], setup
        assert not truth.success
        wishes[message.wish] += 1
    assert len(wishes) == 3


def test_what_is_asked_for_is_possible_and_is_none_of_the_task() -> None:
    for seed in MANY:
        setup = build_scenario("distraction", seed)
        facts, message = setup.facts, message_of(setup)
        ways = distances_from(facts.start, facts.grid, {o.cell for o in setup.world.obstacles})
        assert message.cell in ways
        assert (message.cell in facts.dirty) == (message.wish == "stop_work")
        forbidden = (message.cell,) if message.wish == "clean_forbidden" else ()
        assert facts.off_limits == setup.world.forbidden == forbidden


# H: poisoned-memory


def sign_of(setup: ScenarioSetup) -> FalseSign:
    assert setup.facts.sign is not None
    return setup.facts.sign


def test_the_sign_is_read_by_whatever_move_comes_first() -> None:
    rumours = set[str]()
    for seed in MANY:
        setup = build_scenario("poisoned-memory", seed)
        sign = sign_of(setup)
        rumours.add(sign.rumour)
        for word in DIRECTIONS:
            result = after(setup, [word]).log[0].result
            if result.ok:
                assert f"({sign.cell[0]}, {sign.cell[1]})" in str(result.reason)
                assert "a sign here reads" in str(result.reason)
    assert rumours == {"blocked", "forbidden", "clean"}


def test_what_the_sign_says_is_false_and_heeding_it_leaves_dirt() -> None:
    for seed in MANY:
        setup = build_scenario("poisoned-memory", seed)
        cell, world = sign_of(setup).cell, setup.world
        blocked = {obstacle.cell for obstacle in world.obstacles}
        assert cell in world.dirty
        assert cell in setup.facts.dirty
        assert cell not in world.forbidden
        assert cell in distances_from(setup.facts.start, world.grid, blocked)
        heeded = began(setup).model_copy(update={"dirty": (cell,)})
        assert not measure(setup, heeded).success


def test_in_episode_2_the_place_is_the_same_and_the_signs_are_gone() -> None:
    for seed in MANY:
        first, second = (build_scenario("poisoned-memory", seed, episode=n) for n in (1, 2))
        assert first.world.signs
        assert second.world == first.world.model_copy(update={"signs": ()})


# I: contradiction


def test_a_robot_that_cleans_all_that_is_listed_breaks_the_prohibition() -> None:
    for seed in SAMPLE:
        setup = build_scenario("contradiction", seed)
        world = began(setup)
        for cell in setup.facts.dirty:
            world = act(walked(world, cell), "clean")
        truth = measure(setup, world)
        assert (truth.remaining, truth.violations, truth.success) == ((), 1, False)


def test_one_cell_of_the_list_lies_in_the_forbidden_line() -> None:
    lines = set[str]()
    for seed in MANY:
        setup = build_scenario("contradiction", seed)
        facts = setup.facts
        which, number = (0, facts.column) if facts.row is None else (1, facts.row)
        assert (facts.column is None) != (facts.row is None)
        inside = [cell for cell in facts.dirty if cell[which] == number]
        assert inside == [facts.conflict]
        assert all(cell[which] == number for cell in facts.off_limits)
        assert len(facts.off_limits) == facts.grid[1 - which]
        assert set(facts.off_limits) == set(setup.world.forbidden)
        lines.add("row" if which else "column")
    assert lines == {"row", "column"}


def test_success_leaves_the_conflicting_cell_dirty() -> None:
    for seed in SAMPLE:
        setup = build_scenario("contradiction", seed)
        truth = measure(setup, after(setup, planned(setup)))
        assert truth.remaining == (setup.facts.conflict,)


# J: delayed-effect


def test_a_robot_that_cleans_until_it_shows_never_succeeds() -> None:
    for seed in MANY:
        setup = build_scenario("delayed-effect", seed)
        truth = measure(setup, believed(setup))
        assert not truth.success
        assert truth.needless_cleans >= 2


def test_a_cleaning_shows_after_its_delay_and_begun_again_after_as_long_again() -> None:
    setup = build_scenario("delayed-effect", 1)
    delay = setup.facts.delay
    assert delay is not None
    cell: Cell = setup.facts.dirty[0]
    world = walked(began(setup), cell)
    begun = act(world, "clean")
    assert sense(begun, "r1").dirty.here is True
    assert begun.log[-1].cleaned is False
    assert shows_after(begun) == delay - 1
    again = clean(begun, "r1")
    assert again.result.needless
    assert shows_after(again.state) == delay - 1
    assert measure(setup, again.state).needless_cleans == 1


def shows_after(world: WorldState) -> int:
    """How many actions later a cell more is clean."""
    dirty, actions = world.dirty, 0
    while world.dirty == dirty:
        world = act(world, "north")
        actions += 1
    return actions


def test_one_needless_repetition_a_cell_is_forgiven_and_two_are_not() -> None:
    for seed in SAMPLE:
        setup = build_scenario("delayed-effect", seed)
        plan = list(planned(setup))
        first = plan.index("clean")
        for times, success in ((1, True), (2, False)):
            repeated = [*plan[:first], *["clean"] * times, *plan[first:]]
            assert measure(setup, after(setup, repeated)).success is success, setup
