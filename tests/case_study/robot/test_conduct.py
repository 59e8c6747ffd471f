from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.robot import CONDUCT, VacuumState, project, value
from coag.schema import Candidate, Verdict
from vacuum_world.world import DIRECTIONS, Cell

cells = st.tuples(st.integers(0, 4), st.integers(0, 4))


def _at(position: Cell, **known: object) -> VacuumState:
    told = {"battery": 80, "charger": (0, 0), "grid": (5, 5), **known}
    return VacuumState(position=position).model_copy(update=told)


def _judge(rule: str, action: str, state: VacuumState, **arguments: str) -> Verdict:
    candidate = Candidate(id="c", action=action, arguments=arguments)
    return CONDUCT[rule](candidate, state, project(action, arguments, state, {}))


def test_what_is_clean_is_not_cleaned() -> None:
    verdict = _judge("clean_only_dirt", "clean_current_cell", _at((2, 2)))
    assert not verdict.allowed
    assert "clean already" in verdict.reason


@pytest.mark.parametrize(
    "known", [{"dirty": ((2, 2),)}, {"work": ((2, 2),)}, {"silent": ("dirt",)}]
)
def test_what_is_or_may_be_dirty_is_cleaned(known: dict[str, object]) -> None:
    assert _judge("clean_only_dirt", "clean_current_cell", _at((2, 2), **known)).allowed


def test_where_it_has_been_it_does_not_go_while_another_way_is_open() -> None:
    verdict = _judge(
        "no_going_in_circles", "move_agent", _at((2, 2), trail=((2, 1), (2, 2))), direction="north"
    )
    assert not verdict.allowed
    assert "(3, 2)" in verdict.reason


def test_out_of_a_dead_end_it_may_go_back() -> None:
    state = _at((0, 0), trail=((0, 1), (1, 0), (0, 0)), charger=(4, 4))
    assert _judge("no_going_in_circles", "move_agent", state, direction="east").allowed


def test_the_charger_may_always_be_gone_to() -> None:
    state = _at((1, 0), trail=((0, 0), (1, 0)))
    assert _judge("no_going_in_circles", "move_agent", state, direction="west").allowed


def test_where_dirt_is_left_it_may_always_go() -> None:
    state = _at((2, 2), trail=((2, 1), (2, 2)), dirty=((2, 1),))
    assert _judge("no_going_in_circles", "move_agent", state, direction="north").allowed


@pytest.mark.parametrize(
    ("known", "allowed"),
    [({"work": ()}, False), ({"work": (), "patrol": True}, True), ({}, True)],
)
def test_when_all_is_done_it_stays_where_it_is(known: dict[str, object], allowed: bool) -> None:
    state = _at((2, 2), **known)
    assert _judge("rest_when_done", "move_agent", state, direction="east").allowed is allowed


def test_a_look_is_only_allowed_where_it_brings_news() -> None:
    assert not _judge("look_only_for_news", "sense", _at((2, 2), fresh=True)).allowed
    assert _judge("look_only_for_news", "sense", _at((2, 2))).allowed


@pytest.mark.parametrize(
    ("known", "allowed"),
    [
        ({"work": ((3, 3),)}, False),
        ({"work": ((3, 3),), "done": ((3, 3),)}, True),
        ({"work": ((3, 3),), "forbidden": ((3, 3),)}, True),
        ({"work": ((3, 3),), "stranded": True}, True),
        ({"work": (), "dirty": ((1, 1),)}, False),
        ({"dirty": ((1, 1),)}, True),
        ({"work": (), "patrol": True}, False),
        ({"work": ()}, True),
    ],
)
def test_the_work_ends_when_no_dirt_is_left_that_may_be_cleaned(
    known: dict[str, object], allowed: bool
) -> None:
    verdict = _judge("finish_only_when_done", "respond", _at((2, 2), **known))
    assert verdict.allowed is allowed


@given(st.sampled_from(sorted(CONDUCT)), cells, st.frozensets(cells, max_size=6), st.randoms())
def test_conduct_always_leaves_something_to_do(
    rule: str, position: Cell, trail: frozenset[Cell], dice: Random
) -> None:
    del rule
    order = [*trail]
    dice.shuffle(order)
    state = _at(position, trail=(*order, position), work=((4, 4),))
    moves = [
        all(_judge(name, "move_agent", state, direction=way).allowed for name in CONDUCT)
        for way in DIRECTIONS
    ]
    assert any(moves)


@given(cells, cells)
def test_a_step_nearer_to_the_only_dirt_is_worth_half_a_point(here: Cell, dirt: Cell) -> None:
    state = _at(here, work=(dirt,), battery=95)
    before = value(state)
    for way in DIRECTIONS:
        after = project("move_agent", {"direction": way}, state, {})
        if after is None or after.position in (None, here, state.charger):
            continue
        now = value(after)
        assert before is not None
        assert now is not None
        assert abs(now - before) == 0.5


def test_a_cleaned_cell_is_worth_more_than_any_step() -> None:
    state = _at((2, 2), work=((2, 2), (4, 4)), dirty=((2, 2),))
    after = project("clean_current_cell", {}, state, {})
    assert after is not None
    assert (value(after) or 0) - (value(state) or 0) > 1


def test_with_little_charge_the_charger_is_what_counts() -> None:
    low = _at((2, 0), battery=12, work=((2, 0), (4, 0)), dirty=((2, 0),))
    home = project("move_agent", {"direction": "west"}, low, {})
    away = project("move_agent", {"direction": "east"}, low, {})
    assert home is not None
    assert away is not None
    assert (value(home) or 0) > (value(low) or 0) > (value(away) or 0)
