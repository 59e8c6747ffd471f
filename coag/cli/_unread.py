"""Standard output that nobody reads: it is closed, or the reader of a pipe has left."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO, cast

_UNREAD = 1
"""Exit code where what was printed could not be read; the same as typer's."""


@contextmanager
def unread_output() -> Generator[None]:
    """Ends the program quietly, with exit code 1, where nobody reads what it has printed.

    Where standard output was closed from the start, what is printed is dropped.
    """
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        closed = cast("TextIO | None", sys.stdout) is None
        if closed:
            sys.stdout = nowhere
        try:
            yield
        finally:
            if closed:
                sys.stdout = cast("TextIO", None)
            else:
                _flush(nowhere)


def _flush(nowhere: TextIO) -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more when it ends.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        sys.exit(_UNREAD)
