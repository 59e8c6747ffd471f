from __future__ import annotations

from pathlib import Path

from kits.measured import elsewhere, instance, played

from case_study.measures import MEASURES, Statements, Tally, measures_of, measures_table, tally_of
from coag.evals import TRACE_MEASURES
from coag.evals import tally_of as trace_tally_of


def test_every_measure_of_the_world_and_of_the_trace_is_there_and_none_of_nothing() -> None:
    nothing = measures_of([])
    assert list(nothing) == list(MEASURES)
    assert set(TRACE_MEASURES) < set(MEASURES)
    none = {"persistence", "grounding", "learning", "coverage", "energy", "failures_attributed"}
    assert {name for name in none if nothing[name] is not None} == set()
    for measure in MEASURES.values():
        assert measure.meaning.rstrip().endswith(".")


def test_shares_are_over_everything_that_was_counted() -> None:
    first = Tally(statements=Statements(judged=1, true=1))
    second = Tally(statements=Statements(judged=9, true=0))
    assert measures_of([first, second])["grounding"] == 0.1
    total = first + second
    assert Tally.model_validate_json(total.model_dump_json()) == total


def test_a_failed_episode_has_all_actions_as_detour() -> None:
    setup = instance((0, 0), [(2, 0)])
    tallies = [
        tally_of(played(setup, "south", success=False)),
        tally_of(played(setup, "east", "east", "clean")),
    ]
    assert [tally.detours for tally in tallies] == [(9,), (0,)]
    assert measures_of(tallies)["learning"] == 1.0


def test_a_mistake_is_repeated_in_the_same_place_only() -> None:
    setup = instance((0, 0), [])
    again = tally_of(played(setup, "north", "north", "east", "west", "north"))
    assert again.action_counts.repeated_mistakes == 2
    elsewhere_again = tally_of(played(setup, "north", "east", "north"))
    assert elsewhere_again.action_counts.repeated_mistakes == 0


def test_the_worlds_own_measures_are_none_where_no_world_is_known() -> None:
    here = measures_of([tally_of(played(instance((0, 0), [(1, 0)]), "east", "clean"))])
    assert (here["energy"], here["cleans"], here["left_dirty"]) == (15, 1, 0)
    assert here["coverage"] is not None
    trace = trace_tally_of(elsewhere([]))
    there = measures_of([Tally.model_validate(trace.model_dump())])
    assert {there[name] for name in ("energy", "coverage", "violations", "stranded")} == {None}


def test_the_page_of_measures_lists_them_as_they_are() -> None:
    page = Path(__file__).parents[3] / "docs" / "measures.md"
    assert measures_table() in page.read_text(encoding="utf-8")
