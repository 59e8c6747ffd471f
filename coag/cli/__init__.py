"""The command line: `coag log` and what else a person does with runs from a terminal.

`commands` lists them; each is declared, with its options, in the module that does its work, which
is imported when the command is called. What agents call often (`judgment`) starts without typer.
What the user got wrong is reported in one line on standard error with exit code 2; a traceback is
a fault of ours.
"""

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

from .entry import main
from .terminal import as_typed, coag_command

if TYPE_CHECKING:
    from .commands import app

__getattr__ = loaded_on_use(__name__, {"app": "coag.cli.commands"})

__all__ = ["app", "main", "coag_command", "as_typed"]  # pyright: ignore[reportUnsupportedDunderAll]
