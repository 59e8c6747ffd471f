from __future__ import annotations

import json

import pytest
from kits.measured import call, instance, played

from case_study.measures import Statements, tally_of
from vacuum_world.world import Dynamics, Obstacle

SETUP = instance((1, 1), [(1, 1), (3, 3)], obstacles=(Obstacle(cell=(2, 2)),))


@pytest.mark.parametrize(
    ("text", "judged", "true"),
    [
        ("I am at (1, 1). My battery is 100.", 2, 2),
        ("I am at (2, 1). My battery is 40.", 2, 0),
        ("There is dirt at (3, 3). There is dirt at (0, 3).", 2, 1),
        ("Cell (2, 2) is blocked. An obstacle stands at (4, 4).", 2, 1),
        ("Cleaning cell (3, 3) is forbidden.", 1, 0),
        ("There is no dirt left.", 1, 0),
        ("If I move on, my battery will be 95.", 0, 0),
        ("All is well.", 0, 0),
    ],
)
def test_statements_are_held_against_the_world(text: str, judged: int, true: int) -> None:
    found = tally_of(played(SETUP, call(text))).statements
    assert (found.judged, found.true) == (judged, true)


def test_of_a_json_answer_only_what_tells_of_the_present_counts() -> None:
    answer = {"situation": "I am at (1, 1).", "expected_effect": "I am at (4, 4)."}
    assert tally_of(played(SETUP, call(json.dumps(answer)))).statements.judged == 1


def test_truth_is_that_of_the_moment() -> None:
    found = tally_of(
        played(
            SETUP,
            call("I am at (1, 1). There is dirt at (1, 1)."),
            "clean",
            "west",
            call("I am at (0, 1). There is dirt at (1, 1). My battery is 85."),
        )
    ).statements
    assert (found.judged, found.true) == (5, 4)


def test_a_false_statement_counts_as_repeated_once_the_world_has_answered() -> None:
    wrong = call("My battery is 70.")
    assert tally_of(played(SETUP, wrong, wrong)).statements.repeated == 0
    assert tally_of(played(SETUP, wrong, "east", wrong, "west", wrong)).statements.repeated == 2


def test_a_falsehood_that_came_true_in_between_begins_anew() -> None:
    wrong = call("I am at (2, 1).")
    found = tally_of(played(SETUP, wrong, "east", wrong, "west", wrong)).statements
    assert found == Statements(judged=3, true=1, repeated=0)


def test_where_the_world_changes_by_itself_only_place_and_charge_are_judged() -> None:
    moving = instance((1, 1), [(3, 3)], dynamics=Dynamics())
    found = tally_of(played(moving, call("I am at (1, 1). There is dirt at (0, 3)."))).statements
    assert found == Statements(judged=1, true=1)
