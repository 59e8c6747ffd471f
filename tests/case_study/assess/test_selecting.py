from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.assess import (
    contenders_named,
    fewer_seeds_named,
    scenarios_named,
    seeds_named,
)
from coag.errors import ConfigurationError, UnknownNameError

CONTENDERS = ("random", "plain", "coag-full", "coag-full-grounded", "coag-without-reasoning")
SCENARIOS = ("sudden-wall", "energy-dilemma", "open-world-easy", "open-world-hard")


def test_contenders_are_asked_for_by_name_or_group_and_come_in_their_own_order() -> None:
    assert contenders_named("coag-full, random", CONTENDERS) == ("random", "coag-full")
    assert contenders_named("headline", CONTENDERS) == ("random", "plain", "coag-full")
    assert contenders_named("ablations", CONTENDERS) == ("coag-full", "coag-without-reasoning")
    assert contenders_named("all", CONTENDERS) == CONTENDERS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A-B", ("sudden-wall", "energy-dilemma")),
        ("B", ("energy-dilemma",)),
        ("A,open-world-hard", ("sudden-wall", "open-world-hard")),
        ("open-world", ("open-world-easy", "open-world-hard")),
        ("all", SCENARIOS),
    ],
)
def test_scenarios_are_asked_for_by_name_letter_or_beginning(
    text: str, found: tuple[str, ...]
) -> None:
    assert scenarios_named(text, SCENARIOS) == found


@pytest.mark.parametrize("text", ["moon", "A-Z", "B-A", "", "sudden-wall,moon"])
def test_an_unknown_scenario_is_answered_with_what_exists(text: str) -> None:
    with pytest.raises(UnknownNameError, match="energy-dilemma"):
        scenarios_named(text, SCENARIOS)


def test_an_unknown_contender_is_answered_with_what_exists() -> None:
    with pytest.raises(UnknownNameError, match=r"'coag'.*ablations, all, coag-full"):
        contenders_named("coag", CONTENDERS)


def test_seeds_are_a_count_from_zero_or_a_range() -> None:
    assert seeds_named("3") == (0, 1, 2)
    assert seeds_named("6-8") == (6, 7, 8)


@pytest.mark.parametrize("text", ["0", "9-3", "-1", "a", "", "1.5", "1000000", "0-999999999"])
def test_no_seeds_or_absurdly_many_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--seeds"):
        seeds_named(text)


@given(st.text(max_size=12))
def test_any_text_gives_seeds_in_order_or_is_refused(text: str) -> None:
    with suppress(ConfigurationError):
        seeds = seeds_named(text)
        assert seeds == tuple(range(seeds[0], seeds[-1] + 1))


def test_fewer_seeds_name_a_contender_of_the_assessment() -> None:
    assert fewer_seeds_named(["coag-full=3"], CONTENDERS) == {"coag-full": 3}
    with pytest.raises(UnknownNameError):
        fewer_seeds_named(["nobody=3"], CONTENDERS)
    for text in ("coag-full", "coag-full=0", "coag-full=x", "coag-full=-1"):
        with pytest.raises(ConfigurationError, match="coag-full=3"):
            fewer_seeds_named([text], CONTENDERS)
