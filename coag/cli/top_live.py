"""`coag top` at a terminal; imported only there, as it needs textual."""

from __future__ import annotations

import sys
from pathlib import Path

from coag.errors import ConfigurationError
from coag.ui import Board
from coag.ui.top import TopApp

from .top import watched


def watch(name: str | None, logs: Path) -> None:
    """Shows how the runs stand until the user quits.

    Args:
        name: A run, or a folder of runs; None for all in `logs`.
        logs: The folder of all runs.

    Raises:
        ConfigurationError: If there is no such run or folder, several runs may be meant, or this
            is no terminal.
    """
    place, find = watched(name, logs)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(
            "`coag top` needs a terminal. For scripts and pipes: coag top --once"
        )
    TopApp(Board(find), place).run()
