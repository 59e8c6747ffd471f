"""Long-term memory of a case: shared by its episodes, or in a sequence a folder for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from autogen_core.memory import Memory

from case_study.baseline import open_recall
from coag.agent import CoagAgent, MemoryArgument
from coag.errors import ResumeError
from coag.memory import LongTermMemory, Procedure, seed_procedures
from coag.store import open_store

from .request import CaseRequest

NAME = "robot"
"""The agent's name, and the scope of its memory."""


def memory_of(case: Path, episode: int) -> Path:
    """The folder of an episode's memory, as it is in the course of the episode and at its end."""
    return case / f"memory-{episode}"


def laid_out(request: CaseRequest, case: Path, episode: int) -> None:
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
            texts = {name: agent.procedures.get(name).text for name in seed_procedures()}
            self.procedures = {
                name: seed.model_copy(update={"text": texts[name]})
                for name, seed in seed_procedures().items()
                if texts[name] != seed.text
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
