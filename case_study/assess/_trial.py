"""The values of an assessment: what is to be played, what came of it, and what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coag.schema import Value

NO_MODEL = "none"
"""The model of a job whose contender asks none; such a job is played once, for all models."""

Outcome = Literal["success", "failure", "broken"]
Place = Literal["local", "served"]
Keep = Literal["all", "failures", "none"]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
"""What a measure can be: sums of these are finite, too."""
Seed = Annotated[int, Field(ge=0)]
"""What an instance is drawn by."""


class Job(Value):
    """One thing to play: one contender, one scenario, one model, one seed.

    Jobs that differ in the contender alone are a pair: they met the same instance.
    """

    domain: str = "vacuum"
    """Where it is played: `vacuum`, or the import name of another domain."""
    scenario: str
    """One of the domain's scenarios."""
    contender: str
    """One of the domain's contenders, mostly of `case_study.contenders.CONTENDERS`."""
    model: str
    """The model as it is named in public; `none` where the contender asks no model."""
    seed: Seed
    """What the instance is drawn by."""

    @property
    def key(self) -> str:
        """What tells it from every other job of its assessment, for people and as a key."""
        return f"{self.scenario}, {self.contender}, {self.model}, seed {self.seed}"


class Trial(Value):
    """What came of a job."""

    job: Job
    """What was played."""
    outcome: Outcome
    """`broken`: the model or the world failed, not by the contender's fault; it is no evidence."""
    problem: str = ""
    """Why it is broken, or what the contender did to end it; text from outside may be in it."""
    attempts: int = Field(default=1, ge=1)
    """How often it was tried."""
    took: float = Field(default=0.0, ge=0)
    """Seconds of wall time of the last attempt, with building and measuring."""
    measures: dict[str, Number | None] = Field(default_factory=dict[str, Number | None])
    """By name, see `docs/measures.md`; None where a measure has no meaning or no evidence."""
    causes: dict[str, int] = Field(default_factory=dict[str, int])
    """Failed runs by the component that a diagnosis of the trace blames; empty for a success."""
    decided_by: dict[str, int] = Field(default_factory=dict[str, int])
    """How many actions were decided by `model`, `rank` or `only_survivor`."""
    case: str | None = None
    """Folder with the runs, relative to the assessment's; None if they were not kept."""

    @property
    def counts(self) -> bool:
        """Whether it is evidence for or against the contender."""
        return self.outcome != "broken"

    @property
    def success(self) -> bool:
        """Whether it came to what its scenario is about."""
        return self.outcome == "success"


class Resumption(Value):
    """A time at which an assessment was gone on with by other code or on another machine."""

    at: datetime
    versions: dict[str, str]
    machine: str
    trials: int = Field(ge=0)
    """How many trials there were before."""


class Plan(Value):
    """What was asked for, and by which code on what machine."""

    domain: str = "vacuum"
    """Where all of it is played."""
    contenders: tuple[str, ...] = Field(min_length=1)
    """Names, in the order in which they are shown."""
    scenarios: tuple[str, ...] = Field(min_length=1)
    """Names, in the order in which they are shown."""
    models: tuple[str, ...] = Field(min_length=1)
    """Models as they are named in public."""
    seeds: tuple[Seed, ...] = Field(min_length=1)
    """In the order in which they are played."""
    without_model: tuple[str, ...] = ()
    """Those of the contenders that ask no model."""
    fewer_seeds: dict[str, int] = Field(default_factory=dict[str, int])
    """Contenders that play only so many of the seeds, the first ones, since they take long."""
    place: Place = "local"
    """`local`: world and records in the process; `served`: an HTTP world, and Chroma."""
    episodes: int | None = Field(default=None, ge=1)
    """Episodes that are played in a row, in a domain of sequences; None elsewhere."""
    token_budget: int | None = Field(default=None, ge=1)
    """Tokens after which a case ends; None for a bound of actions alone."""
    max_actions: int | None = Field(default=None, ge=1)
    """Bound of actions per episode; None for each scenario's own."""
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    """Of Python and of what decides the results; `sources` is a digest of the code itself."""
    machine: str = ""
    """Class of the machine: system, architecture, cores, memory."""
    command: str = ""
    """The command that began it, and those that added to it."""
    started_at: datetime
    """When it began."""
    resumptions: tuple[Resumption, ...] = ()
    """When it was gone on with by other code or elsewhere: its trials are then mixed."""

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        for what in (self.contenders, self.scenarios, self.models, self.seeds):
            if len(set(what)) < len(what):
                raise ValueError(f"a name or seed stands twice in {what}")
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
