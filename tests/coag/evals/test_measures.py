"""Measures of a trace: calls, actions, causes, and how they add up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.measured import Deed, call, deeds, elsewhere

from coag.evals import (
    TRACE_MEASURES,
    Figures,
    TraceTally,
    causes_of,
    cost_per_success,
    decisions_of,
    figures_of,
    measures_of,
    measures_table,
    tally_of,
)
from coag.evals.measures import NO_FAILURE_FOUND, NOT_ATTRIBUTABLE, ActionCounts, Blame
from coag.proof import Cause
from coag.schema import (
    ModelCall,
    Note,
    OutputMode,
    Phase,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
WORKS: Deed = ("step", "on", "done", "")
FAILS: Deed = ("step", "on", "failed", "")
COUNTS = st.integers(0, 50)
TALLIES = st.builds(
    TraceTally,
    figures=st.builds(
        Figures,
        actions=COUNTS,
        prompt_tokens=COUNTS,
        belief_error=st.none() | COUNTS,
        decisions=st.dictionaries(st.sampled_from(["model", "rank", "only_survivor"]), COUNTS),
    ),
    deeds=COUNTS.map(
        lambda n: ActionCounts(
            acted=n, failed=n // 2, setbacks=n // 4, adaptation_actions=n, unadapted=n // 5
        )
    ),
    blame=COUNTS.map(lambda n: Blame(failures=n, attributed=n // 2)),
    detours=st.lists(COUNTS, max_size=3).map(tuple),
)


@settings(max_examples=60)
@given(st.lists(TALLIES, max_size=3))
def test_every_measure_stays_in_its_range_or_is_none(tallies: list[TraceTally]) -> None:
    found = measures_of(tallies)
    assert list(found) == list(TRACE_MEASURES)
    for name, value in found.items():
        measure = TRACE_MEASURES[name]
        assert value is None or measure.low <= value <= measure.high


@settings(max_examples=40)
@given(TALLIES, TALLIES)
def test_tallies_add_up_whatever_the_grouping_and_survive_being_stored(
    first: TraceTally, second: TraceTally
) -> None:
    together = first + second
    assert measures_of([first, second]) == measures_of([together])
    assert TraceTally.model_validate_json(together.model_dump_json()) == together
    errors = [one.figures.belief_error for one in (first, second)]
    known = [error for error in errors if error is not None]
    assert together.figures.belief_error == max(known, default=None)


def test_nothing_measured_is_none_or_zero_and_every_measure_has_a_meaning() -> None:
    nothing = measures_of([])
    assert nothing["actions"] == 0
    assert {nothing[name] for name in ("learning", "failures_attributed", "share_model")} == {None}
    for measure in TRACE_MEASURES.values():
        assert measure.meaning.rstrip().endswith(".")
        assert measure.unit
    assert "| `tokens` | Tokens that the model read and wrote" in measures_table()


@pytest.mark.parametrize(
    ("detours", "learned"),
    [((4, 0), 1.0), ((4, 2), 0.5), ((0, 0), 0.0), ((0, 5), -1.0), ((3,), None)],
)
def test_learning_is_what_the_second_episode_saves(
    detours: tuple[int, ...], learned: float | None
) -> None:
    assert measures_of([TraceTally(detours=detours)])["learning"] == learned


def test_calls_after_a_cycles_first_are_counted_apart_for_the_cache() -> None:
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


def test_failures_are_attributed_where_the_trace_shows_the_cause() -> None:
    phantom = [("fly", "", "failed", "Error: tool 'fly' not found")]
    blocked = [("step", "on", "failed", "blocked")]
    tallies = [
        tally_of(elsewhere(deeds(*phantom), success=False)),
        tally_of(elsewhere(deeds(*blocked), success=False)),
        tally_of(elsewhere([], success=False)),
    ]
    assert causes_of(tallies) == {
        Cause.INVALID_PROPOSAL: 1,
        NOT_ATTRIBUTABLE: 1,
        NO_FAILURE_FOUND: 1,
    }
    assert measures_of(tallies)["failures_attributed"] == pytest.approx(1 / 3)
    fine = tally_of(elsewhere(deeds(("step", "on", "failed", "blocked"))))
    assert (fine.blame.failures, fine.blame.failed_runs, causes_of([fine])) == (1, 0, {})


def test_decisions_are_counted_by_who_made_them() -> None:
    tallies = [TraceTally(figures=Figures(decisions={"model": 2})), TraceTally()]
    assert decisions_of(tallies) == {"model": 2}
    assert measures_of(tallies)["share_model"] == 1.0


def test_a_success_costs_what_all_trials_cost() -> None:
    assert cost_per_success([(10.0, True), (30.0, False), (20.0, True)]) == 30.0
    assert cost_per_success([(10.0, False)]) is None
    assert cost_per_success([]) is None


# ---- figures ----


def model_call(number: int, phase: Phase | None, error: str | None = None) -> ModelCall:
    return ModelCall(
        id=f"call-{number}",
        at=AT,
        cycle=1,
        phase=phase,
        model="m",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=(),
        raw="?",
        usage=TokenUsage(),
        error=error,
    )


def test_an_answer_counts_as_unusable_once_and_only_if_it_stayed_so() -> None:
    records: list[TraceRecord] = [
        model_call(1, Phase.REASONING, "not JSON"),
        model_call(2, Phase.REASONING),
        model_call(3, Phase.PROPOSAL, "not JSON"),
        model_call(4, Phase.PROPOSAL, "not JSON"),
        Note(at=AT, cycle=1, about="fallback", text="The model proposed nothing usable."),
        Note(at=AT, cycle=1, about="repair", text="A comma."),
    ]
    figures = figures_of(records, ())
    assert (figures.model_calls, figures.questions, figures.unusable_answers) == (4, 2, 1)
    plain = figures_of([model_call(1, None), model_call(2, None)], None)
    assert (plain.questions, plain.unusable_answers, plain.phantom_proposals) == (2, 0, 0)


def test_the_time_in_which_no_process_played_is_left_out() -> None:
    def after(seconds: int) -> datetime:
        return AT + timedelta(seconds=seconds)

    records: list[TraceRecord] = [
        TurnStart(at=after(0), turn=1, cycle=1),
        Note(at=after(4), cycle=1, about="memory", text="The last that was written."),
        Note(at=after(3_604), cycle=1, about="resume", text="Another process goes on."),
        TurnEnd(at=after(3_610), turn=1, cycle=2, response="Done.", reason="answered"),
        Note(at=after(9_000), cycle=2, about="resume", text="Between turns nothing is counted."),
        TurnStart(at=after(9_001), turn=2, cycle=2),
        TurnEnd(at=after(9_003), turn=2, cycle=3, response="Done.", reason="answered"),
    ]
    assert figures_of(records, ()).seconds == 4 + 6 + 2


# ---- actions ----


def counts(*done: Deed, **more: object) -> ActionCounts:
    return tally_of(elsewhere(deeds(*done), **more)).action_counts


def test_what_would_fail_again_is_unsound_and_looking_does_not_count() -> None:
    found = counts(WORKS, FAILS, ("step", "up", "passing", ""), ("step", "up", "unknown", ""))
    assert (found.acted, found.failed) == (4, 1)
    looked = counts(FAILS, ("look", "", "done", ""), WORKS)
    assert (looked.acted, looked.adaptation_actions) == (2, 1)


@pytest.mark.parametrize(
    ("done", "repeated"),
    [
        ((FAILS, FAILS, FAILS), 2),
        ((FAILS, ("step", "up", "failed", ""), FAILS), 1),
        ((FAILS, ("step", "up", "done", ""), FAILS), 0),
        ((("step", "on", "passing", ""), FAILS), 0),
    ],
)
def test_the_same_call_again_before_anything_worked_is_a_repeated_mistake(
    done: tuple[Deed, ...], repeated: int
) -> None:
    assert counts(*done).repeated_mistakes == repeated


def test_adaptation_counts_actions_and_seconds_to_the_next_that_works_or_to_the_end() -> None:
    found = counts(WORKS, FAILS, FAILS, FAILS, WORKS, FAILS, WORKS)
    assert (found.setbacks, found.unadapted) == (2, 0)
    assert (found.adaptation_actions, found.adaptation_seconds) == (3 + 1, 6 + 2)
    never = counts(FAILS, FAILS, FAILS)
    assert (never.setbacks, never.unadapted, never.adaptation_actions) == (1, 1, 2)
    assert counts(WORKS, FAILS).setbacks == 0
    assert counts() == ActionCounts()


def test_what_does_not_exist_is_a_false_affordance_and_a_false_promise_from_the_second_time() -> (
    None
):
    fly: Deed = ("fly", "", "failed", "")
    assert counts(fly, fly).false_affordances == 2
    assert counts(fly, fly, tools=None).false_affordances == 0
    gadget: Deed = ("charge", "", "done", "")
    known = {"gadgets": frozenset({"charge"})}
    assert counts(gadget, WORKS, **known).false_affordances == 0
    assert counts(gadget, gadget, gadget, **known).false_affordances == 2
