"""How a person can call this program again from where they are."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

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
    """A path as a word for a shell; relative where it lies below the working directory."""
    whole = Path(os.path.abspath(path))
    here = Path.cwd()
    return shlex.quote(str(whole.relative_to(here) if whole.is_relative_to(here) else whole))
