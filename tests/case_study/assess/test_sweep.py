from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from kits.ponds import Noted

from case_study.assess import Alone, Assessment, AssessmentError, How, Trial, sweep

Begin = Callable[..., Path]


def _by_contender(assessment: Assessment, seed: int = 0) -> dict[str, Trial]:
    return {each.job.contender: each for each in assessment.trials if each.job.seed == seed}


def test_a_sweep_plays_every_job_and_keeps_its_trial(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "sleeper")
    found = sweep(folder, Alone(), at_once, noted)
    assert found.complete
    assert [(each.job.contender, each.outcome) for each in found.trials] == [
        ("fisher", "success"),
        ("sleeper", "failure"),
        ("fisher", "failure"),
        ("sleeper", "failure"),
    ]
    assert found.trials[0].measures == {"fish": 1.0, "depth": None}
    assert noted.began == (4, 0)
    assert noted.left[-1] == 0
    for trial in found.trials:
        assert trial.case is not None
        assert (folder / trial.case / "run.txt").is_file()


def test_a_sweep_that_is_begun_again_plays_what_is_missing_only(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "sleeper")
    sweep(folder, Alone(), at_once, noted)
    trials = folder / "trials" / "small-pond.jsonl"
    lines = trials.read_bytes().splitlines(keepends=True)
    trials.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    noted.trials.clear()
    found = sweep(folder, Alone(), at_once, noted)
    assert found.complete
    assert noted.began == (4, 2)
    assert [(each.job.contender, each.job.seed) for each in noted.trials] == [
        ("fisher", 1),
        ("sleeper", 1),
    ]


def test_what_the_contender_caused_is_its_failure_and_what_it_did_not_is_no_evidence(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("mute", "chatty", "cut-off", "shaky", "buggy", seeds=(0,))
    found = sweep(folder, Alone(), at_once, noted)
    told = {name: (trial.outcome, trial.attempts) for name, trial in _by_contender(found).items()}
    assert told == {
        "mute": ("failure", 1),
        "chatty": ("failure", 1),
        "cut-off": ("broken", 3),
        "shaky": ("success", 2),
        "buggy": ("broken", 1),
    }
    problems = {name: trial.problem for name, trial in _by_contender(found).items()}
    assert "connection refused" in problems["cut-off"]
    assert problems["buggy"] == "ZeroDivisionError: no fish to divide"
    assert "\x1b" not in problems["mute"]
    assert {job.contender for job in found.missing} == {"cut-off", "buggy"}


def test_broken_jobs_are_played_again_by_the_next_sweep(pond: Begin, noted: Noted) -> None:
    folder = pond("shaky", seeds=(0,))
    first = sweep(folder, Alone(), How(pause=0, retries=0), noted)
    assert [each.outcome for each in first.trials] == ["broken"]
    again = sweep(folder, Alone(), How(pause=0, retries=0), noted)
    assert [each.outcome for each in again.trials] == ["success"]


def test_trial_after_trial_that_breaks_ends_the_sweep(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("cut-off", seeds=tuple(range(20)))
    with pytest.raises(AssessmentError, match=r"connection refused.*run the same command again"):
        sweep(folder, Alone(), at_once, noted)
    assert len(Assessment.read(folder).trials) == 8


@pytest.mark.parametrize(
    ("keep", "kept"),
    [("all", {"fisher", "sleeper"}), ("failures", {"sleeper"}), ("none", set[str]())],
)
def test_runs_are_kept_as_asked_for(keep: str, kept: set[str], pond: Begin, noted: Noted) -> None:
    folder = pond("fisher", "sleeper", seeds=(0,))
    found = sweep(folder, Alone(), How.model_validate({"keep": keep}), noted)
    told = {trial.job.contender for trial in found.trials if trial.case is not None}
    assert told == kept
    left = {path.parents[2].name for path in folder.rglob("run.txt")}
    assert left == kept


def test_an_interrupt_lets_the_running_job_end_and_the_next_sweep_goes_on(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "sleeper")
    noted.after_each = lambda trial: os.kill(os.getpid(), signal.SIGINT)
    found = sweep(folder, Alone(), at_once, noted)
    assert noted.stopped == 1
    assert len(found.trials) == 1
    noted.after_each = lambda trial: None
    assert sweep(folder, Alone(), at_once, noted).complete


def test_a_second_interrupt_ends_it_at_once_and_loses_no_trial(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "sleeper")

    def twice(trial: Trial) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    noted.after_each = twice
    with pytest.raises(KeyboardInterrupt):
        sweep(folder, Alone(), at_once, noted)
    assert len(Assessment.read(folder).trials) == 1


def test_two_sweeps_do_not_write_into_one_folder(pond: Begin, at_once: How, noted: Noted) -> None:
    folder = pond("fisher")
    refusals: list[str] = []

    def second(trial: Trial) -> None:
        with pytest.raises(AssessmentError) as refused:
            sweep(folder, Alone(), at_once, noted)
        refusals.append(str(refused.value))

    noted.after_each = second
    sweep(folder, Alone(), at_once, noted)
    assert "Another process is sweeping" in refusals[0]


def test_the_spec_that_opens_a_model_stays_out_of_the_trials(pond: Begin, noted: Noted) -> None:
    folder = pond("sleeper", models=("http://host#m",), seeds=(0,))
    how = How(keep="none", specs={"http://host#m": "http://me:secret@host#m"})
    sweep(folder, Alone(), how, noted)
    assert "secret" not in "".join(path.read_text() for path in folder.rglob("*.json*"))
    assert "secret" not in repr(how)
