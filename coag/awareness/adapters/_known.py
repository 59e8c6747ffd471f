"""Which names an adapter knows from the state, by their form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from coag.awareness._names import forms_of
from coag.awareness._settings import EngineSettings
from coag.awareness.state import Entity, folded

_GENERIC = EngineSettings().generic_words


def known_entities(names: Sequence[str], entities: Iterable[Entity]) -> dict[str, Entity]:
    """For each name that is known, the entity of these that it means.

    Names are compared by the forms by which the engine recognises them; what it recognises by
    meaning alone is known here from the next time on, when it is an alias.
    """
    asked: dict[str, list[str]] = {}
    for name in names:
        for form in _forms(name):
            asked.setdefault(form, []).append(name)
    found: dict[str, Entity] = {}
    if not asked:
        return found
    for entity in entities:
        for known_name in (entity.name, *entity.aliases):
            for form in _forms(known_name):
                for name in asked.get(form, ()):
                    found.setdefault(name, entity)
    return found


@lru_cache(maxsize=2**16)
def _forms(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(form for form in forms_of(name, _GENERIC) if form))


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names without those that differ from an earlier one in case and spacing only."""
    kept: dict[str, str] = {}
    for name in names:
        kept.setdefault(folded(name), name)
    return tuple(kept.values())


def is_named(name: str, text: str) -> bool:
    """Whether a text has this name in it, as words of its own, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(folded(name))}(?!\w)", folded(text)) is not None
