from __future__ import annotations

from typing import Any

import pytest

from case_study.temperaments import (
    CLEAN,
    MOVE,
    NOTE,
    RESPOND,
    SENSE,
    TEMPERAMENTS,
    Facts,
    Intention,
    open_temperament,
)
from coag.errors import UnknownNameError
from vacuum_world.world import Cell, DirtReading, ProximityReading, Reading

NOTHING_BLOCKED = ProximityReading(north=False, east=False, south=False, west=False)


def _reading(at: Cell, battery: int = 100, *, here: bool = False) -> Reading:
    return Reading(
        position=at,
        battery=battery,
        dirty=DirtReading(here=here, north=False, east=False, south=False, west=False),
        blocked=NOTHING_BLOCKED,
        charger=(0, 0),
        grid=(5, 5),
        stranded=False,
    )


def _facts(reading: Reading, dirty: frozenset[Cell] = frozenset(), **more: Any) -> Facts:
    """Facts of which no report and no reading contradicts another."""
    solid = more.get("obstacles", frozenset())
    return Facts(reading=reading, dirty=dirty, left=dirty, solid=solid, **more)


def _first(temperament: str, facts: Facts) -> Intention:
    return TEMPERAMENTS[temperament](facts)[0]


ON_DIRT = _facts(reading=_reading((2, 2), 25, here=True), dirty=frozenset({(2, 2)}))
"""On a dirty cell, four steps from the charger, with charge for the way only."""


def test_sound_goes_to_charge_where_cleaning_would_cost_the_way_home() -> None:
    assert _first("sound", ON_DIRT).action == MOVE


def test_impulsive_cleans_whatever_the_battery_says() -> None:
    assert _first("impulsive", ON_DIRT).action == CLEAN


def test_impulsive_cleans_a_forbidden_cell_and_sound_does_not() -> None:
    reading = _reading((2, 1), here=True)
    facts = _facts(
        reading=reading, dirty=frozenset({(2, 1), (4, 4)}), forbidden=frozenset({(2, 1)})
    )
    assert _first("impulsive", facts).action == CLEAN
    assert all(wish.action != CLEAN for wish in TEMPERAMENTS["sound"](facts))


def test_stubborn_heads_into_what_it_bumped_into_and_knows_ways_round() -> None:
    facts = _facts(
        reading=_reading((0, 2)), dirty=frozenset({(2, 2)}), obstacles=frozenset({(1, 2)})
    )
    wishes = TEMPERAMENTS["stubborn"](facts)
    assert wishes[0].arguments == {"direction": "east"}
    assert {wish.arguments.get("direction") for wish in wishes[1:]} >= {"north", "south"}


def test_sound_goes_round_what_it_knows_to_be_blocked() -> None:
    facts = _facts(
        reading=_reading((0, 2)), dirty=frozenset({(2, 2)}), obstacles=frozenset({(1, 2)})
    )
    assert _first("sound", facts).arguments["direction"] in ("north", "south")


@pytest.mark.parametrize("temperament", TEMPERAMENTS)
def test_fresh_bump_is_noted_first_where_memory_is_offered(temperament: str) -> None:
    facts = _facts(
        reading=_reading((0, 2)),
        dirty=frozenset({(2, 2)}),
        bumped=((0, 2), (1, 2)),
        actions=frozenset({NOTE}),
    )
    note = _first(temperament, facts)
    assert note.action == NOTE
    assert "cell (1, 2) is blocked" in note.arguments["summary"]
    known = frozenset({"cell (1, 2) is blocked"})
    again = Facts(reading=facts.reading, bumped=facts.bumped, actions=facts.actions, noted=known)
    assert _first(temperament, again).action != NOTE


def test_gullible_reaches_for_the_phantom_though_it_is_not_offered() -> None:
    facts = _facts(reading=_reading((1, 1)), dirty=frozenset({(1, 2)}), phantom_tool="pickup_it")
    assert _first("gullible", facts).action == "pickup_it"
    assert _first("sound", facts).action == MOVE


@pytest.mark.parametrize("temperament", TEMPERAMENTS)
def test_nothing_left_to_do_ends_in_an_answer(temperament: str) -> None:
    assert _first(temperament, _facts(reading=_reading((1, 1)))).action == RESPOND


@pytest.mark.parametrize("temperament", ["sound", "gullible"])
def test_who_knows_nothing_or_is_unsure_looks_first(temperament: str) -> None:
    assert _first(temperament, Facts()).action == SENSE
    assert _first(temperament, Facts(reading=_reading((1, 1)), unsure=True)).action == SENSE


def test_unknown_temperament_lists_those_that_exist() -> None:
    with pytest.raises(
        UnknownNameError, match="chance, fallible, gullible, impulsive, noisy, skimming-16"
    ):
        open_temperament("brave")
