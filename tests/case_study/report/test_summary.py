"""What the trials of an assessment add up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from kits.assessed import drawn, made_up

from case_study.assess import Assessment, Job, Trial
from case_study.report import Panel, Summary, summary_of, summary_schema

FOLDER = Path("nowhere")
FEW = ("rules", "plain", "plain-guarded", "coag-compact", "coag-full", "coag-without-constraints")


def outcome(assessment: Assessment, of: dict[str, Any]) -> Assessment:
    """The same assessment with outcomes by contender: True, False, or None for broken."""
    names = {True: "success", False: "failure", None: "broken"}
    trials = tuple(
        trial.model_copy(update={"outcome": names[of[trial.job.contender]]})
        if trial.job.contender in of
        else trial
        for trial in assessment.trials
    )
    return Assessment(folder=assessment.folder, plan=assessment.plan, trials=trials)


def only_panel(assessment: Assessment) -> Panel:
    """The panel of an assessment with one model."""
    (panel,) = summary_of(assessment).panels
    return panel


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summary_of(made_up(FOLDER, contenders=FEW, seeds=12, broken=0.05))


def test_a_broken_trial_counts_neither_for_nor_against_and_is_listed(summary: Summary) -> None:
    (panel,) = summary.panels
    for row in panel.success:
        assert row.overall.n + row.broken == 12 * 4
    assert len(summary.broken) == sum(row.broken for row in panel.success) > 0
    assert all(line.problem for line in summary.broken)


def test_a_contender_that_asks_no_model_stands_in_the_panel_of_every_model() -> None:
    models = ("scripted:sound", "scripted:noisy")
    told = summary_of(made_up(FOLDER, contenders=("rules", "plain"), seeds=2, models=models))
    assert [panel.model for panel in told.panels] == list(models)
    assert all("rules" in panel.contenders for panel in told.panels)
    assert told.panels[0].success[0].overall == told.panels[1].success[0].overall


def test_of_contenders_that_ask_no_model_it_is_not_said_that_a_model_decided() -> None:
    made = made_up(FOLDER, contenders=("rules", "plain"), seeds=2)
    trials = tuple(one.model_copy(update={"decided_by": {"model": 3}}) for one in made.trials)
    panel = only_panel(Assessment(folder=FOLDER, plan=made.plan, trials=trials))
    decisions = {row.contender: row.decided_by.model for row in panel.success}
    assert decisions["rules"] is None
    assert decisions["plain"] == 1


def test_at_a_token_budget_it_is_said_that_a_turn_may_exceed_it() -> None:
    assessed = made_up(FOLDER, contenders=("plain",), seeds=1)
    plan = assessed.plan.model_copy(update={"token_budget": 8000})
    found = summary_of(Assessment(folder=FOLDER, plan=plan, trials=assessed.trials))
    (sentence,) = found.abstract[0].sentences
    assert "8,000" in sentence
    assert "may exceed" in sentence


def test_with_no_model_asked_there_is_one_panel_that_says_so() -> None:
    panel = only_panel(made_up(FOLDER, contenders=("random", "rules"), seeds=2))
    assert panel.model == "none"
    assert panel.proves.startswith("No model was asked")
    assert panel.budgets == ()


def test_a_rate_has_the_interval_of_its_own_trials(summary: Summary) -> None:
    for row in summary.panels[0].success:
        for rate in (row.overall, *row.by_scenario.values()):
            assert rate.share is not None
            assert rate.interval is not None
            assert rate.interval.low <= rate.share <= rate.interval.high
        assert sum(rate.n for rate in row.by_scenario.values()) == row.overall.n


def test_an_adjusted_p_value_is_never_below_the_plain_one(summary: Summary) -> None:
    (panel,) = summary.panels
    rows = (*panel.compared, *panel.compared_by_scenario)
    told = [(row.result.p, row.result.p_holm) for row in rows if row.result.p is not None]
    assert told
    assert all(adjusted is not None and adjusted >= p for p, adjusted in told)


def test_with_too_few_seeds_it_is_said_why_there_is_no_p_value() -> None:
    panel = only_panel(
        made_up(FOLDER, contenders=("plain", "coag-full"), scenarios=("evolution",), seeds=5)
    )
    (row,) = panel.compared
    assert row.result.p is None
    assert "5 pairs are too few" in row.result.why
    assert any("No claim" in finding and "too few" in finding for finding in panel.findings)


def test_a_part_that_changes_no_outcome_is_said_to_add_nothing() -> None:
    names = ("coag-full", "coag-without-constraints")
    panel = only_panel(outcome(made_up(FOLDER, contenders=names), dict.fromkeys(names, True)))
    (part,) = panel.contributions
    assert part.part == "Constraints"
    assert part.finding == "Nothing: the same outcome in all of 32 pairs."
    assert part.compared.result.interval is not None


def test_a_part_without_which_nothing_succeeds_is_said_to_add_successes() -> None:
    names = ("coag-full", "coag-without-constraints")
    made = made_up(FOLDER, contenders=names, broken=0)
    panel = only_panel(outcome(made, {names[0]: True, names[1]: False}))
    (part,) = panel.contributions
    assert part.finding.startswith("Adds successes: +100 points")


def test_what_each_success_cost_includes_the_trials_that_failed() -> None:
    panel = only_panel(made_up(FOLDER, contenders=("plain",), seeds=10, broken=0))
    (cost,) = panel.costs
    assert cost.tokens is not None
    assert cost.tokens_per_success is not None
    assert cost.tokens_per_success * cost.successes == pytest.approx(cost.tokens * cost.n)


def test_without_a_success_no_cost_per_success_is_told() -> None:
    panel = only_panel(outcome(made_up(FOLDER, contenders=("plain",)), {"plain": False}))
    assert panel.costs[0].tokens_per_success is None


def test_at_equal_tokens_a_success_counts_only_within_the_budget() -> None:
    panel = only_panel(made_up(FOLDER, contenders=("plain", "coag-full"), seeds=12))
    rates = {row.contender: row.overall.share for row in panel.success}
    for curve in panel.budgets:
        shares = list(curve.at.values())
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(rates[curve.contender])
    assert panel.budgets[0].at.keys() == panel.budgets[1].at.keys()


def test_a_trial_that_never_acted_well_again_counts_as_not_adapted() -> None:
    made = made_up(FOLDER, contenders=("plain",), scenarios=("evolution",), seeds=4, broken=0)
    measures = [
        {"adaptation_actions": 2.0, "unadapted": 0.0, "adaptation_seconds": 1.0},
        {"adaptation_actions": 5.0, "unadapted": 1.0, "adaptation_seconds": 9.0},
        {"adaptation_actions": None, "unadapted": 0.0, "adaptation_seconds": None},
        {"adaptation_actions": 1.0, "unadapted": 0.0, "adaptation_seconds": 3.0},
    ]
    trials = tuple(
        trial.model_copy(update={"measures": told})
        for trial, told in zip(made.trials, measures, strict=True)
    )
    panel = only_panel(Assessment(folder=FOLDER, plan=made.plan, trials=trials))
    (curve,) = panel.adaptation
    assert (curve.of, curve.adapted, curve.median, curve.seconds) == (3, 2, 2.0, 2.0)
    assert curve.points == ((1.0, 0.3333), (2.0, 0.6667))


def test_failures_without_a_cause_are_counted_as_such(summary: Summary) -> None:
    for row in summary.panels[0].causes:
        assert row.untold + sum(row.causes.values()) == row.failed


def test_what_ours_failed_and_the_reference_did_comes_first_among_the_failures() -> None:
    names = ("plain", "coag-full")
    told = summary_of(made_up(FOLDER, contenders=names, scenarios=("distraction",), seeds=30))
    marks = [line.reference_won and line.contender == "coag-full" for line in told.failures]
    assert any(marks)
    assert marks == sorted(marks, reverse=True)


def test_a_sweep_that_is_not_finished_says_so_first() -> None:
    made = made_up(FOLDER, contenders=("plain", "coag-full"))
    part = Assessment(folder=FOLDER, plan=made.plan, trials=made.trials[:-3])
    first = summary_of(part).abstract[0].sentences[0]
    assert first == "The sweep is not finished: 3 trials were not played."


def test_the_summary_reads_back_from_its_json(summary: Summary) -> None:
    assert Summary.model_validate_json(summary.model_dump_json()) == summary


def test_the_same_trials_give_the_same_summary() -> None:
    first, second = (summary_of(made_up(FOLDER, contenders=FEW, seeds=3)) for _ in range(2))
    assert first.model_dump_json() == second.model_dump_json()


def test_the_schema_says_what_every_value_is_for() -> None:
    parts = cast("dict[str, dict[str, Any]]", summary_schema()["$defs"])
    assert [name for name, part in parts.items() if not part.get("description")] == []


def test_a_single_trial_is_enough_for_a_summary() -> None:
    made = made_up(FOLDER, contenders=("coag-full",), scenarios=("evolution",), seeds=1)
    job = Job(scenario="evolution", contender="coag-full", model="scripted:fallible", seed=0)
    bare = Trial(job=job, outcome="success")
    panel = only_panel(Assessment(folder=FOLDER, plan=made.plan, trials=(bare,)))
    assert panel.success[0].overall.n == 1
    assert drawn(job) == drawn(job)
