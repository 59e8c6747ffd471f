"""Names of a face that are loaded when they are first used, so that importing it is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loaded_on_use(
    face: str, homes: Mapping[str, str], otherwise: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """The `__getattr__` of a face some of whose names are in modules that are not imported yet.

    Args:
        face: The module's `__name__`.
        homes: The module of each such name.
        otherwise: Asked for every other name, e.g. what `renamed` gave.
    """

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is not None:
            value = getattr(import_module(home), name)
            setattr(sys.modules[face], name, value)
            return value
        if otherwise is not None:
            return otherwise(name)
        raise AttributeError(f"module {face!r} has no attribute {name!r}")

    return __getattr__
