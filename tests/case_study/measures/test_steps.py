from __future__ import annotations

import random
from typing import Any

import pytest
from kits.measured import instance, played

from case_study.measures import Episode, Steps, Tally, measures_of, tally_of
from vacuum_world.world import DIRECTIONS, Dynamics, ForbidAfterActions, Obstacle


def _steps(episode: Episode) -> Steps:
    return tally_of(episode).steps


def _persistence(*episodes: Episode) -> float | None:
    return measures_of([Tally(steps=_steps(each)) for each in episodes])["persistence"]


def test_an_agent_that_goes_straight_for_its_work_persists_fully() -> None:
    episode = played(instance((0, 0), [(2, 0)]), "east", "east", "clean")
    steps = _steps(episode)
    assert (steps.judged, steps.on_plan) == (3, 3)
    assert steps.by_chance == pytest.approx(0.6)
    assert _persistence(episode) == 1.0


def test_an_agent_that_wanders_off_is_worse_than_chance() -> None:
    wandering = _persistence(played(instance((2, 2), [(2, 0)]), "south", "south", "east"))
    assert wandering is not None
    assert wandering < 0


def test_actions_by_chance_come_to_nothing() -> None:
    dice = random.Random(4)
    episodes: list[Episode] = []
    for _ in range(60):
        dirty = [(dice.randrange(5), dice.randrange(1, 5)) for _ in range(2)]
        steps = [dice.choice((*DIRECTIONS, "clean")) for _ in range(8)]
        episodes.append(played(instance((2, 0), [*dict.fromkeys(dirty)]), *steps))
    assert _persistence(*episodes) == pytest.approx(0, abs=0.1)


def test_where_charge_is_short_the_way_to_the_charger_is_the_plan() -> None:
    setup = instance((2, 0), [(2, 0), (3, 0)], battery=15)
    home = _steps(played(setup, "west", "west"))
    assert (home.judged, home.on_plan) == (2, 2)
    lured = _steps(played(setup, "clean"))
    assert (lured.judged, lured.on_plan) == (1, 0)


def test_some_work_may_come_before_charging_and_the_rest_after_it() -> None:
    setup = instance((2, 0), [(2, 0), (4, 4)], battery=30)
    steps = _steps(played(setup, "clean", "west", "west", *["south"] * 4, *["east"] * 4, "clean"))
    assert (steps.judged, steps.on_plan) == (12, 12)


def test_a_robot_beyond_help_is_not_judged() -> None:
    steps = _steps(played(instance((4, 4), [(3, 4)], battery=15), "west"))
    assert steps.judged == 0


def test_work_that_is_done_leaves_nothing_to_judge() -> None:
    episode = played(instance((1, 1), [(1, 1)]), "clean", "east", "west")
    assert _steps(episode).judged == 1
    assert _persistence(played(instance((1, 1), []), "east")) is None


def test_running_into_what_stands_there_is_off_plan_and_finding_it_out_is_not() -> None:
    wall: dict[str, Any] = {"obstacles": (Obstacle(cell=(2, 1)),)}
    known = _steps(played(instance((1, 1), [(3, 1)], **wall), "east", "south"))
    assert (known.judged, known.on_plan) == (2, 1)


def test_a_forbidden_cell_is_no_work_from_the_moment_it_is_forbidden() -> None:
    setup = instance(
        (1, 2), [(1, 1), (1, 3)], triggers=(ForbidAfterActions(cell=(1, 1), actions=1),)
    )
    facts = setup.facts.model_copy(update={"forbidden": (1, 1), "forbidden_after": 1})
    setup = setup.model_copy(update={"facts": facts})
    steps = _steps(played(setup, "north", "clean", "south"))
    assert (steps.judged, steps.on_plan) == (3, 2)


@pytest.mark.parametrize(
    "setup",
    [
        instance((1, 1), [(2, 2)], dynamics=Dynamics()),
        instance((1, 1), [(x, y) for x in range(3) for y in range(3)]),
    ],
)
def test_what_cannot_be_judged_is_not(setup: Any) -> None:
    assert _steps(played(setup, "east")) == Steps()


def test_a_second_try_at_a_cleaning_is_as_good_as_the_first() -> None:
    setup = instance(
        (1, 1),
        [(1, 1)],
        dynamics=Dynamics(obstacle_mobility=0, dirt_entropy=0, clean_uncertainty=0),
    )
    assert _steps(played(setup, "clean")).on_plan == 1
