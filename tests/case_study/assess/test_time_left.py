from __future__ import annotations

from kits.ponds import pond_plan

from case_study.assess import Job, TimeLeft, Trial


def _played(job: Job, took: float, outcome: str = "success") -> Trial:
    return Trial.model_validate({"job": job, "outcome": outcome, "took": took})


def test_nothing_is_said_before_anything_is_known() -> None:
    assert TimeLeft(pond_plan("sleeper").jobs(), size=1).seconds() is None


def test_what_is_left_takes_the_median_of_its_kind_shared_among_those_who_play() -> None:
    jobs = list(pond_plan("sleeper", "mute", seeds=(0, 1, 2)).jobs())
    left = TimeLeft(jobs, size=2)
    for job, took in zip(jobs[:4], (1.0, 10.0, 3.0, 20.0), strict=True):
        left.played(_played(job, took))
    assert left.seconds() == (2.0 + 15.0) / 2


def test_a_kind_not_played_yet_is_guessed_from_its_contender_then_from_all() -> None:
    plan = pond_plan("sleeper", "mute", scenarios=("small-pond", "deep-sea"), seeds=(0,))
    first, *rest = plan.jobs()
    left = TimeLeft([first, *rest], size=1)
    left.played(_played(first, 4.0))
    assert left.seconds() == 3 * 4.0


def test_trials_of_an_earlier_sweep_count_and_broken_ones_do_not() -> None:
    jobs = list(pond_plan("sleeper").jobs())
    past = [_played(jobs[0], 5.0), _played(jobs[0], 500.0, "broken")]
    assert TimeLeft(jobs[1:], size=1, past=past).seconds() == 5.0
