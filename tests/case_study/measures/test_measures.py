from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.measured import call, deeds, elsewhere, instance, played

from case_study.measures import (
    MEASURES,
    NO_FAILURE_FOUND,
    NOT_ATTRIBUTABLE,
    Blame,
    Deeds,
    Figures,
    Statements,
    Tally,
    causes_of,
    cost_per_success,
    decisions_of,
    measures_of,
    measures_table,
    tally_of,
)
from coag.proof import Cause

COUNTS = st.integers(0, 50)
TALLIES = st.builds(
    Tally,
    figures=st.builds(
        Figures,
        actions=COUNTS,
        prompt_tokens=COUNTS,
        decisions=st.dictionaries(st.sampled_from(["model", "rank", "only_survivor"]), COUNTS),
    ),
    statements=COUNTS.map(lambda n: Statements(judged=n, true=n // 2, repeated=n // 3)),
    deeds=COUNTS.map(
        lambda n: Deeds(
            acted=n, failed=n // 2, setbacks=n // 4, adaptation_actions=n, unadapted=n // 5
        )
    ),
    blame=COUNTS.map(lambda n: Blame(failures=n, attributed=n // 2)),
    detours=st.lists(COUNTS, max_size=3).map(tuple),
)


@settings(max_examples=60)
@given(st.lists(TALLIES, max_size=3))
def test_every_measure_stays_in_its_range_or_is_none(tallies: list[Tally]) -> None:
    found = measures_of(tallies)
    assert list(found) == list(MEASURES)
    for name, value in found.items():
        measure = MEASURES[name]
        assert value is None or measure.low <= value <= measure.high


@settings(max_examples=40)
@given(TALLIES, TALLIES)
def test_tallies_add_up_whatever_the_grouping_and_survive_being_kept(
    first: Tally, second: Tally
) -> None:
    together = first + second
    assert measures_of([first, second]) == measures_of([together])
    assert Tally.model_validate_json(together.model_dump_json()) == together


def test_nothing_measured_is_none_or_zero_and_never_an_error() -> None:
    nothing = measures_of([])
    assert nothing["actions"] == 0
    none = {"persistence", "grounding", "learning", "coverage", "energy", "failures_attributed"}
    assert {name for name in none if nothing[name] is not None} == set()


def test_every_measure_says_what_it_means_in_a_sentence() -> None:
    for measure in MEASURES.values():
        assert measure.meaning.rstrip().endswith((".", "anew."))
        assert measure.unit


def test_shares_are_over_everything_that_was_counted() -> None:
    first = Tally(statements=Statements(judged=1, true=1))
    second = Tally(statements=Statements(judged=9, true=0))
    assert measures_of([first, second])["grounding"] == 0.1


@pytest.mark.parametrize(
    ("detours", "learned"),
    [((4, 0), 1.0), ((4, 2), 0.5), ((0, 0), 0.0), ((0, 5), -1.0), ((3,), None)],
)
def test_learning_is_what_the_second_episode_saves(
    detours: tuple[int, ...], learned: float | None
) -> None:
    assert measures_of([Tally(detours=detours)])["learning"] == learned


def test_a_failed_episode_has_all_actions_as_detour() -> None:
    setup = instance((0, 0), [(2, 0)])
    tallies = [
        tally_of(played(setup, "south", success=False)),
        tally_of(played(setup, "east", "east", "clean")),
    ]
    assert [tally.detours for tally in tallies] == [(9,), (0,)]
    assert measures_of(tallies)["learning"] == 1.0


def test_calls_after_a_cycles_first_are_told_apart_for_the_cache() -> None:
    calls = [
        call(cycle=1, prompt=100, cached=0),
        call(cycle=1, prompt=110, cached=100),
        call(cycle=2, prompt=100, cached=10),
        call(cycle=2, prompt=90, cached=50),
    ]
    found = measures_of([tally_of(elsewhere(calls))])
    assert found["later_cached_share"] == 0.75
    assert found["cached_share"] == 0.4
    assert found["model_seconds"] == 2.0


def test_failures_of_a_plain_run_are_attributed_where_its_trace_can_tell() -> None:
    phantom = [("fly", "", "failed", "Error: tool 'fly' not found")]
    blocked = [("step", "on", "failed", "blocked")]
    told = tally_of(elsewhere(deeds(*phantom), success=False))
    untold = tally_of(elsewhere(deeds(*blocked), success=False))
    silent = tally_of(elsewhere([], success=False))
    assert causes_of([told, untold, silent]) == {
        Cause.INVALID_PROPOSAL: 1,
        NOT_ATTRIBUTABLE: 1,
        NO_FAILURE_FOUND: 1,
    }
    assert measures_of([told, untold, silent])["failures_attributed"] == pytest.approx(1 / 3)


def test_a_failure_on_the_way_to_success_is_a_failure_and_no_failed_run() -> None:
    fine = tally_of(elsewhere(deeds(("step", "on", "failed", "blocked"))))
    assert (fine.blame.failures, fine.blame.failed_runs, causes_of([fine])) == (1, 0, {})


def test_the_worlds_own_measures_are_none_elsewhere() -> None:
    here = measures_of([tally_of(played(instance((0, 0), [(1, 0)]), "east", "clean"))])
    assert (here["energy"], here["cleans"], here["left_dirty"]) == (15, 1, 0)
    assert here["coverage"] is not None
    there = measures_of([tally_of(elsewhere([]))])
    assert {there[name] for name in ("energy", "coverage", "violations", "stranded")} == {None}


def test_decisions_are_counted_by_who_made_them() -> None:
    tallies = [Tally(figures=Figures(decisions={"model": 2})), Tally()]
    assert decisions_of(tallies) == {"model": 2}
    assert measures_of(tallies)["share_model"] == 1.0


def test_a_success_costs_what_all_trials_cost() -> None:
    assert cost_per_success([(10.0, True), (30.0, False), (20.0, True)]) == 30.0
    assert cost_per_success([(10.0, False)]) is None
    assert cost_per_success([]) is None


def test_the_page_of_measures_lists_them_as_they_are() -> None:
    page = Path(__file__).parents[3] / "docs" / "measures.md"
    assert measures_table() in page.read_text(encoding="utf-8")
