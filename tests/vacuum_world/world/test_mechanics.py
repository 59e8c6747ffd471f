"""Failing sensors, gadgets, signs and slow cleaning, by the rules alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from vacuum_world.errors import UnknownGadgetError
from vacuum_world.world import (
    FaultKind,
    Gadget,
    SensorFault,
    Sign,
    WorldState,
    clean,
    manuals,
    move,
    sense,
    tick,
    use,
)

MakeWorld = Callable[..., WorldState]
TELEPORT = Gadget(name="teleport", promise="Takes you home.", cost=30, admits=True)


def test_a_failing_sensor_is_well_before_and_after_its_time(make_world: MakeWorld) -> None:
    fault = SensorFault(sensor="dirt", kind="inverted", since=1, until=3)
    world = make_world(dirty=((2, 2),)).model_copy(update={"faults": (fault,)})
    readings: list[bool | None] = []
    for _ in range(4):
        readings.append(sense(world, "r1").dirty.here)
        world = tick(world).state
    assert readings == [True, False, False, True]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("silent", [None] * 4), ("stuck", [False] * 4), ("inverted", [True, False, True, True])],
)
def test_proximity_may_fail_in_three_ways(
    make_world: MakeWorld, kind: FaultKind, expected: list[bool | None]
) -> None:
    fault = SensorFault(sensor="proximity", kind=kind, since=0, until=9)
    world = make_world(at=(4, 2), dirty=((4, 2),)).model_copy(update={"faults": (fault,)})
    blocked = sense(world, "r1").blocked
    assert [blocked.north, blocked.east, blocked.south, blocked.west] == expected
    assert sense(world, "r1").dirty.here is True


def test_outside_the_grid_an_inverted_sensor_still_reads_nothing(make_world: MakeWorld) -> None:
    fault = SensorFault(sensor="dirt", kind="inverted", since=0, until=9)
    world = make_world(at=(0, 0)).model_copy(update={"faults": (fault,)})
    assert sense(world, "r1").dirty.north is None
    assert sense(world, "r1").dirty.south is True


def test_a_gadget_shows_its_promise_and_drains_a_robot_that_cannot_pay(
    make_world: MakeWorld,
) -> None:
    world = make_world(battery=20).model_copy(update={"gadgets": (TELEPORT,)})
    assert [manual.model_dump() for manual in manuals(world)] == [
        {"name": "teleport", "promise": "Takes you home."}
    ]
    step = use(world, "r1", "teleport")
    assert (step.result.result.ok, step.state.robots[0].stranded) == (False, True)
    assert step.state.counters.energy == 20
    assert use(step.state, "r1", "teleport").result.refused


def test_an_unknown_gadget_is_no_action(make_world: MakeWorld) -> None:
    with pytest.raises(UnknownGadgetError, match="'beam' in this world; there are: none"):
        use(make_world(), "r1", "beam")


def test_two_gadgets_of_a_name_make_no_world(make_world: MakeWorld) -> None:
    world = make_world().model_dump(mode="json")
    gadget = TELEPORT.model_dump(mode="json")
    with pytest.raises(ValidationError, match="two gadgets have the same name"):
        WorldState.model_validate({**world, "gadgets": [gadget, gadget]})


def test_a_sign_is_quoted_by_the_move_that_reaches_it_and_by_no_other(
    make_world: MakeWorld,
) -> None:
    world = make_world().model_copy(update={"signs": (Sign(cell=(3, 2), text="Turn back."),)})
    there = move(world, "r1", "east")
    assert there.result.result.ok
    assert there.result.result.reason == 'a sign here reads: "Turn back."'
    assert move(there.state, "r1", "west").result.result.reason is None


def test_a_slow_cleaning_counts_when_it_shows(make_world: MakeWorld) -> None:
    world = make_world(dirty=((2, 2),)).model_copy(update={"clean_delay": 2})
    step = clean(world, "r1")
    assert step.result.result.ok
    assert (step.result.cleaned, step.state.counters.cleans) == (False, 0)
    later = tick(step.state)
    assert (later.state.dirty, later.state.under_way) == ((), ())
    assert later.state.counters.cleans == 1
    assert later.state.cleaned == ((2, 2),)
    assert "cleaned" in [event.kind for event in later.events]
    assert WorldState.model_validate_json(step.state.model_dump_json()) == step.state
