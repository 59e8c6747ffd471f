"""The command as a person types it, and standard output that cannot be read or written."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

# ---- How a person can call this program again from where they are ----


_NAME = "coag"


def coag_command() -> str:
    """What to type for `coag` here: the name if it is on PATH, else the script's path.

    The script is looked for beside the interpreter, as in an environment that is not activated;
    below the working directory its path is relative.
    """
    script = Path(sys.executable).parent / _NAME
    if shutil.which(_NAME) or not script.is_file():
        return _NAME
    return as_typed(script)


def as_typed(path: Path) -> str:
    """A path as a word for a shell; relative where it is below the working directory."""
    full = Path(os.path.abspath(path))
    here = Path.cwd()
    return shlex.quote(str(full.relative_to(here) if full.is_relative_to(here) else full))


# ---- Standard output that nobody reads: it is closed, full, or the reader of a pipe has left ----


_UNREAD = 1
"""Exit code where what was printed could not be read; the same as typer's."""
_UNWRITTEN = 2
"""Exit code where it could not be written; 1 would be some commands' finding."""


@contextmanager
def unread_output() -> Generator[None]:
    """Ends the program quietly, with exit code 1, where nobody reads what it has printed.

    Where standard output was closed from the start, what is printed is dropped. Where it cannot
    be written, the disk being full say, an error is reported with exit code 2.
    """
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        closed = cast("TextIO | None", sys.stdout) is None
        if closed:
            sys.stdout = nowhere
        try:
            yield
        except OSError:
            if not closed:
                _flush(nowhere, probe=True)
            raise
        finally:
            if closed:
                sys.stdout = cast("TextIO", None)
            else:
                _flush(nowhere)


def _flush(nowhere: TextIO, *, probe: bool = False) -> None:
    """Writes what is held back, and with `probe` finds out whether standard output can be."""
    try:
        if probe:  # where nothing is held back, only a write can
            sys.stdout.write("\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(nowhere)
        sys.exit(_UNREAD)
    except OSError as error:
        _drop(nowhere)
        sys.stderr.write(
            f"Standard output could not be written: {error.strerror or error}. What was printed "
            "is not complete; print it to where there is room.\n"
        )
        sys.exit(_UNWRITTEN)


def _drop(nowhere: TextIO) -> None:
    """Sends the rest nowhere: the interpreter flushes once more when it ends."""
    os.dup2(nowhere.fileno(), sys.stdout.fileno())
