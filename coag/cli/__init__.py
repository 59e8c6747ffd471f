"""The command line: `coag log` and what else a person does with runs from a terminal.

`app` lists the commands; each is declared, with its options, in the module that does its work,
which is imported when the command is called. What the user got wrong is reported in one line on
standard error with exit code 2; a traceback is a fault of ours.
"""

from .app import app, main
from .terminal import as_typed, coag_command

__all__ = ["app", "main", "coag_command", "as_typed"]
