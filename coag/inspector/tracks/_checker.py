"""The process that checks runs, from the side of whoever started it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from threading import Lock
from typing import Any

_LAST_WORDS = 300
_ENDED = "The checks were ended."


class Checker:
    """Checks runs in a process of its own, which begins when it is first asked.

    One thread asks; any may end it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._ended = False

    def ask(self, order: bytes) -> Iterator[dict[str, Any]]:
        """What the process tells of one run, as it tells it; the last message is `done`.

        Args:
            order: What it is told, as a line; see `_child.order`.
        """
        process = self._started()
        if process is None or process.stdin is None or process.stdout is None:
            yield {"trouble": _ENDED, "done": True}
            return
        try:
            process.stdin.write(order)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died: no line comes, and its exit code says so
        for line in process.stdout:
            message: dict[str, Any] = json.loads(line)
            yield message
            if message.get("done"):
                return
        yield {"trouble": self._bury(), "done": True}

    def kill(self) -> None:
        """Ends what goes on at once; it may be asked again."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """Ends what goes on at once, and for good; from any thread."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Ends the process for good; called by the thread that asks."""
        with self._lock:
            self._ended = True
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                process.communicate()
            self._errors.close()

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._process is None and not self._ended:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "coag.inspector.tracks"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            return self._process

    def _bury(self) -> str:
        """Why the process ended before it was done, as far as it can be told."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return _ENDED
            process.communicate()
            self._errors.seek(0)
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            self._errors.truncate(0)
            last = f": {lines[-1][:_LAST_WORDS]}" if lines else ""
            return f"The checks broke off with exit code {process.returncode}{last}."
