"""Which names an adapter knows from the state, by their form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from coag.awareness._names import forms_of
from coag.awareness._settings import EngineSettings
from coag.awareness.state import Entity, folded

from ._per_entity import PerEntity

_GENERIC = EngineSettings().generic_words


class KnownNames:
    """Recognises names among entities. What it keeps between calls is a cache.

    Names are compared by the forms by which the engine recognises them; what it recognises by
    meaning alone is known here from the next time on, when it is an alias.
    """

    def __init__(self) -> None:
        self._forms = PerEntity(_forms_of)

    def find(self, names: Sequence[str], entities: tuple[Entity, ...]) -> dict[str, Entity]:
        """For each name that is known, the entity of these that it means."""
        asked: dict[str, list[str]] = {}
        for name in names:
            for form in _forms(name):
                asked.setdefault(form, []).append(name)
        found: dict[str, Entity] = {}
        if not asked:
            return found
        for entity, forms in zip(entities, self._forms(entities), strict=True):
            if not asked.keys().isdisjoint(forms):
                for form in forms:
                    for name in asked.get(form, ()):
                        found.setdefault(name, entity)
        return found


def _forms_of(entity: Entity) -> tuple[str, ...]:
    """The forms of all names of an entity."""
    names = (entity.name, *entity.aliases)
    return tuple(dict.fromkeys(form for name in names for form in _forms(name)))


def _forms(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(form for form in forms_of(name, _GENERIC) if form))


def is_named(name: str, text: str) -> bool:
    """Whether a text has this name in it, as words of its own, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(folded(name))}(?!\w)", folded(text)) is not None
