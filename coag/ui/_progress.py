"""A line that shows that something goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ._words import duration

_REFRESH = 8
"""Times a second that the line is drawn."""


class Progress:
    """A spinner, what goes on, and for how long; nothing where the output is no terminal.

    It is drawn by a thread of its own, so that it moves while everything else waits.

    Args:
        console: Where it is shown; what is printed there appears above it.
        timer: Seconds that only grow.
    """

    def __init__(self, console: Console, timer: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._timer = timer
        self._live: Live | None = None
        self._what = ""
        self._since = timer()
        self._unicode = console.encoding.startswith("utf")
        self._spinner = Spinner("dots" if self._unicode else "line")

    def show(self, what: str) -> None:
        """Something begins.

        Args:
            what: What it is, in a few harmless words.
        """
        self._what, self._since = what, self._timer()
        if self._live is not None:
            self._live.refresh()
        elif self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console,
                transient=True,
                refresh_per_second=_REFRESH,
                get_renderable=self.line,
            )
            self._live.start()

    def hide(self) -> None:
        """Takes the line away, so that something else may write."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def line(self) -> Table:
        """The line as it is now."""
        told = f"{self._what}, {duration(self._timer() - self._since)}"
        line = Table.grid(padding=(0, 1))
        line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(self._spinner, Text(told, style="dim"))
        return line
