"""Long-term memory of a sequence of episodes: a folder for each, made from the one before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from coag.errors import ResumeError

from ._request import CaseRequest


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
