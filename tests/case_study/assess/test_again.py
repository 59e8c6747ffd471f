from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kits.ponds import Noted

from case_study.assess import Alone, AssessmentError, How, measure_again, sweep

Begin = Callable[..., Path]


def test_measuring_again_takes_what_the_kept_runs_say_and_plays_nothing(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "cut-off")
    found = sweep(folder, Alone(), at_once, noted)
    case = found.trials[0].case
    assert case is not None
    (folder / case / "run.txt").write_text("False")
    seen: list[tuple[int, int]] = []
    again = measure_again(folder, lambda done, total: seen.append((done, total)))
    assert (again.measured, again.unchanged, again.without_runs) == (2, 1, 0)
    assert again.assessment.trials[0].outcome == "failure"
    assert again.assessment.trials[0].measures["fish"] == 0.0
    assert seen == [(1, 2), (2, 2)]


def test_trials_whose_runs_were_not_kept_stay_as_they_were(pond: Begin, noted: Noted) -> None:
    folder = pond("fisher")
    found = sweep(folder, Alone(), How(keep="failures"), noted)
    again = measure_again(folder)
    assert (again.measured, again.without_runs) == (1, 1)
    assert again.assessment.trials == found.trials


def test_nothing_to_measure_is_said_with_what_would_have_kept_it(pond: Begin, noted: Noted) -> None:
    folder = pond("fisher")
    sweep(folder, Alone(), How(keep="none"), noted)
    with pytest.raises(AssessmentError, match="--keep all"):
        measure_again(folder)
