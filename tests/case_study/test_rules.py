"""The robot's rules: of safety and of good conduct."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.grid import CLEAN, MOVE
from case_study.robot import CONDUCT, CONSTRAINTS, ForbidCleaning, VacuumState, project, value
from coag.schema import Candidate, Constraint, Verdict
from vacuum_world.world import DIRECTIONS, Cell

RULES: dict[str, Constraint] = {**CONSTRAINTS, **CONDUCT, "forbidden": ForbidCleaning((2, 1))}
cells = st.tuples(st.integers(0, 4), st.integers(0, 4))


def _known(position: Cell | None, **known: object) -> VacuumState:
    fields = {"position": position, "battery": 80, "charger": (0, 0), "grid": (5, 5), **known}
    return VacuumState.model_validate(fields)


def _judge(rule: str, action: str, state: VacuumState, way: str = "", **record: str) -> Verdict:
    arguments = {"direction": way} if way else {}
    candidate = Candidate(id="c", action=action, arguments=arguments)
    remembered = {(2, 1): record["record"]} if record else {}
    return RULES[rule](candidate, state, project(action, arguments, state, remembered))


SHUT = {"blocked": dict.fromkeys(DIRECTIONS, True), "trail": ((2, 1), (2, 2))}
BEEN = {"trail": ((2, 1), (2, 2))}
WORK = {"work": ((3, 3),)}
Case = tuple[str, str, str, Cell | None, dict[str, Any], bool]
"""A rule, an action and its direction, where the robot is and what it knows; whether it may."""
CASES: list[Case] = [
    ("keep_charge_to_reach_charger", CLEAN, "", (2, 2), {"battery": 25}, False),
    ("keep_charge_to_reach_charger", CLEAN, "", (2, 2), {"battery": 30}, True),
    ("keep_charge_to_reach_charger", MOVE, "north", (2, 2), {"battery": 20}, True),
    ("keep_charge_to_reach_charger", MOVE, "south", (2, 2), {"battery": 20}, False),
    ("keep_charge_to_reach_charger", CLEAN, "", (4, 4), {"battery": 15}, True),
    ("keep_charge_to_reach_charger", "sense", "", None, {}, True),
    ("keep_charge_to_reach_charger", MOVE, "east", None, {}, False),
    ("no_move_into_known_obstacle", MOVE, "east", None, {}, False),
    ("no_move_into_known_obstacle", MOVE, "north", (2, 2), SHUT, True),
    ("no_move_into_known_obstacle", MOVE, "north", (2, 2), {**SHUT, "trail": ((2, 2),)}, False),
    ("no_move_into_known_obstacle", MOVE, "north", (2, 0), SHUT, False),
    ("forbidden", CLEAN, "", (2, 1), {}, False),
    ("forbidden", CLEAN, "", (1, 2), {}, True),
    ("forbidden", MOVE, "east", (2, 1), {}, True),
    ("forbidden", CLEAN, "", None, {}, False),
    ("clean_only_dirt", CLEAN, "", (2, 2), {}, False),
    ("clean_only_dirt", CLEAN, "", (2, 2), {"dirty": ((2, 2),)}, True),
    ("clean_only_dirt", CLEAN, "", (2, 2), {"work": ((2, 2),)}, True),
    ("clean_only_dirt", CLEAN, "", (2, 2), {"silent": ("dirt",)}, True),
    ("no_going_in_circles", MOVE, "north", (2, 2), BEEN, False),
    ("no_going_in_circles", MOVE, "north", (2, 2), {**BEEN, "dirty": ((2, 1),)}, True),
    ("no_going_in_circles", MOVE, "west", (1, 0), {"trail": ((0, 0), (1, 0))}, True),
    (
        *("no_going_in_circles", MOVE, "east", (0, 0)),
        {"trail": ((0, 1), (1, 0), (0, 0)), "charger": (4, 4)},
        True,
    ),
    ("rest_when_done", MOVE, "east", (2, 2), {"work": ()}, False),
    ("rest_when_done", MOVE, "east", (2, 2), {"work": (), "patrol": True}, True),
    ("rest_when_done", MOVE, "east", (2, 2), {}, True),
    ("look_only_for_news", "sense", "", (2, 2), {"fresh": True}, False),
    ("look_only_for_news", "sense", "", (2, 2), {}, True),
    ("finish_only_when_done", "respond", "", (2, 2), WORK, False),
    ("finish_only_when_done", "respond", "", (2, 2), {**WORK, "done": ((3, 3),)}, True),
    ("finish_only_when_done", "respond", "", (2, 2), {**WORK, "forbidden": ((3, 3),)}, True),
    ("finish_only_when_done", "respond", "", (2, 2), {**WORK, "stranded": True}, True),
    ("finish_only_when_done", "respond", "", (2, 2), {"work": (), "dirty": ((1, 1),)}, False),
    ("finish_only_when_done", "respond", "", (2, 2), {"dirty": ((1, 1),)}, True),
    ("finish_only_when_done", "respond", "", (2, 2), {"work": (), "patrol": True}, False),
    ("finish_only_when_done", "respond", "", (2, 2), {"work": ()}, True),
]


@pytest.mark.parametrize(("rule", "action", "way", "here", "known", "may"), CASES)
def test_each_rule_forbids_what_it_is_for_and_nothing_else(
    rule: str, action: str, way: str, here: Cell | None, known: dict[str, Any], may: bool
) -> None:
    assert _judge(rule, action, _known(here, **known), way).allowed is may


def test_a_verdict_says_what_it_is_based_on() -> None:
    charge = _judge("keep_charge_to_reach_charger", CLEAN, _known((2, 2), battery=25)).reason
    assert "would hold 15" in charge
    assert "takes 20" in charge
    rule, here = "no_move_into_known_obstacle", _known((1, 1), battery=100)
    assert "record 3f9a2c1d" in _judge(rule, MOVE, here, "east", record="3f9a2c1d").reason
    assert "sense first" in _judge(rule, MOVE, _known(None), "east").reason
    assert "(3, 2)" in _judge("no_going_in_circles", MOVE, _known((2, 2), **BEEN), "north").reason
    assert ForbidCleaning((2, 1)).name == "forbid_cleaning_2_1"


@given(start=cells, battery=st.integers(0, 100), dice=st.randoms(use_true_random=False))
def test_who_keeps_the_rule_can_always_come_home(start: Cell, battery: int, dice: Random) -> None:
    state = _known(start, battery=battery)
    if battery < 5 * sum(start):
        return
    wishes = [*((MOVE, way) for way in DIRECTIONS), (CLEAN, "")]
    for _ in range(30):
        kept = [
            project(action, {"direction": way}, state, {})
            for action, way in wishes
            if _judge("keep_charge_to_reach_charger", action, state, way).allowed
        ]
        after = dice.choice(kept)
        assert after is not None
        assert after.position is not None
        assert after.battery >= 5 * sum(after.position)
        assert not after.stranded
        state = after


@given(cells, st.frozensets(cells, max_size=6), st.randoms())
def test_conduct_always_leaves_something_to_do(
    position: Cell, trail: frozenset[Cell], dice: Random
) -> None:
    order = [*trail]
    dice.shuffle(order)
    state = _known(position, trail=(*order, position), work=((4, 4),))
    moves = [all(_judge(name, MOVE, state, way).allowed for name in CONDUCT) for way in DIRECTIONS]
    assert any(moves)


@given(cells, cells)
def test_a_step_nearer_to_the_only_dirt_is_worth_half_a_point(here: Cell, dirt: Cell) -> None:
    state = _known(here, work=(dirt,), battery=95)
    before = value(state)
    for way in DIRECTIONS:
        after = project(MOVE, {"direction": way}, state, {})
        if after is None or after.position in (None, here, state.charger):
            continue
        now = value(after)
        assert before is not None
        assert now is not None
        assert abs(now - before) == 0.5


def test_a_cleaned_cell_is_worth_most_and_with_little_charge_the_charger_is_what_counts() -> None:
    def worth(state: VacuumState, action: str, way: str = "") -> float:
        after = project(action, {"direction": way}, state, {})
        assert after is not None
        return (value(after) or 0) - (value(state) or 0)

    assert worth(_known((2, 2), work=((2, 2), (4, 4)), dirty=((2, 2),)), CLEAN) > 1
    low = _known((2, 0), battery=12, work=((2, 0), (4, 0)), dirty=((2, 0),))
    assert worth(low, MOVE, "west") > 0 > worth(low, MOVE, "east")
