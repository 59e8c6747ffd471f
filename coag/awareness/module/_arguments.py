"""What an `Awareness` was made from, as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from inspect import signature
from typing import Any, cast

from coag.awareness.dynamics import DynamicsSettings
from coag.awareness.state import SelfModel
from coag.errors import ConfigurationError
from coag.schema import Declarable, Imported, Value

from ._settings import AwarenessSettings

_VALUES: Mapping[str, type[Value]] = {
    "self_model": SelfModel,
    "settings": AwarenessSettings,
    "dynamics": DynamicsSettings,
}
_PARTS = ("adapter", "embedder", "clock", "archive", "reads")
"""What goes by import name, and by its fields."""


def arguments_of(given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments that were given, as JSON; those that are None are left out.

    Raises:
        ConfigurationError: One of them cannot be had again; names it and says what to do.
    """
    return {name: _told(name, value) for name, value in given.items() if value is not None}


def arguments_from(told: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `arguments_of` was given.

    Raises:
        ConfigurationError: Something that they name does not exist any more.
        ValidationError: They are none.
    """
    return {name: _given(name, value) for name, value in told.items()}


def _told(name: str, value: object) -> Any:
    if name in _PARTS:
        return _part(name, value)
    if isinstance(value, Value):
        return _plain(value.model_dump(exclude_defaults=True))
    return value


def _given(name: str, told: Any) -> Any:
    if name in _VALUES:
        return _VALUES[name].model_validate(told)
    if name not in _PARTS:
        return told
    found = Imported.model_validate(told).get()
    return found() if name == "adapter" and isinstance(found, type) else found


def _part(name: str, value: object) -> dict[str, Any]:
    """An import name, with fields; an adapter without arguments by its class: it keeps nothing."""
    kind = type(value)
    by_class = name == "adapter" and not (
        is_dataclass(kind) or isinstance(value, Declarable) or signature(kind).parameters
    )
    try:
        return Imported.of(kind if by_class else value).model_dump(mode="json", exclude_none=True)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{name}= of Awareness: {error} Or build the agent by a recipe, which is code."
        ) from error


def _plain(value: object) -> Any:
    """As JSON; a set in its order, so that equal values give equal JSON."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: _plain(one) for key, one in items}
    if isinstance(value, frozenset):
        return sorted(_plain(one) for one in cast("frozenset[object]", value))
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("tuple[object, ...]", value)]
    return value.value if isinstance(value, Enum) else value
