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


def memory_of(case: Path, episode: int) -> Path:
    """The folder of an episode's memory, as it is in the course of the episode and at its end."""
    return case / f"memory-{episode}"


def laid_out(request: CaseRequest, case: Path, episode: int) -> Path:
    """Makes the memory that an episode begins with; what a broken attempt left of it is gone.

    Args:
        request: What was asked for, with `between`.
        case: The case's folder.
        episode: The episode that begins.

    Raises:
        ResumeError: It is to begin with the memory of the episode before, and that is missing.
    """
    folder = memory_of(case, episode)
    shutil.rmtree(folder, ignore_errors=True)
    if request.between == "emptied" or episode == 1:
        folder.mkdir()
        return folder
    before = needed_memory(case, episode - 1)
    if not any(before.iterdir()):
        raise _missing(before, episode - 1)
    draft = folder.with_suffix(".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(before, draft)
    os.replace(draft, folder)
    return folder


def needed_memory(case: Path, episode: int) -> Path:
    """The memory of an episode that was begun.

    Raises:
        ResumeError: It is missing.
    """
    folder = memory_of(case, episode)
    if not folder.is_dir():
        raise _missing(folder, episode)
    return folder


def _missing(folder: Path, episode: int) -> ResumeError:
    return ResumeError(
        f"The memory of episode {episode} is missing: {folder}. What comes after it would be "
        "played by an agent that has forgotten it. Put the folder back, or play the case anew."
    )


NAME = "robot"
"""The agent's name, and the scope of its memory."""
MEMORY, RECALL = "memory", "recall"
"""Folders of a case: a CoAG agent's memory, and AutoGen's for the plain agent that has one."""


@dataclass(slots=True, kw_only=True)
class Remembering:
    """What outlasts an episode."""

    memory: MemoryArgument | None = None
    """A CoAG agent's long-term memory; None where it is to have none."""
    procedures: Mapping[str, Procedure] = field(default_factory=dict[str, Procedure])
    """What its procedures have become, where its memory does not keep them itself."""
    recall: Memory | None = None
    """AutoGen's memory."""

    def keep_procedures(self, agent: CoagAgent) -> None:
        """Keeps what has become of an agent's procedures, where its memory does not itself."""
        if isinstance(self.memory, LongTermMemory):
            self.procedures = _changed(agent)


def remembering(
    request: CaseRequest, case: Path, closing: AsyncExitStack, episode: int
) -> Remembering:
    """What an episode shares with the others of its case; in a sequence, the memory it has.

    Args:
        request: What was asked for.
        case: The case's folder.
        closing: Closes what is opened here.
        episode: The episode, which counts in a sequence only: its memory is there.
    """
    contender, local = request.contender, request.place == "local"
    own = None if request.between is None else memory_of(case, episode)
    if contender.remembers:
        recall = open_recall(own or (None if local else case / RECALL))
        closing.push_async_callback(recall.close)
        return Remembering(recall=recall)
    if contender.kind != "coag" or request.without_memory:
        return Remembering()
    if own is not None:
        return Remembering(memory=own)
    if not local:
        return Remembering(memory=case / MEMORY)
    memory = LongTermMemory(open_store(None), scope=NAME)
    closing.push_async_callback(memory.close)
    return Remembering(memory=memory)


def _changed(agent: CoagAgent) -> dict[str, Procedure]:
    """The procedures that are not as their seeds are any more."""
    procedures = agent.procedures
    return {
        name: seed.model_copy(update={"text": procedures.get(name).text})
        for name, seed in seed_procedures().items()
        if procedures.get(name).text != seed.text
    }
