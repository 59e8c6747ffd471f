"""What a domain is to a sweep: names, and a way to play one job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import Field

from coag.errors import ConfigurationError
from coag.schema import Value, from_import_name

from ._trial import Job, Keep, Number, Place

VACUUM, EPISODES = "vacuum", "episodes"
"""The domains that are there without being imported by name: the vacuum world, and sequences of
episodes in it."""
_AT = {
    VACUUM: "case_study.assess.vacuum:DOMAIN",
    EPISODES: "case_study.assess.episodes:DOMAIN",
}


class How(Value):
    """How the jobs of a sweep are played, wherever they are."""

    place: Place = "local"
    """`local`: world and records in the process; `served`: an HTTP world, and Chroma."""
    token_budget: int | None = None
    """Tokens after which a case ends."""
    max_actions: int | None = None
    """Bound of actions per episode; None for each scenario's own."""
    episodes: int | None = Field(default=None, ge=1)
    """Episodes that are played in a row, where the domain plays sequences; None for one case."""
    keep: Keep = "failures"
    """Of which trials the runs are kept; runs of broken trials are kept unless it is `none`."""
    retries: int = Field(default=2, ge=0)
    """How often a job is tried again after the model or the world failed."""
    pause: float = Field(default=2.0, ge=0)
    """Seconds before the first of these; each further one waits twice as long."""
    specs: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """The spec that opens each model, by its public name; secrets may be in it."""

    @property
    def resumes(self) -> bool:
        """Whether a job that was broken off can be gone on with; else it begins anew."""
        return self.place == "served" or self.episodes is not None

    def spec(self, job: Job) -> str:
        """What opens the model of a job."""
        return self.specs.get(job.model, job.model)


class Played(Value):
    """What a domain tells of a job that was played to its end."""

    success: bool
    problem: str = ""
    """What the contender did to end it early; empty if it did not."""
    measures: dict[str, Number | None] = Field(default_factory=dict[str, Number | None])
    causes: dict[str, int] = Field(default_factory=dict[str, int])
    decided_by: dict[str, int] = Field(default_factory=dict[str, int])
    finished: bool = True
    """Whether it was played to its end; else it is measured as far as it was played."""
    case: str = "."
    """Where its runs are, relative to the job's folder."""


@runtime_checkable
class Domain(Protocol):
    """Where contenders are assessed."""

    @property
    def scenarios(self) -> Sequence[str]:
        """All scenarios."""
        ...

    @property
    def contenders(self) -> Sequence[str]:
        """All contenders that can play in it."""
        ...

    def asks_model(self, contender: str) -> bool:
        """Whether a contender asks a model."""
        ...

    async def play(self, job: Job, how: How, room: Path) -> Played:
        """Plays a job.

        Args:
            job: What to play.
            how: How.
            room: The job's own folder. Where `how.resumes`, an earlier attempt may have left a
                case there that can be gone on with; else it is new and empty.

        Raises:
            ModelAnswerError: The model's answer stayed unusable; the contender's failure.
            CoagError: The model, the records or the log failed; no evidence.
            WorldError: The world failed; no evidence.
        """
        ...

    def measure_again(self, job: Job, room: Path) -> Played:
        """The same of a job whose runs were kept, from their traces alone.

        A contender that brought its end on itself has left a job that is not finished: what is
        there is measured.

        Raises:
            CoagError: A run cannot be read.
        """
        ...


def domain_named(name: str) -> Domain:
    """The domain of this name: `vacuum`, `episodes`, or `module:name` of another.

    Raises:
        ConfigurationError: There is none, or what stands there is no domain.
    """
    if name not in _AT and ":" not in name:
        raise ConfigurationError(
            f"There is no domain {name!r}: it is {VACUUM!r}, {EPISODES!r}, or the import name of "
            "another, such as 'package.module:DOMAIN'."
        )
    found = from_import_name(_AT.get(name, name))
    if not isinstance(found, Domain):
        raise ConfigurationError(
            f"{name!r} is no domain: it lacks one of scenarios, contenders, asks_model, play and "
            "measure_again."
        )
    return found
