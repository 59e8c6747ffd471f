"""Files and folders that nobody but their owner reads: a run holds what was said and done."""

from __future__ import annotations

import os

FOLDER = 0o700
"""The mode of a run's folder, where the system has modes."""


def private(path: str, flags: int) -> int:
    """Opens a file; one that is made now is its owner's alone. For `open(..., opener=private)`."""
    return os.open(path, flags, 0o600)
