"""The files of an assessment: its plan, and one line a trial."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from coag._util.files import replace_file
from coag.schema import one_line

from ._errors import AssessmentError
from ._trial import Plan, Trial

PLAN, TRIALS, CASES = "assessment.json", "trials", "cases"


def has_plan(folder: Path) -> bool:
    """Whether there is an assessment in a folder."""
    return (folder / PLAN).is_file()


def read_plan(folder: Path) -> Plan:
    """The plan of an assessment.

    Raises:
        AssessmentError: There is none, or it cannot be read as one.
    """
    path = folder / PLAN
    if not has_plan(folder):
        raise AssessmentError(
            f"There is no assessment in {str(folder)!r}: it has no {PLAN}. Make one: "
            f"case-study assess -o {folder}"
        )
    try:
        return Plan.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise AssessmentError(
            f"{path} cannot be read as the plan of an assessment: {_reason(error)} "
            "Give another folder, or put the file back."
        ) from error


def write_plan(folder: Path, plan: Plan) -> None:
    """Keeps a plan; the one before is replaced at once or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / PLAN, plan.model_dump_json(indent=2) + "\n")


def read_trials(folder: Path, plan: Plan) -> dict[str, Trial]:
    """The trials by the key of their job; where there are several of one, the last.

    A last line that has no end was broken off by a kill: that trial is not over, and is left out.

    Raises:
        AssessmentError: A line is damaged, or belongs to no job of the plan.
    """
    jobs = {job.key for job in plan.jobs()}
    trials: dict[str, Trial] = {}
    for path in sorted((folder / TRIALS).glob("*.jsonl")):
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            trial = _trial(path, number, line)
            if trial.job.key not in jobs:
                raise AssessmentError(
                    f"{path}, line {number}: the trial of {trial.job.key} belongs to no job of "
                    f"{PLAN}. Take the file away, or give another folder."
                )
            trials[trial.job.key] = trial
    return trials


def _trial(path: Path, number: int, line: bytes) -> Trial:
    try:
        return Trial.model_validate_json(line)
    except ValidationError as error:
        raise AssessmentError(
            f"{path}, line {number}, is no trial: {_reason(error)} Take the line away; "
            "its job is then played again."
        ) from error


def _reason(error: OSError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
    else:
        reason = error.strerror or type(error).__name__
    return one_line(reason).rstrip(".") + "."
