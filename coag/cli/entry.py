"""Where a command line begins: `coag judgment` runs at once, for all others typer is imported."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

from coag._util.text import cleaned
from coag.errors import CoagError

from .terminal import unread_output

_USER_ERROR = 2
"""Exit code for what the user got wrong; the same as for an unknown option."""
_ABORTED = 1
"""Exit code where the user breaks a command off; the same as typer's."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and leaves the process with its exit code.

    Args:
        arguments: The words behind `coag`; None for those of this process.
    """
    # Else the interpreter, on leaving, looks through all that was imported for cycles: some 0.3 s.
    atexit.register(gc.freeze)
    words = sys.argv[1:] if arguments is None else list(arguments)
    with unread_output():
        try:
            if words[:1] == ["judgment"]:
                from .judgment import judgment

                judgment(words[1:])
                return
            from .commands import app

            app(args=words, prog_name="coag")
        except CoagError as error:
            import typer

            # Messages may quote what a stranger wrote into a log.
            typer.secho(" ".join(cleaned(str(error)).split()), fg=typer.colors.RED, err=True)
            sys.exit(_USER_ERROR)
        except KeyboardInterrupt:  # typer catches it by itself
            sys.stderr.write("Aborted!\n")
            sys.exit(_ABORTED)
