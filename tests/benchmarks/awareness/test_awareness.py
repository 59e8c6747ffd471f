"""The talk that is measured, and what is measured of it."""

import pytest

from benchmarks.awareness import growth, stepping, talked, turn, with_many


def test_the_talk_fits_the_schema_and_states_asks_answers_and_assumes() -> None:
    state = talked(50).state
    assert state.step == 50
    assert len(state.world.entities) == 24
    assert {goal.is_open for goal in state.goals.goals} == {True, False}
    assert state.world.assumptions
    assert turn(3) == turn(3)


def test_many_things_and_goals_are_all_in_the_state() -> None:
    state = with_many(200, 30).state
    assert len(state.world.entities) > 200
    assert len(state.goals.goals) > 30


def test_each_part_of_a_step_has_its_milliseconds() -> None:
    assert set(stepping(talked(3), 3)) == {"observe", "update", "inject", "decay"}


async def test_the_state_is_measured_at_each_mark_with_decay_on_and_off() -> None:
    sizes = await growth(60)
    assert {name: list(of) for name, of in sizes.items()} == {
        "decay on": ["50", "60"],
        "decay off": ["50", "60"],
    }
    assert all(one["kB"] > 1 for of in sizes.values() for one in of.values())


@pytest.mark.parametrize("turns", [0, 1])
def test_a_talk_may_be_short(turns: int) -> None:
    assert talked(turns).state.step == turns
