"""The folder of a case, and how to go on with one that broke off."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from case_study.measures import CaseResult, EpisodeRecord
from coag._util.files import replace_file
from coag.errors import CoagError, ConfigurationError, ResumeError
from coag.schema import SystemClock, TraceRecord, new_run_id
from coag.tracing import RunFolder, RunInfo, list_runs, read_run, read_trace
from vacuum_world.errors import WorldError
from vacuum_world.world import WorldState

from .request import CaseRequest

_CASE, _RESULT = "case.json", "result.json"
ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class CaseFolder:
    """Everything that a case leaves."""

    path: Path

    @classmethod
    def create(cls, logs: Path, request: CaseRequest) -> Self:
        """Makes the folder of a new case.

        Raises:
            ConfigurationError: It cannot be written to.
        """
        name = f"{request.scenario}-{request.agent}"
        folder = cls(logs / f"case-{new_run_id(SystemClock().now(), name)}")
        try:
            folder.path.mkdir(parents=True)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigurationError(f"{folder.path} cannot be made: {reason}.") from error
        _write(folder.path / _CASE, request)
        return folder

    @classmethod
    def existing(cls, text: str, logs: Path) -> Self:
        """The case of this folder, or of this name in a folder of logs.

        Raises:
            ResumeError: There is no such case.
        """
        for path in (Path(text), logs / text):
            if (path / _CASE).is_file():
                return cls(path)
        known = sorted(path.parent.name for path in logs.glob(f"*/{_CASE}"))
        raise ResumeError(
            f"There is no case {text!r} (a folder with {_CASE}). Known in {logs}: "
            f"{', '.join(known[-10:]) or 'none'}."
        )

    def world(self, episode: int) -> Path:
        """Where the world of an episode is kept: by its server, and at its end as it then is."""
        return self.path / f"world-{episode}.json"

    def request(self) -> CaseRequest:
        """What was asked for.

        Raises:
            ResumeError: The file cannot be read as that.
        """
        return _read(self.path / _CASE, CaseRequest)

    def episode(self, number: int) -> EpisodeRecord | None:
        """What an episode came to; None if it is not over."""
        path = self.path / f"episode-{number}.json"
        return _read(path, EpisodeRecord) if path.is_file() else None

    def episodes(self) -> list[EpisodeRecord]:
        """What the episodes that are over came to, in order."""
        records = (self.episode(number) for number in range(1, self.request().episode_count + 1))
        return [record for record in records if record is not None]

    def keep_world(self, episode: int, world: WorldState) -> None:
        """Keeps the world of an episode that is over, for measures; nobody serves it any more."""
        _write(self.world(episode), world)

    def keep_episode(self, record: EpisodeRecord) -> None:
        """Keeps what an episode came to."""
        _write(self.path / f"episode-{record.episode}.json", record)

    def keep_result(self, result: CaseResult) -> None:
        """Keeps what the case came to."""
        _write(self.path / _RESULT, result)

    def run_of(self, episode: int) -> RunFolder | None:
        """The latest run of an episode, if one has begun; forks of it do not count."""
        begun = [(read_run(run.path), run) for run in list_runs(self.path)]
        runs = [
            (info.started_at, run)
            for info, run in begun
            if info.parent is None and _built_with(info).get("episode") == episode
        ]
        return max(runs, key=lambda each: each[0])[1] if runs else None


def _built_with(info: RunInfo) -> Mapping[str, Any]:
    return info.recipe.arguments if info.recipe else info.configuration


def records_of(run: RunFolder) -> list[TraceRecord]:
    """The records of a run's trace; what is damaged at its end is left out."""
    return [entry.body for entry in read_trace(run.trace_path, lambda problem: None)]


def _write(path: Path, value: BaseModel) -> None:
    replace_file(path, value.model_dump_json(indent=2) + "\n", durable=False)


def _read(path: Path, form: type[ModelT]) -> ModelT:
    try:
        return form.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ResumeError(f"{path} cannot be read: {error}") from error


class BrokenOffError(CoagError):
    """A case was interrupted; the message names it and how to continue it.

    Attributes:
        case: The case's folder.
    """

    def __init__(self, case: CaseFolder, reason: str) -> None:
        self.case = case
        super().__init__(
            f"{reason.rstrip('.')}. The case is kept; continue it: "
            f"case-study run --resume {case.path}"
        )


@contextmanager
def resumable(case: CaseFolder) -> Generator[None]:
    """Names the case in the error that interrupts it.

    Raises:
        BrokenOffError: The model, the log, the memory or the world failed.
    """
    try:
        yield
    except (CoagError, WorldError, OSError) as error:
        raise BrokenOffError(case, str(error)) from error
