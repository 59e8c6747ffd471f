"""A trace while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coag.errors import TraceError

from ._lines import LONGEST_LINE, LineCheck, TraceLine
from ._regular import regular
from ._same import SameFile


class TraceTail:
    """Reads a trace as it grows: what is there, and each time what has come since.

    A line counts from when its newline is there, so that a half-written one is waited for, and
    one that a resumed run cuts off is never seen.

    Args:
        path: A run's `trace.jsonl`; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._anew()

    def _anew(self) -> None:
        self._check = LineCheck(self._path)
        self._same = SameFile()
        self._read = 0

    def lines(self) -> Iterator[TraceLine]:
        """The whole lines that came since the last call; none if there is no file yet.

        Raises:
            TraceError: If the file cannot be read, or is not the one any more that was read: it
                was cut, written anew or replaced. The next call then begins with its first line.
        """
        try:
            with open(self._path, "rb", opener=regular) as file:
                problem = self._same.problem(file, self._read)
                if problem:
                    self._anew()
                    raise TraceError(self._path, problem)
                file.seek(self._read)
                while line := file.readline(LONGEST_LINE + 1):
                    if len(line) <= LONGEST_LINE and not line.endswith(b"\n"):
                        return
                    self._read += len(line)
                    yield self._check.line(line)
        except FileNotFoundError:
            return
        except OSError as error:
            problem = error.strerror or type(error).__name__
            raise TraceError(self._path, f"cannot be read: {problem}") from error
