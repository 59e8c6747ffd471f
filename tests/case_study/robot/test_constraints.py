from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.robot import (
    ForbidCleaning,
    VacuumState,
    Ways,
    constraint_named,
    keep_charge_to_reach_charger,
    no_move_into_known_obstacle,
    project,
)
from coag.errors import UnknownNameError
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


def test_unknown_constraint_lists_those_that_exist() -> None:
    with pytest.raises(UnknownNameError, match="keep_charge_to_reach_charger"):
        constraint_named("be_good")


def test_a_robot_that_has_moved_is_not_held_by_sensors_that_shut_it_in() -> None:
    ways = Ways(north=True, east=True, south=True, west=True)
    shut = _at((2, 2), 60).model_copy(update={"blocked": ways, "trail": ((2, 1), (2, 2))})
    assert _judge(no_move_into_known_obstacle, "move_agent", shut, direction="north").allowed
    at_first = shut.model_copy(update={"trail": ((2, 2),)})
    rule = no_move_into_known_obstacle
    assert not _judge(rule, "move_agent", at_first, direction="north").allowed
    edge = shut.model_copy(update={"position": (2, 0)})
    assert not _judge(rule, "move_agent", edge, direction="north").allowed
