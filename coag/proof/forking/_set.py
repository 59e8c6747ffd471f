"""Setting values in a working memory by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from coag.context import WorkingMemory, dump_state
from coag.errors import StateError

_FIXED = ("cycle", "phase", "activity", "queued")
"""What the boundary itself decides."""
_STATE = "perceptual_state"


def with_settings(
    memory: WorkingMemory, schema: type[BaseModel], settings: Mapping[str, Any]
) -> WorkingMemory:
    """The working memory with these values at these paths.

    Args:
        memory: The working memory.
        schema: What its perceptual state must fit.
        settings: Values (JSON) by path; a path's parts are names and numbers of list items,
            between dots. It begins in working memory or, with a name of the schema, in the
            perceptual state.

    Raises:
        StateError: There is no such place, it is the boundary's own, or the value does not fit.
    """
    for path, value in settings.items():
        memory = _with(memory, schema, path, value)
    return memory


def _with(memory: WorkingMemory, schema: type[BaseModel], path: str, value: Any) -> WorkingMemory:
    parts = path.split(".")
    if parts[0] not in WorkingMemory.model_fields:
        parts = [_STATE, *parts]
    if parts[0] in _FIXED:
        raise StateError(f"{path!r} cannot be set: the boundary decides it.")
    held = memory.to_json()
    if parts[0] == _STATE:
        held[_STATE] = _state(held.get(_STATE, {}), schema, parts[1:], path, value)
    else:
        _put(held, parts, path, value)
    try:
        return WorkingMemory.model_validate(held)
    except ValidationError as error:
        raise _unfit(path, value, "working memory", error) from error


def _state(
    held: dict[str, Any], schema: type[BaseModel], parts: list[str], path: str, value: Any
) -> dict[str, Any]:
    name = schema.__name__
    open_ended = schema.model_config.get("extra") == "allow"
    if parts and parts[0] not in schema.model_fields and not open_ended:
        raise StateError(
            f"There is no {path!r} to set. {name} has: {', '.join(schema.model_fields)}; working "
            f"memory has: {', '.join(n for n in WorkingMemory.model_fields if n not in _FIXED)}."
        )
    try:
        changed = dump_state(schema.model_validate(held))
        if not parts:
            changed = value
        else:
            _put(changed, parts, path, value)
        after = dump_state(schema.model_validate(changed))
    except ValidationError as error:
        raise _unfit(path, value, name, error) from error
    if value is not None and parts and not _there(after, parts):
        raise StateError(f"{name} keeps nothing at {path!r}.")
    return after


def _put(held: dict[str, Any], parts: list[str], path: str, value: Any) -> None:
    """Puts a value at a place of JSON; the place before it must be there."""
    place: Any = held
    for part in parts[:-1]:
        place = _at(place, part, path)
    last = parts[-1]
    if isinstance(place, dict):
        cast("dict[str, Any]", place)[last] = deepcopy(value)
    else:
        _at(place, last, path)
        place[int(last)] = deepcopy(value)


def _at(place: Any, part: str, path: str) -> Any:
    if isinstance(place, dict) and part in place:
        return cast("dict[str, Any]", place)[part]
    if isinstance(place, list):
        items = cast("list[Any]", place)
        if part.isdecimal() and int(part) < len(items):
            return items[int(part)]
        raise StateError(f"{path!r} leads nowhere: {part!r} is no item of {len(items)}, from 0.")
    raise StateError(f"{path!r} leads nowhere: there is no {part!r} now.")


def _there(held: Any, parts: list[str]) -> bool:
    try:
        for part in parts:
            held = _at(held, part, "")
    except StateError:
        return False
    return True


def _unfit(path: str, value: Any, what: str, error: ValidationError) -> StateError:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return StateError(f"{path!r} cannot be {value!r}: {what}: {where}: {first['msg']}.")
