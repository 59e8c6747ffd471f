"""The command line: `coag log` and what else a person does with runs from a terminal.

Commands are declared in `_app`, quick to import; what a command does is in a module of its own
that is imported when the command is run. What the user got wrong is said in one line on
standard error with exit code 2; a traceback is a fault of ours.
"""

from .app import app, main
from .command import as_typed, coag_command

__all__ = ["app", "main", "coag_command", "as_typed"]
