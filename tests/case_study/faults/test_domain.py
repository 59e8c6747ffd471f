"""What the vacuum world tells a diagnosis."""

from __future__ import annotations

import pytest

from case_study.faults import VacuumDomain
from coag.proof import Circumstances, Claim

DOMAIN = VacuumDomain()
STATE = {
    "position": [1, 1],
    "battery": 50,
    "charger": [0, 0],
    "grid": [5, 5],
    "blocked": {"north": False, "east": True, "south": False, "west": False},
    "dirty": [[1, 2]],
    "clean": [[1, 1], [0, 1], [1, 0]],
    "obstacles": [[2, 1]],
}
GOAL = "Goal: clean all cells with dirt: (1, 2), (4, 4).\n"


def test_facts_are_what_the_sensors_say_now() -> None:
    facts = DOMAIN.facts(STATE)
    assert facts["position"] == [1, 1]
    assert facts["dirty (1, 2)"] is True
    assert facts["felt (2, 1)"] is True
    assert "dirty (4, 4)" not in facts


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I am at (2, 0). My battery is 90. Next: move_agent.", ["position", "battery"]),
        ("Obstacle: moving from (2, 0) failed, cell (2, 1) is blocked.", ["blocked (2, 1)"]),
        ("An obstacle stands at (3, 3).", ["blocked (3, 3)"]),
        ("Rule: cleaning cell (2, 1) is forbidden.", ["forbidden (2, 1)"]),
        ("I must not clean cell (2, 1).", ["forbidden (2, 1)"]),
        ("There is dirt at (3, 4).", ["dirty (3, 4)"]),
        ("Cell (3, 4) is still dirty.", ["dirty (3, 4)"]),
        ("Dirty cells: (1, 3), (2, 2).", ["dirty (1, 3)", "dirty (2, 2)"]),
        ("It is dirty in (3, 4), but clean in (2, 3).", ["dirty (3, 4)"]),
        ("The robot likes (0, 0), and dirty cells come first.", []),
        ("The goal is to clean all cells with dirt: (2, 1), (2, 2).", []),
        ("All cells are clean now.", ["any dirt"]),
    ],
)
def test_claims_are_read_where_the_words_stand_next_to_the_cells(
    text: str, facts: list[str]
) -> None:
    assert [claim.fact for claim in DOMAIN.claims(text)] == facts


@pytest.mark.parametrize(
    ("claim", "remembered", "holds"),
    [
        (Claim(fact="battery", value=50), False, True),
        (Claim(fact="position", value=[2, 2]), False, False),
        (Claim(fact="dirty (1, 2)"), True, True),
        (Claim(fact="dirty (1, 0)"), True, False),
        (Claim(fact="dirty (3, 3)"), True, False),
        (Claim(fact="dirty (4, 4)"), True, True),
        (Claim(fact="blocked (3, 3)"), True, None),
        (Claim(fact="blocked (1, 1)"), True, False),
        (Claim(fact="blocked (3, 3)"), False, False),
        (Claim(fact="blocked (2, 1)"), False, True),
        (Claim(fact="forbidden (1, 2)"), True, False),
        (Claim(fact="forbidden (4, 4)"), True, True),
        (Claim(fact="any dirt", value=False), False, False),
    ],
)
def test_claims_are_judged_by_state_goal_and_rules(
    claim: Claim, remembered: bool, holds: bool | None
) -> None:
    now = Circumstances(state=STATE, goal=GOAL, constraints=("forbid_cleaning_4_4",))
    assert DOMAIN.holds(claim, now, remembered=remembered) is holds


def test_the_way_to_the_goal_is_counted_in_actions() -> None:
    now = Circumstances(state=STATE, goal=GOAL, constraints=("forbid_cleaning_4_4",))
    assert DOMAIN.remaining(now) == 2


def test_there_is_no_way_round_what_is_remembered_as_blocked() -> None:
    walls = tuple(Claim(fact=f"blocked {cell}") for cell in ((1, 2), (0, 2), (2, 2), (1, 3)))
    now = Circumstances(
        state=STATE, goal=GOAL, constraints=("forbid_cleaning_4_4",), recalled=walls
    )
    assert DOMAIN.remaining(now) == float("inf")


def test_dirt_comes_back_only_where_it_was_cleaned() -> None:
    assert DOMAIN.may_change("dirty (1, 1)", False, True, True)
    assert not DOMAIN.may_change("dirty (1, 1)", False, True, False)
    assert not DOMAIN.may_change("dirty (1, 1)", True, False, True)
