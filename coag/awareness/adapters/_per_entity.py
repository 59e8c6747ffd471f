"""What follows from each entity alone, worked out anew only for those that changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from operator import is_not
from typing import Generic, TypeVar

from coag.awareness.state import Entity

_Found = TypeVar("_Found")


class PerEntity(Generic[_Found]):
    """A function of an entity over all entities of a world. A cache: it changes no result.

    From one step to the next most entities are the same objects; only the others are looked at.
    """

    def __init__(self, of: Callable[[Entity], _Found]) -> None:
        self._of = of
        self._kept: tuple[tuple[Entity, ...], Sequence[_Found]] = ((), ())

    def __call__(self, entities: tuple[Entity, ...]) -> Sequence[_Found]:
        """What follows from each, in their order."""
        known, kept = self._kept
        if known is entities:
            return kept
        found = list(kept[: len(entities)])
        for place in compress(range(len(found)), map(is_not, known, entities)):
            found[place] = self._of(entities[place])
        found.extend(map(self._of, entities[len(found) :]))
        self._kept = (entities, found)
        return found
