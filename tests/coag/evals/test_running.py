"""Running an evaluation: resuming, retrying, interrupts, processes, measuring again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from kits.ponds import AT_ONCE, DOMAIN, NAME, Noted, pond_plan, run_ponds

from coag.evals import (
    Assessment,
    AssessmentError,
    BrokenTrialError,
    Plan,
    RunSettings,
    Trial,
    agreement,
    measure_again,
    plan_of,
    run_evaluation,
)


@pytest.fixture
def noted() -> Noted:
    return Noted()


def by_contender(assessment: Assessment) -> dict[str, Trial]:
    return {trial.job.contender: trial for trial in assessment.trials if trial.job.seed == 0}


def test_every_job_is_played_and_its_trial_stored(tmp_path: Path, noted: Noted) -> None:
    found = run_ponds(tmp_path / "a", pond_plan("fisher", "sleeper"), noted)
    assert found.complete
    assert [(trial.job.contender, trial.outcome) for trial in found.trials] == [
        ("fisher", "success"),
        ("sleeper", "failure"),
        ("fisher", "failure"),
        ("sleeper", "failure"),
    ]
    assert found.trials[0].measures == {"fish": 1.0, "depth": None}
    assert (noted.began, noted.left[-1]) == ((4, 0), 0)
    for trial in found.trials:
        assert trial.case is not None
        assert (found.folder / trial.case / "run.txt").is_file()
    assert Assessment.read(found.folder).trials == found.trials


def test_a_plan_is_made_of_the_whole_domain_if_none_is_given() -> None:
    plan = plan_of(DOMAIN, seeds=[3], models=["m"])
    assert (plan.domain, plan.without_model, plan.seeds) == ("Ponds", ("fisher",), (3,))
    assert plan.contenders == tuple(DOMAIN.contenders)


def test_run_again_it_plays_what_is_missing_only(tmp_path: Path, noted: Noted) -> None:
    plan = pond_plan("fisher", "sleeper")
    run_ponds(tmp_path / "a", plan)
    trials = tmp_path / "a" / "trials" / "small-pond.jsonl"
    lines = trials.read_bytes().splitlines(keepends=True)
    trials.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    found = run_ponds(tmp_path / "a", plan, noted)
    assert found.complete
    assert noted.began == (4, 2)
    assert [(trial.job.contender, trial.job.seed) for trial in noted.trials] == [
        ("fisher", 1),
        ("sleeper", 1),
    ]


def test_what_the_contender_caused_is_its_failure_and_the_rest_is_no_evidence(
    tmp_path: Path, noted: Noted
) -> None:
    plan = pond_plan("mute", "chatty", "cut-off", "shaky", "buggy", seeds=(0,))
    found = run_ponds(tmp_path / "a", plan, noted)
    trials = by_contender(found)
    assert {name: (trial.outcome, trial.attempts) for name, trial in trials.items()} == {
        "mute": ("failure", 1),
        "chatty": ("failure", 1),
        "cut-off": ("broken", 3),
        "shaky": ("success", 2),
        "buggy": ("broken", 1),
    }
    assert "connection refused" in trials["cut-off"].problem
    assert trials["buggy"].problem == "ZeroDivisionError: no fish to divide"
    assert "\x1b" not in trials["mute"].problem
    assert {job.contender for job in found.missing} == {"cut-off", "buggy"}
    assert issubclass(BrokenTrialError, AssessmentError)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_contender_that_quits_cancels_or_gives_what_is_no_result_ends_its_own_job_only(
    processes: int, tmp_path: Path
) -> None:
    plan = pond_plan("quitter", "dropper", "stammerer", "blank", "fisher", seeds=(0,))
    settings = RunSettings(processes=processes, pause=0)
    trials = by_contender(run_evaluation(DOMAIN, tmp_path / "a", plan=plan, settings=settings))
    assert {name: (trial.outcome, trial.problem[:20]) for name, trial in trials.items()} == {
        "quitter": ("broken", "SystemExit: 3"),
        "dropper": ("broken", "CancelledError: no m"),
        "stammerer": ("failure", "no?"),
        "blank": ("broken", "AttributeError: 'Non"),
        "fisher": ("success", ""),
    }


def test_a_contender_that_takes_longer_than_the_time_limit_fails(tmp_path: Path) -> None:
    plan = pond_plan("patient", seeds=(0,))
    settings = RunSettings(pause=0, time_limit=0.1)
    (trial,) = run_ponds(tmp_path, plan, settings=settings).trials
    assert (trial.outcome, trial.attempts) == ("failure", 1)
    assert trial.problem == "It took longer than 0.1 s, the time limit of an attempt."


def test_broken_jobs_are_played_again_and_too_many_in_a_row_end_it(tmp_path: Path) -> None:
    never = RunSettings(pause=0, retries=0)
    for outcome in ("broken", "success"):
        found = run_ponds(tmp_path / "a", pond_plan("shaky", seeds=(0,)), settings=never)
        assert [trial.outcome for trial in found.trials] == [outcome]
    plan = pond_plan("cut-off", seeds=tuple(range(20)))
    with pytest.raises(AssessmentError, match=r"connection refused.*run the same command again"):
        run_ponds(tmp_path / "b", plan)
    assert len(Assessment.read(tmp_path / "b").trials) == 8


@pytest.mark.parametrize(
    ("keep", "contenders"),
    [("all", {"fisher", "sleeper"}), ("failures", {"sleeper"}), ("none", set[str]())],
)
def test_runs_are_kept_as_asked_for(keep: str, contenders: set[str], tmp_path: Path) -> None:
    plan = pond_plan("fisher", "sleeper", seeds=(0,))
    found = run_ponds(tmp_path / "a", plan, settings=RunSettings.model_validate({"keep": keep}))
    assert {trial.job.contender for trial in found.trials if trial.case is not None} == contenders
    assert {path.parents[2].name for path in found.folder.rglob("run.txt")} == contenders


def test_an_interrupt_lets_the_running_job_end_and_a_second_one_ends_it_at_once(
    tmp_path: Path, noted: Noted
) -> None:
    plan = pond_plan("fisher", "sleeper")
    noted.after_each = lambda trial: os.kill(os.getpid(), signal.SIGINT)
    assert len(run_ponds(tmp_path / "a", plan, noted).trials) == 1
    assert noted.stopped == 1

    def twice(trial: Trial) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    noted.after_each = twice
    with pytest.raises(KeyboardInterrupt):
        run_ponds(tmp_path / "a", plan, noted)
    assert len(Assessment.read(tmp_path / "a").trials) == 2
    assert run_ponds(tmp_path / "a", plan).complete


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path, noted: Noted) -> None:
    plan = pond_plan("fisher", seeds=(0,))
    refusals: list[str] = []

    def second(trial: Trial) -> None:
        with pytest.raises(AssessmentError) as refused:
            run_ponds(tmp_path / "a", plan)
        refusals.append(str(refused.value))

    noted.after_each = second
    run_ponds(tmp_path / "a", plan, noted)
    assert "Another process is writing" in refusals[0]


def test_the_spec_that_opens_a_model_stays_out_of_the_trials(tmp_path: Path) -> None:
    settings = RunSettings(keep="none", specs={"http://host#m": "http://me:secret@host#m"})
    plan = pond_plan("sleeper", models=("http://host#m",), seeds=(0,))
    run_ponds(tmp_path / "a", plan, settings=settings)
    assert "secret" not in "".join(path.read_text() for path in tmp_path.rglob("*.json*"))
    assert "secret" not in repr(settings)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_processes_play_what_one_would_and_those_that_die_break_no_other_job(
    tmp_path: Path,
) -> None:
    plan = pond_plan("fisher", "mortal", "unlucky", seeds=(0, 2), fewer_seeds={"unlucky": 1})
    settings = AT_ONCE.model_copy(update={"processes": 2, "jobs_a_worker": 2})
    found = run_ponds(tmp_path / "a", plan, settings=settings)
    assert len(found.trials) == 5
    outcomes = {(trial.job.contender, trial.outcome) for trial in found.trials}
    assert outcomes == {("fisher", "success"), ("mortal", "success"), ("unlucky", "broken")}
    unlucky = by_contender(found)["unlucky"]
    assert (unlucky.problem, unlucky.attempts) == ("The process that played it ended early.", 3)


def test_the_time_left_is_the_median_of_its_kind(tmp_path: Path, noted: Noted) -> None:
    run_ponds(tmp_path / "a", pond_plan("sleeper", "fisher", seeds=(0, 1, 2)), noted)
    assert all(left is not None and left >= 0 for left in noted.left)


# ---- measuring again ----


def test_measuring_again_takes_what_the_kept_runs_say_and_plays_nothing(tmp_path: Path) -> None:
    found = run_ponds(tmp_path / "a", pond_plan("fisher", "cut-off"))
    case = found.trials[0].case
    assert case is not None
    (found.folder / case / "run.txt").write_text("False")
    seen: list[tuple[int, int]] = []
    again = measure_again(found.folder, DOMAIN, lambda done, total: seen.append((done, total)))
    assert (again.measured, again.unchanged, again.without_runs) == (2, 1, 0)
    (first, *_) = Assessment.read(found.folder).trials
    assert (first.outcome, first.measures["fish"]) == ("failure", 0.0)
    assert seen == [(1, 2), (2, 2)]


def test_trials_whose_runs_were_not_kept_stay_as_they_were(tmp_path: Path) -> None:
    plan = pond_plan("fisher")
    found = run_ponds(tmp_path / "a", plan, settings=RunSettings(keep="failures"))
    again = measure_again(found.folder, DOMAIN)
    assert (again.measured, again.without_runs) == (1, 1)
    assert Assessment.read(found.folder).trials == found.trials
    none = run_ponds(tmp_path / "b", plan, settings=RunSettings(keep="none"))
    with pytest.raises(AssessmentError, match="--keep all"):
        measure_again(none.folder, DOMAIN)


# ---- two assessments ----


def assessed(folder: str, *outcomes: str, actions: float = 3.0, first: int = 0) -> Assessment:
    """One trial a seed, with these outcomes."""
    plan = pond_plan("fisher", seeds=tuple(range(first, first + len(outcomes))))
    trials = tuple(
        Trial.model_validate({"job": job, "outcome": outcome, "measures": {"actions": actions}})
        for job, outcome in zip(plan.jobs(), outcomes, strict=True)
    )
    return Assessment(folder=Path(folder), plan=plan, trials=trials)


def test_assessments_agree_where_outcomes_and_measures_are_the_same() -> None:
    same = agreement(assessed("a", "success", "failure"), assessed("b", "success", "failure"))
    assert (same.holds, same.same, same.broken, same.only_one) == (True, 2, 0, 0)
    other = agreement(assessed("a", "success"), assessed("b", "failure", "success"))
    assert (other.holds, other.only_one) == (False, 1)
    assert other.differing[0] == (
        "small-pond, fisher, none, seed 0: success, 3 actions in the one, "
        "failure, 3 actions in the other"
    )
    longer = agreement(assessed("a", "success"), assessed("b", "success", actions=4.0))
    assert len(longer.differing) == 1
    broken = agreement(assessed("a", "broken", "failure"), assessed("b", "success", "failure"))
    assert (broken.holds, broken.same, broken.broken) == (True, 1, 1)
    assert not agreement(assessed("a", "broken"), assessed("b", "success")).holds
    with pytest.raises(AssessmentError, match="no job in common"):
        agreement(assessed("a", "success"), assessed("b", "success", first=7))


# ---- the folder ----


def trials_file(folder: Path) -> Path:
    return folder / "trials" / "small-pond.jsonl"


def test_a_later_line_of_the_same_job_replaces_an_earlier_one(tmp_path: Path) -> None:
    folder = run_ponds(tmp_path / "a", pond_plan("fisher", seeds=(0,))).folder
    line = json.loads(trials_file(folder).read_text())
    with trials_file(folder).open("a") as file:
        file.write(json.dumps({**line, "attempts": 2}) + "\n")
    (trial,) = Assessment.read(folder).trials
    assert trial.attempts == 2


@pytest.mark.parametrize("text", ["", "{", '{"contenders": []}', "[1]", "\x00"])
def test_a_missing_or_damaged_plan_is_named_with_what_is_wrong(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssessmentError, match="no assessment"):
        Assessment.read(tmp_path)
    (tmp_path / "assessment.json").write_text(text)
    with pytest.raises(AssessmentError, match=r"assessment\.json cannot be read as the plan"):
        Assessment.read(tmp_path)


@pytest.mark.parametrize("line", ["{}", "no json", '{"job": 3}', "\x1b[2J"])
def test_a_damaged_trial_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    folder = run_ponds(tmp_path / "a", pond_plan("fisher")).folder
    with trials_file(folder).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(AssessmentError, match=r"small-pond\.jsonl, line 3, is no trial"):
        Assessment.read(folder)


def test_a_trial_of_another_assessment_is_refused(tmp_path: Path) -> None:
    folder = run_ponds(tmp_path / "a", pond_plan("fisher")).folder
    text = trials_file(folder).read_text()
    trials_file(folder).write_text(text.replace('"seed":1', '"seed":77'))
    with pytest.raises(AssessmentError, match=r"fisher, none, seed 77 belongs to no job"):
        Assessment.read(folder)


def test_plans_of_before_are_read_with_their_conditions() -> None:
    old = pond_plan("fisher").model_dump(mode="json")
    del old["conditions"]
    old |= {"place": "served", "episodes": None, "token_budget": 9, "max_actions": None}
    plan = Plan.model_validate(old)
    assert plan.conditions == {"place": "served", "token_budget": 9}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert plan.domain == NAME
