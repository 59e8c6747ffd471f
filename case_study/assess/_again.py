"""Measuring a finished assessment once more, from the runs that were kept, with no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ._assessment import Assessment
from ._domain import domain_named
from ._errors import AssessmentError
from ._log import TrialLog
from ._playing import room_of, trial_of
from ._trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAgain:
    """What came of measuring again."""

    assessment: Assessment
    """With the measures as they are now."""
    measured: int
    """Trials whose runs were there."""
    unchanged: int
    """Those of them whose measures came out as they were."""
    without_runs: int
    """Trials whose runs were not kept; they stay as they were measured."""


def _unseen(done: int, total: int) -> None:
    """Nobody looks."""


def measure_again(folder: Path, on_progress: Callable[[int, int], None] = _unseen) -> MeasuredAgain:
    """Measures each trial again whose runs were kept, and writes down what came of it.

    Broken trials are no evidence and are left alone.

    Args:
        folder: The assessment's folder.
        on_progress: Told how many trials are done, of how many.

    Raises:
        AssessmentError: There is no assessment, none of its runs was kept, or another process is
            at it.
        CoagError: A run cannot be read.
    """
    measured = unchanged = 0
    with TrialLog(folder) as log:
        before = Assessment.read(folder)
        kept = [trial for trial in before.trials_that_count if trial.case is not None]
        if not kept:
            raise AssessmentError(
                f"No runs were kept in {str(folder)!r}, so that nothing can be measured again. "
                "Run it with --keep all."
            )
        for number, trial in enumerate(kept, start=1):
            again = _measured(trial, folder)
            if again == trial:
                unchanged += 1
            else:
                log.append(again)
            measured += 1
            on_progress(number, len(kept))
    return MeasuredAgain(
        assessment=Assessment.read(folder),
        measured=measured,
        unchanged=unchanged,
        without_runs=len(before.trials_that_count) - measured,
    )


def _measured(trial: Trial, folder: Path) -> Trial:
    room = folder / room_of(trial.job)
    played = domain_named(trial.job.domain).measure_again(trial.job, room)
    if trial.success and not played.finished:
        raise AssessmentError(
            f"The trial of {trial.job.key} succeeded, but what lies in {room} was not played to "
            "its end. Put it back, or take the line out of the trials."
        )
    if trial.problem and not played.problem:
        played = played.model_copy(update={"problem": trial.problem, "success": False})
    return trial_of(trial.job, played, attempts=trial.attempts, took=trial.took)
