"""The values of an assessment and its folder: jobs, trials, the plan, and how they are stored.

```text
DIR/
  assessment.json          the plan: what was asked for, by which code, on what machine
  trials/<scenario>.jsonl  one line a trial; a later line of the same job replaces an earlier one
  cases/...                the runs of trials, where they are kept
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Self, cast
from urllib.parse import quote

from pydantic import Field, ValidationError, model_validator

from coag._util.files import replace_file
from coag._util.locks import LockHeldError, lock_file
from coag._util.text import one_line
from coag._util.validation import first_error
from coag.errors import CoagError
from coag.schema import Value, content_id

NO_MODEL = "none"
"""The model of a job whose contender asks none; such a job is played once, for all models."""

Outcome = Literal["success", "failure", "broken"]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
"""A measure's value; sums of such values are finite, too."""
Seed = Annotated[int, Field(ge=0)]
Condition = str | int | float | bool

PLAN, TRIALS, CASES = "assessment.json", "trials", "cases"
_LONGEST_NAME = 100
"""Characters of a folder's name."""
_OLD_CONDITIONS = ("place", "episodes", "token_budget", "max_actions")
"""Fields of plans that were written before plans had `conditions`."""


class AssessmentError(CoagError):
    """An assessment's folder cannot be used as it is; the message says what to do."""


class BrokenTrialError(AssessmentError):
    """The environment of a trial failed, which is not the contender's fault."""


class Job(Value):
    """One thing to play: one contender, one scenario, one model, one seed.

    Jobs that differ in the contender alone are a pair: they met the same instance.
    """

    domain: str = "vacuum"
    """Name of the domain."""
    scenario: str
    """One of the domain's scenarios."""
    contender: str
    """One of the domain's contenders."""
    model: str = NO_MODEL
    """The model by its public name; `none` where the contender asks no model."""
    seed: Seed
    """What the instance is drawn by."""

    @property
    def key(self) -> str:
        """A text that no other job of the same assessment has."""
        return f"{self.scenario}, {self.contender}, {self.model}, seed {self.seed}"

    @property
    def folder(self) -> str:
        """Folder of the job's runs, relative to the assessment's."""
        parts = (self.scenario, self.contender, self.model, str(self.seed))
        return "/".join((CASES, *map(_folder_name, parts)))


def _folder_name(part: str) -> str:
    """A folder's name for any text; different texts have different names."""
    name = quote(part, safe="").replace("%", "=")
    name = f"=2E{name[1:]}" if name.startswith(".") else name
    return name if len(name) <= _LONGEST_NAME else f"{name[:60]}={content_id(part)}"


class Trial(Value):
    """The result of a job."""

    job: Job
    outcome: Outcome
    """`broken`: the model or the environment failed, not the contender; it is no evidence."""
    problem: str = ""
    """Why it is broken, or how the contender failed; text from outside may be in it."""
    attempts: int = Field(default=1, ge=1)
    """How often it was tried."""
    took: float = Field(default=0.0, ge=0)
    """Seconds of wall time of the last attempt."""
    measures: dict[str, Number | None] = Field(default_factory=dict[str, Number | None])
    """By name; None where a measure has no meaning or no evidence."""
    causes: dict[str, int] = Field(default_factory=dict[str, int])
    """Failed runs by the cause that a diagnosis of the trace names; empty for a success."""
    decided_by: dict[str, int] = Field(default_factory=dict[str, int])
    """How many actions were decided by `model`, `rank` or `only_survivor`."""
    case: str | None = None
    """Folder of the runs, relative to the assessment's; None if they were not kept."""

    @property
    def counts(self) -> bool:
        """Whether it is evidence for or against the contender."""
        return self.outcome != "broken"

    @property
    def success(self) -> bool:
        """Whether the contender succeeded."""
        return self.outcome == "success"


class Resumption(Value):
    """A time at which an assessment was continued by other code or on another machine."""

    at: datetime
    versions: dict[str, str]
    machine: str
    trials: int = Field(ge=0)
    """How many trials there were before."""


class Plan(Value):
    """What was asked for, and by which code on what machine."""

    domain: str = "vacuum"
    contenders: tuple[str, ...] = Field(min_length=1)
    """Names, in the order in which they are shown."""
    scenarios: tuple[str, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(default=(NO_MODEL,), min_length=1)
    """Models by their public names."""
    seeds: tuple[Seed, ...] = Field(min_length=1)
    """In the order in which they are played."""
    without_model: tuple[str, ...] = ()
    """Contenders that ask no model."""
    fewer_seeds: dict[str, int] = Field(default_factory=dict[str, int])
    """Contenders that play only so many of the seeds, the first ones."""
    conditions: dict[str, Condition] = Field(default_factory=dict[str, Condition])
    """Settings of the domain that are the same in all trials, e.g. `token_budget`."""
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    """Of Python and of what decides the results; `sources` is a digest of the code itself."""
    machine: str = ""
    """Class of the machine: system, architecture, cores, memory."""
    command: str = ""
    """The command that began it, and those that added to it."""
    started_at: datetime
    resumptions: tuple[Resumption, ...] = ()
    """When it was continued by other code or elsewhere: its trials are then mixed."""

    @model_validator(mode="before")
    @classmethod
    def _with_conditions(cls, given: Any) -> Any:
        """Reads plans of before, whose conditions were fields."""
        if not isinstance(given, dict) or not set(_OLD_CONDITIONS) & given.keys():
            return cast("object", given)
        fields = dict(cast("dict[str, Any]", given))
        old = {name: fields.pop(name) for name in _OLD_CONDITIONS if name in fields}
        known = {name: value for name, value in old.items() if value is not None}
        return {**fields, "conditions": {**known, **fields.get("conditions", {})}}

    @model_validator(mode="after")
    def _without_repetition(self) -> Self:
        for what in (self.contenders, self.scenarios, self.models, self.seeds):
            if len(set(what)) < len(what):
                raise ValueError(f"a name or seed is twice in {what}")
        return self

    def jobs(self) -> Iterator[Job]:
        """All jobs, pair by pair: every contender of a seed comes before the next seed."""
        for number, seed in enumerate(self.seeds):
            for scenario in self.scenarios:
                for index, model in enumerate(self.models):
                    for contender in self.contenders:
                        if number >= self.fewer_seeds.get(contender, len(self.seeds)):
                            continue
                        asks = contender not in self.without_model
                        if asks or index == 0:
                            yield Job(
                                domain=self.domain,
                                scenario=scenario,
                                contender=contender,
                                model=model if asks else NO_MODEL,
                                seed=seed,
                            )


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A plan, and the trials that there are so far."""

    folder: Path
    """`Trial.case` is relative to it."""
    plan: Plan
    trials: tuple[Trial, ...]
    """In the plan's order."""

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Reads an assessment, finished or not.

        Raises:
            AssessmentError: There is none, or one of its files is damaged or foreign.
        """
        folder = Path(folder)
        plan = read_plan(folder)
        trials = read_trials(folder, plan)
        ordered = tuple(trials[job.key] for job in plan.jobs() if job.key in trials)
        return cls(folder=folder, plan=plan, trials=ordered)

    @property
    def evidence(self) -> tuple[Trial, ...]:
        """All trials but the broken ones."""
        return tuple(trial for trial in self.trials if trial.counts)

    @cached_property
    def missing(self) -> tuple[Job, ...]:
        """Jobs that were not played yet, or broke each time."""
        counted = {trial.job.key for trial in self.evidence}
        return tuple(job for job in self.plan.jobs() if job.key not in counted)

    @property
    def complete(self) -> bool:
        """Whether each job has a trial that counts."""
        return not self.missing

    def of_model(self, model: str) -> tuple[Trial, ...]:
        """The trials of a model, with those of contenders that ask none."""
        return tuple(trial for trial in self.trials if trial.job.model in (model, NO_MODEL))


# ---- the folder ----


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
            f"There is no assessment in {str(folder)!r}: it has no {PLAN}. Give the folder of one, "
            "or run an evaluation into it first."
        )
    try:
        return Plan.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise AssessmentError(
            f"{path} cannot be read as the plan of an assessment: {_reason(error)} "
            "Give another folder, or restore the file."
        ) from error


def write_plan(folder: Path, plan: Plan) -> None:
    """Writes a plan; the one before is replaced at once or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / PLAN, plan.model_dump_json(indent=2) + "\n", durable=False)


def read_trials(folder: Path, plan: Plan) -> dict[str, Trial]:
    """The trials by the key of their job; where there are several of one, the last.

    A last line without an end was cut off by a kill: that trial is not over, and is left out.

    Raises:
        AssessmentError: A line is damaged, or belongs to no job of the plan.
    """
    jobs = {job.key for job in plan.jobs()}
    trials: dict[str, Trial] = {}
    for path in sorted((folder / TRIALS).glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
            try:
                trial = Trial.model_validate_json(line)
            except ValidationError as error:
                raise AssessmentError(
                    f"{path}, line {number}, is no trial: {_reason(error)} Remove the line; its "
                    "job is then played again."
                ) from error
            if trial.job.key not in jobs:
                raise AssessmentError(
                    f"{path}, line {number}: the trial of {trial.job.key} belongs to no job of "
                    f"{PLAN}. Remove the file, or give another folder."
                )
            trials[trial.job.key] = trial
    return trials


def _reason(error: OSError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        reason = first_error(error)
    else:
        reason = error.strerror or type(error).__name__
    return one_line(reason).rstrip(".") + "."


class TrialLog:
    """Appends trials to an assessment; no other process can write to it meanwhile.

    A last line without an end, which a kill left, is removed: its job is played again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Opens it.

        Raises:
            AssessmentError: Another process is writing to the assessment.
        """
        try:
            self._lock = lock_file(self._folder / TRIALS / ".lock", 0)
        except LockHeldError as error:
            raise AssessmentError(
                f"Another process is writing to {str(self._folder)!r}. Wait until it is done, "
                "stop it, or give another folder."
            ) from error
        for path in (self._folder / TRIALS).glob("*.jsonl"):
            text = path.read_bytes()
            end = text.rfind(b"\n") + 1
            if end < len(text):
                with path.open("r+b") as file:
                    file.truncate(end)
        return self

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def append(self, trial: Trial) -> None:
        """Writes a trial; after this, a kill of the process cannot lose it."""
        path = self._folder / TRIALS / f"{_folder_name(trial.job.scenario)}.jsonl"
        with path.open("ab") as file:
            file.write(trial.model_dump_json().encode() + b"\n")
