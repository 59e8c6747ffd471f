"""The state of a random source as JSON."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

from coag.errors import StateError

_SHOWN = 80
"""Characters of a wrong state that an error shows."""


def random_state(source: random.Random) -> list[Any]:
    """What a random source will give from now on, for `set_random`."""
    version, internal, gauss = source.getstate()
    return [version, list(internal), gauss]


def set_random(source: random.Random, state: object) -> None:
    """Puts a random source into a state that `random_state` gave; else it stays as it is.

    Raises:
        StateError: It is no such state.
    """
    try:
        version, internal, gauss = cast("Sequence[Any]", state)
        if not (gauss is None or isinstance(gauss, float)):
            raise TypeError(f"its last value is {str(gauss)[:_SHOWN]!r}, neither null nor a number")
        source.setstate((version, tuple(internal), gauss))
    except (TypeError, ValueError, OverflowError) as error:
        raise StateError(
            f"This is no state of a random source: {error} (got {repr(state)[:_SHOWN]}). Give one "
            "that was saved, or null."
        ) from error
