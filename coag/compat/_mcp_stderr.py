"""What a server says on its standard error, of which the last lines are kept."""

from __future__ import annotations

import logging
import os
from collections import deque
from threading import Thread

from coag.tracing import Redactor

_LOG = logging.getLogger("coag.compat.mcp")
_LINES = 5
_LINE = 500
"""Characters of a line; a longer one counts as several."""
_PATIENCE = 0.5
"""Seconds to wait for the last lines of a server that has ended."""


class StderrTail:
    """A file that a server can write to, and the last lines that it wrote, without secrets.

    A process needs a real file; a thread empties the pipe, so that no server ever blocks on it.
    Every line is logged at DEBUG to `coag.compat.mcp`.
    """

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file = os.fdopen(writing, "w", encoding="utf-8")
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._thread = Thread(target=self._drain, args=(reading,), daemon=True)
        self._thread.start()

    def _drain(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(_LINE):
                self._lines.append(line.rstrip())
                _LOG.debug("%s", line.rstrip())

    def close(self) -> None:
        """Ends our part of the pipe; waits a moment for what is still in it."""
        self.file.close()
        self._thread.join(_PATIENCE)

    @property
    def text(self) -> str:
        """The last lines as one."""
        return Redactor().clean_text(" | ".join(line for line in tuple(self._lines) if line))
