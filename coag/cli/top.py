"""`coag top`: the state of runs, live at a terminal or once as plain text."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from coag.errors import ConfigurationError
from coag.tracing import RunFolder, list_runs
from coag.ui import Board, snapshot

from .options import Logs, RunOrWatched
from .runs import folders_called, found_run

_LOGS = Path("logs")
"""It need not be there yet: the first run makes it."""


def top(
    run: RunOrWatched = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print their state once as plain text, and end.")
    ] = False,
    logs: Logs = _LOGS,
) -> None:
    """Shows runs live: phase, tokens, cost, last decision, vetoes.

    Without RUN, all in the folder of logs, new ones as they begin. Needs the extra `ui`, but for
    --once.
    """
    place, find = _watched(run, logs)
    if once:
        width = shutil.get_terminal_size().columns
        for line in snapshot(Board(find), place, width=width):
            sys.stdout.write(line + "\n")
        return
    live = importlib.import_module("coag.ui.top")  # needs the extra, which --once does not
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(
            "`coag top` needs a terminal. For scripts and pipes: coag top --once"
        )
    live.TopApp(Board(find), place).run()


def _watched(name: str | None, logs: Path) -> tuple[Path, Callable[[], Sequence[RunFolder]]]:
    """Where the runs are, and a way to find them time and again."""
    if name is None:
        if logs != _LOGS:
            next(list_runs(logs), None)  # raises where there is no such folder
        return logs, partial(_runs_in, logs)
    for folder in folders_called(name, logs) if name else ():
        return folder, partial(_runs_in, folder)
    run = found_run(name, logs)
    return run.path, lambda: [run]


def _runs_in(folder: Path) -> Sequence[RunFolder]:
    """The runs there are by now; a folder may come, and go, while one looks."""
    try:
        return list(list_runs(folder))
    except (ConfigurationError, FileNotFoundError):
        return []
