"""`coag top`: which runs are watched, and how they stand, once."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from coag.errors import ConfigurationError
from coag.tracing import RunFolder, list_runs
from coag.ui import Board, snapshot

from .runs import found_run

_DEFAULT = Path("logs")
"""It need not be there yet: the first run makes it."""


def show_once(name: str | None, logs: Path) -> None:
    """Prints how the runs stand as plain text.

    Args:
        name: A run, or a folder of runs; None for all in `logs`.
        logs: The folder of all runs.

    Raises:
        ConfigurationError: If there is no such run or folder, or several runs may be meant.
    """
    place, find = watched(name, logs)
    width = shutil.get_terminal_size().columns
    for line in snapshot(Board(find), place, width=width):
        sys.stdout.write(line + "\n")


def watched(name: str | None, logs: Path) -> tuple[Path, Callable[[], Sequence[RunFolder]]]:
    """Where the runs lie, and a way to find them time and again.

    Args:
        name: A run, or a folder of runs; None for all in `logs`.
        logs: The folder of all runs.

    Raises:
        ConfigurationError: If there is no such run or folder, or several runs may be meant.
    """
    if name is None:
        if logs != _DEFAULT:
            _check(logs)
        return logs, partial(_runs_in, logs)
    for folder in (Path(name), logs / name):
        if name and folder.is_dir() and not RunFolder(folder).exists:
            return folder, partial(_runs_in, folder)
    run = found_run(name, logs)
    return run.path, lambda: [run]


def _check(logs: Path) -> None:
    """Raises where there is no such folder."""
    next(list_runs(logs), None)


def _runs_in(folder: Path) -> Sequence[RunFolder]:
    """The runs there are by now; a folder may come, and go, while one looks."""
    try:
        return list(list_runs(folder))
    except (ConfigurationError, FileNotFoundError):
        return []
