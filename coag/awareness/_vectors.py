"""Names by meaning: the vectors of entities' names, and the nearest to another name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coag.store import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NUMBER = re.compile(r"\d+")


class NameVectors:
    """One unit vector a name; those that were added since the last question are made at once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._positions: list[int] = []
        self._names: list[str] = []
        self._rows: NDArray[np.float32] | None = None
        self._filled = 0
        self._last: tuple[list[str], NDArray[np.float32]] | None = None

    def add(self, position: int, name: str) -> None:
        """Has this entity's name considered from now on."""
        self._positions.append(position)
        self._names.append(name)

    def nearest(self, name: str, threshold: float) -> tuple[int, float] | None:
        """Position and cosine of the nearest name, from a cosine on; None if there is none.

        Two names with different numbers in them never mean the same: `room 1` is not `room 2`.
        """
        import numpy as np

        if not self._names:
            return None
        self._fill()
        assert self._rows is not None
        asked = self._units([name])
        self._last = ([name], asked)
        cosines = self._rows[: self._filled] @ asked[0]
        numbers = _NUMBER.findall(name)
        near = np.flatnonzero(cosines >= threshold)
        for place in sorted((int(one) for one in near), key=lambda one: -float(cosines[one])):
            if _NUMBER.findall(self._names[place]) == numbers:
                return self._positions[place], min(max(float(cosines[place]), 0.0), 1.0)
        return None

    def _fill(self) -> None:
        """Makes the rows of the names that have none; room grows by doubling."""
        import numpy as np

        total = len(self._names)
        if total == self._filled:
            return
        new = self._names[self._filled :]
        # Most often what is new is the name that was just asked for in vain.
        made = self._last[1] if self._last and self._last[0] == new else self._units(new)
        if self._rows is None or total > len(self._rows):
            room = np.zeros((max(64, 2 * total), made.shape[1]), dtype=np.float32)
            if self._rows is not None:
                room[: self._filled] = self._rows[: self._filled]
            self._rows = room
        self._rows[self._filled : total] = made
        self._filled = total

    def _units(self, names: list[str]) -> NDArray[np.float32]:
        """Vectors of length 1; a vector of nothing stays nothing."""
        import numpy as np

        rows = np.asarray(self._embedder.embed(names), dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        return (rows / lengths).astype(np.float32)
