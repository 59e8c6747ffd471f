"""The robot's rules: of safety and of good conduct."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.robot import (
    CONDUCT,
    ForbidCleaning,
    VacuumState,
    Ways,
    keep_charge_to_reach_charger,
    no_move_into_known_obstacle,
    project,
    value,
)
from coag.schema import Candidate, Constraint, Verdict
from vacuum_world.world import DIRECTIONS, Cell

cells = st.tuples(st.integers(0, 4), st.integers(0, 4))


def _at(position: Cell, battery: int) -> VacuumState:
    return VacuumState(position=position, battery=battery, charger=(0, 0), grid=(5, 5))


def _judge(rule: Constraint, action: str, state: VacuumState, **arguments: str) -> Verdict:
    candidate = Candidate(id="c", action=action, arguments=arguments)
    return rule(candidate, state, project(action, arguments, state, {}))


def test_cleaning_that_would_cost_the_way_home_is_forbidden_with_the_sum() -> None:
    verdict = _judge(keep_charge_to_reach_charger, "clean_current_cell", _at((2, 2), 25))
    assert not verdict.allowed
    assert "would hold 15" in verdict.reason
    assert "takes 20" in verdict.reason
    assert _judge(keep_charge_to_reach_charger, "clean_current_cell", _at((2, 2), 30)).allowed


def test_way_to_the_charger_stays_allowed() -> None:
    assert _judge(
        keep_charge_to_reach_charger, "move_agent", _at((2, 2), 20), direction="north"
    ).allowed
    assert not _judge(
        keep_charge_to_reach_charger, "move_agent", _at((2, 2), 20), direction="south"
    ).allowed


def test_nothing_is_kept_where_the_charger_is_out_of_reach_already() -> None:
    assert _judge(keep_charge_to_reach_charger, "clean_current_cell", _at((4, 4), 15)).allowed


def test_unknown_place_forbids_acting_but_not_sensing() -> None:
    for rule in (keep_charge_to_reach_charger, no_move_into_known_obstacle):
        assert _judge(rule, "sense", VacuumState()).allowed
        verdict = _judge(rule, "move_agent", VacuumState(), direction="east")
        assert not verdict.allowed
        assert "sense first" in verdict.reason


def test_move_into_a_remembered_obstacle_names_the_record() -> None:
    state = _at((1, 1), 100)
    candidate = Candidate(id="c", action="move_agent", arguments={"direction": "east"})
    predicted = project("move_agent", {"direction": "east"}, state, {(2, 1): "3f9a2c1d"})
    verdict = no_move_into_known_obstacle(candidate, state, predicted)
    assert not verdict.allowed
    assert "record 3f9a2c1d" in verdict.reason


def test_forbidden_cell_binds_there_and_nowhere_else() -> None:
    rule = ForbidCleaning((2, 1))
    assert rule.name == "forbid_cleaning_2_1"
    assert not _judge(rule, "clean_current_cell", _at((2, 1), 100)).allowed
    assert _judge(rule, "clean_current_cell", _at((1, 2), 100)).allowed
    assert _judge(rule, "move_agent", _at((2, 1), 100), direction="east").allowed


@given(start=cells, battery=st.integers(0, 100), dice=st.randoms(use_true_random=False))
def test_who_keeps_the_rule_can_always_come_home(start: Cell, battery: int, dice: Random) -> None:
    state = _at(start, battery)
    if battery < 5 * sum(start):
        return
    for _ in range(30):
        wishes: list[tuple[str, dict[str, str]]] = [
            ("move_agent", {"direction": way}) for way in DIRECTIONS
        ]
        wishes.append(("clean_current_cell", {}))
        allowed = [
            predicted
            for action, arguments in wishes
            if (predicted := project(action, arguments, state, {})) is not None
            and keep_charge_to_reach_charger(
                Candidate(id="c", action=action, arguments=arguments), state, predicted
            ).allowed
        ]
        assert allowed
        state = dice.choice(allowed)
        assert state.position is not None
        assert state.battery >= 5 * sum(state.position)
        assert not state.stranded


def test_a_robot_that_has_moved_is_not_held_by_sensors_that_shut_it_in() -> None:
    ways = Ways(north=True, east=True, south=True, west=True)
    shut = _at((2, 2), 60).model_copy(update={"blocked": ways, "trail": ((2, 1), (2, 2))})
    assert _judge(no_move_into_known_obstacle, "move_agent", shut, direction="north").allowed
    at_first = shut.model_copy(update={"trail": ((2, 2),)})
    rule = no_move_into_known_obstacle
    assert not _judge(rule, "move_agent", at_first, direction="north").allowed
    edge = shut.model_copy(update={"position": (2, 0)})
    assert not _judge(rule, "move_agent", edge, direction="north").allowed


def _known(position: Cell, **known: object) -> VacuumState:
    told = {"battery": 80, "charger": (0, 0), "grid": (5, 5), **known}
    return VacuumState(position=position).model_copy(update=told)


def _conduct(rule: str, action: str, state: VacuumState, **arguments: str) -> Verdict:
    candidate = Candidate(id="c", action=action, arguments=arguments)
    return CONDUCT[rule](candidate, state, project(action, arguments, state, {}))


def test_what_is_clean_is_not_cleaned() -> None:
    verdict = _conduct("clean_only_dirt", "clean_current_cell", _known((2, 2)))
    assert not verdict.allowed
    assert "clean already" in verdict.reason


@pytest.mark.parametrize(
    "known", [{"dirty": ((2, 2),)}, {"work": ((2, 2),)}, {"silent": ("dirt",)}]
)
def test_what_is_or_may_be_dirty_is_cleaned(known: dict[str, object]) -> None:
    assert _conduct("clean_only_dirt", "clean_current_cell", _known((2, 2), **known)).allowed


def test_where_it_has_been_it_does_not_go_while_another_way_is_open() -> None:
    verdict = _conduct(
        "no_going_in_circles",
        "move_agent",
        _known((2, 2), trail=((2, 1), (2, 2))),
        direction="north",
    )
    assert not verdict.allowed
    assert "(3, 2)" in verdict.reason


def test_out_of_a_dead_end_it_may_go_back() -> None:
    state = _known((0, 0), trail=((0, 1), (1, 0), (0, 0)), charger=(4, 4))
    assert _conduct("no_going_in_circles", "move_agent", state, direction="east").allowed


def test_the_charger_may_always_be_gone_to() -> None:
    state = _known((1, 0), trail=((0, 0), (1, 0)))
    assert _conduct("no_going_in_circles", "move_agent", state, direction="west").allowed


def test_where_dirt_is_left_it_may_always_go() -> None:
    state = _known((2, 2), trail=((2, 1), (2, 2)), dirty=((2, 1),))
    assert _conduct("no_going_in_circles", "move_agent", state, direction="north").allowed


@pytest.mark.parametrize(
    ("known", "allowed"),
    [({"work": ()}, False), ({"work": (), "patrol": True}, True), ({}, True)],
)
def test_when_all_is_done_it_stays_where_it_is(known: dict[str, object], allowed: bool) -> None:
    state = _known((2, 2), **known)
    assert _conduct("rest_when_done", "move_agent", state, direction="east").allowed is allowed


def test_a_look_is_only_allowed_where_it_brings_news() -> None:
    assert not _conduct("look_only_for_news", "sense", _known((2, 2), fresh=True)).allowed
    assert _conduct("look_only_for_news", "sense", _known((2, 2))).allowed


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
    verdict = _conduct("finish_only_when_done", "respond", _known((2, 2), **known))
    assert verdict.allowed is allowed


@given(st.sampled_from(sorted(CONDUCT)), cells, st.frozensets(cells, max_size=6), st.randoms())
def test_conduct_always_leaves_something_to_do(
    rule: str, position: Cell, trail: frozenset[Cell], dice: Random
) -> None:
    del rule
    order = [*trail]
    dice.shuffle(order)
    state = _known(position, trail=(*order, position), work=((4, 4),))
    moves = [
        all(_conduct(name, "move_agent", state, direction=way).allowed for name in CONDUCT)
        for way in DIRECTIONS
    ]
    assert any(moves)


@given(cells, cells)
def test_a_step_nearer_to_the_only_dirt_is_worth_half_a_point(here: Cell, dirt: Cell) -> None:
    state = _known(here, work=(dirt,), battery=95)
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
    state = _known((2, 2), work=((2, 2), (4, 4)), dirty=((2, 2),))
    after = project("clean_current_cell", {}, state, {})
    assert after is not None
    assert (value(after) or 0) - (value(state) or 0) > 1


def test_with_little_charge_the_charger_is_what_counts() -> None:
    low = _known((2, 0), battery=12, work=((2, 0), (4, 0)), dirty=((2, 0),))
    home = project("move_agent", {"direction": "west"}, low, {})
    away = project("move_agent", {"direction": "east"}, low, {})
    assert home is not None
    assert away is not None
    assert (value(home) or 0) > (value(low) or 0) > (value(away) or 0)
