"""Deprecated names of a face, which still work and warn."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(face: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a face whose names have changed.

    Saved components hold the old names, too, and load by them.

    Args:
        face: The module's `__name__`.
        names: The new name for each old one.
    """

    def __getattr__(name: str) -> Any:
        new = names.get(name)
        if new is None:
            raise AttributeError(f"module {face!r} has no attribute {name!r}")
        warnings.warn(f"{face}.{name} is now {face}.{new}.", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[face], new)

    return __getattr__
