"""The folder of a case, the memory in it, and how to continue one that was interrupted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Self, TypeVar

from autogen_core.memory import Memory
from pydantic import BaseModel, ValidationError

from case_study.baseline import open_recall
from case_study.measures import EpisodeRecord
from coag._util.files import replace_file
from coag.agent import CoagAgent, MemoryArgument
from coag.errors import CoagError, ConfigurationError, ResumeError
from coag.memory import LongTermMemory, Procedure, seed_procedures
from coag.schema import SystemClock, TraceRecord, new_run_id
from coag.store import open_store
from coag.tracing import RunFolder, list_runs, read_run, read_trace
from vacuum_world.errors import WorldError

from .request import CaseRequest

_CASE = "case.json"
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
        folder.keep(_CASE, request)
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

    def keep(self, name: str, value: BaseModel) -> None:
        """Writes a file of the case, whole or not at all."""
        replace_file(self.path / name, value.model_dump_json(indent=2) + "\n", durable=False)

    def world(self, episode: int) -> Path:
        """Where the world of an episode is kept: by its server, and at its end as it then is."""
        return self.path / f"world-{episode}.json"

    def request(self) -> CaseRequest:
        """What was asked for.

        Raises:
            ResumeError: The file cannot be read as that.
        """
        return self._read(_CASE, CaseRequest)

    def episode(self, number: int) -> EpisodeRecord | None:
        """The outcome of an episode; None if it is not over."""
        name = f"episode-{number}.json"
        return self._read(name, EpisodeRecord) if (self.path / name).is_file() else None

    def episodes(self) -> list[EpisodeRecord]:
        """The outcomes of the episodes that are over, in order."""
        records = map(self.episode, range(1, self.request().episode_count + 1))
        return [record for record in records if record is not None]

    def run_of(self, episode: int) -> RunFolder | None:
        """The latest run of an episode, if one has begun; forks of it do not count."""
        begun = [(read_run(run.path), run) for run in list_runs(self.path)]
        own = [
            (info.started_at, run)
            for info, run in begun
            if info.parent is None
            and (info.recipe.arguments if info.recipe else info.configuration).get("episode")
            == episode
        ]
        return max(own, key=itemgetter(0))[1] if own else None

    def _read(self, name: str, form: type[ModelT]) -> ModelT:
        try:
            return form.model_validate_json((self.path / name).read_bytes())
        except (OSError, ValidationError) as error:
            raise ResumeError(f"{self.path / name} cannot be read: {error}") from error


def records_of(run: RunFolder) -> list[TraceRecord]:
    """The records of a run's trace; what is damaged at its end is left out."""
    return [entry.body for entry in read_trace(run.trace_path, lambda problem: None)]


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


# ---- long-term memory: shared by the episodes, or in a sequence a folder for each ----

NAME = "robot"
"""The agent's name, and the scope of its memory."""


def memory_of(case: Path, episode: int) -> Path:
    """The folder of an episode's memory, as it is in the course of the episode and at its end."""
    return case / f"memory-{episode}"


def lay_out(request: CaseRequest, case: Path, episode: int) -> None:
    """Makes the memory that an episode begins with; what a broken attempt left of it is gone.

    Raises:
        ResumeError: It is to begin with the memory of the episode before, and that is missing.
    """
    folder = memory_of(case, episode)
    shutil.rmtree(folder, ignore_errors=True)
    if request.between == "emptied" or episode == 1:
        folder.mkdir()
        return
    before = needed_memory(case, episode - 1)
    draft = folder.with_suffix(".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(before, draft)
    os.replace(draft, folder)


def needed_memory(case: Path, episode: int, *, filled: bool = True) -> Path:
    """The memory of an episode that was begun, or is over and so holds something.

    Raises:
        ResumeError: It is missing.
    """
    folder = memory_of(case, episode)
    if not folder.is_dir() or (filled and not any(folder.iterdir())):
        raise ResumeError(
            f"The memory of episode {episode} is missing: {folder}. Without it the next episodes "
            "would be played by another agent. Put the folder back, or play the case again."
        )
    return folder


@dataclass(slots=True, kw_only=True)
class Remembering:
    """What outlasts an episode."""

    memory: MemoryArgument | None = None
    """A CoAG agent's long-term memory; None where it is to have none."""
    procedures: Mapping[str, Procedure] = field(default_factory=dict[str, Procedure])
    """What its procedures have become, where its memory does not keep them itself."""
    recall: Memory | None = None

    def keep_procedures(self, agent: CoagAgent) -> None:
        """Keeps the procedures that changed, where the agent's memory does not itself."""
        if isinstance(self.memory, LongTermMemory):
            self.procedures = {
                name: seed.model_copy(update={"text": text})
                for name, seed in seed_procedures().items()
                if (text := agent.procedures.get(name).text) != seed.text
            }


def remembering(
    request: CaseRequest, case: Path, closing: AsyncExitStack, episode: int
) -> Remembering:
    """What an episode shares with the others of its case; in a sequence, the memory it has."""
    contender, local = request.contender, request.place == "local"
    own = None if request.between is None else memory_of(case, episode)
    if contender.remembers:
        recall = open_recall(own or (None if local else case / "recall"))
        closing.push_async_callback(recall.close)
        return Remembering(recall=recall)
    if contender.kind != "coag" or request.without_memory:
        return Remembering()
    if own is not None or not local:
        return Remembering(memory=own or case / "memory")
    memory = LongTermMemory(open_store(None), scope=NAME)
    closing.push_async_callback(memory.close)
    return Remembering(memory=memory)
