from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given

from vacuum_world import last_state_line, state_line
from vacuum_world.world import Obstacle, WorldState, join, sense

MakeWorld = Callable[..., WorldState]


def test_a_robot_senses_its_cell_its_neighbours_and_its_charge(make_world: MakeWorld) -> None:
    world = make_world(
        at=(0, 2),
        battery=40,
        dirty=((0, 2), (1, 2), (4, 4)),
        obstacles=(Obstacle(cell=(0, 1)), Obstacle(cell=(1, 2), visible=False)),
    )
    assert state_line(sense(world, "r1")) == (
        'STATE {"position":[0,2],"battery":40,'
        '"dirty":{"here":true,"north":false,"east":true,"south":false,"west":null},'
        '"blocked":{"north":true,"east":false,"south":false,"west":true},'
        '"charger":[0,0],"grid":[5,5],"stranded":false}'
    )


def test_sensing_changes_nothing(make_world: MakeWorld) -> None:
    world = make_world()
    before = world.model_dump_json()
    sense(world, "r1")
    assert world.model_dump_json() == before


def test_robots_feel_one_another(make_world: MakeWorld) -> None:
    world = join(make_world(at=(0, 0)), "bob").state
    assert sense(world, "r1").blocked.south


def test_the_last_state_line_of_a_text_is_read_back(make_world: MakeWorld) -> None:
    first = sense(make_world(), "r1")
    second = sense(make_world(at=(1, 1)), "r1")
    text = f"{state_line(first)}\nthen\n{state_line(second)}\nSTATE {{broken"
    assert last_state_line(text) == second


@given(st.text())
def test_no_text_breaks_the_reader_of_state_lines(text: str) -> None:
    assert last_state_line(f"STATE {text}") is None
