"""Things of different types that go by one number or code: each gets a name of its own."""

from __future__ import annotations

from collections.abc import Iterable

from ._names import forms_of, is_code
from ._observation import Observation, ObservedEntity
from ._settings import EngineSettings
from .state import WorldModel


def told_apart(
    observation: Observation, world: WorldModel, settings: EngineSettings
) -> Observation:
    """The observation with names that mean one thing, before it goes into this world.

    Words mean the same whatever the type: a topic `Python` and a library `Python` are one thing.
    A number does not: where the world has an order `17`, a customer `17` is named `customer:17`.
    Topics and concepts (`EngineSettings.loose_types`) count as one type.
    """
    if not any(is_code(one.name) for one in observation.entities):
        return observation
    known = _types_by_form(world, observation.entities, settings)
    entities = tuple(_named(one, known, settings) for one in observation.entities)
    return observation.model_copy(update={"entities": entities})


def _named(seen: ObservedEntity, known: dict[str, str], settings: EngineSettings) -> ObservedEntity:
    """The thing under the name that is its own; it is known from now on."""
    if not is_code(seen.name):
        return seen
    type = _sort(seen.type, settings)
    own = f"{seen.type}:{seen.name.strip()}"
    form = _form(seen.name, settings)
    if known.get(form, type) == type and _form(own, settings) not in known:
        known[form] = type
        return seen
    known[_form(own, settings)] = type
    return seen.model_copy(update={"name": own})


def _types_by_form(
    world: WorldModel, seen: Iterable[ObservedEntity], settings: EngineSettings
) -> dict[str, str]:
    """The types of what the world has under names with these digits, by the names' forms."""
    digits = {_digits(one.name) for one in seen if is_code(one.name)}
    found: dict[str, str] = {}
    for entity in world.entities:
        for name in (entity.name, *entity.aliases):
            if _digits(name) in digits:
                found.setdefault(_form(name, settings), _sort(entity.type, settings))
    return found


def _digits(name: str) -> str:
    return "".join(letter for letter in name if letter.isdigit())


def _form(name: str, settings: EngineSettings) -> str:
    return forms_of(name, settings.generic_words).normal


def _sort(type: str, settings: EngineSettings) -> str:
    """The type, one for all whose names are words of a language."""
    return "" if type.rpartition(":")[2] in settings.loose_types else type
