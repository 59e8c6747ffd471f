"""The perceptual state as a domain's own type, and as JSON without secrets."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from coag._util.secrets import is_secret_setting
from coag._util.validation import first_error
from coag.errors import ConfigurationError, StateError
from coag.schema import Redactor

_PROGRAM = "source_code"
"""AutoGen's field for a tool's source: names in it are no names of secrets."""


def check_public(config: Any, where: str) -> None:
    """Refuses JSON that holds a secret.

    Args:
        config: What would be written down.
        where: What it belongs to, for the error.

    Raises:
        ConfigurationError: Names the place, not the secret.
    """
    redactor = Redactor.from_environment()
    for path, key, text in _texts(config, ()):
        field = json.dumps({key: text}, ensure_ascii=False)
        if redactor.clean(field) != field or _secret_address(text):
            raise ConfigurationError(
                f"{where} holds what looks like a secret, at {'.'.join(path)!r}. Secrets are not "
                "written down: give it by an environment variable, or in code after loading."
            )


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Every text with its path and the name of its field."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key == _PROGRAM and isinstance(item, str):
                yield from (((*path, key), "", text) for text in _literals(item))
            else:
                yield from _texts(item, (*path, str(key)))
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _texts(item, (*path, str(number)))
    elif isinstance(value, str):
        yield path, path[-1] if path else "", value


def _literals(program: str) -> list[str]:
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return [program]
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [value for value in nodes if isinstance(value, str)]


def _secret_address(text: str) -> bool:
    """Whether an address has a user or a secret parameter."""
    if "://" not in text or any(sign.isspace() for sign in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    named = (name for name, _ in parse_qsl(parts.query))
    return "@" in parts.netloc or any(is_secret_setting(name) for name in named)


# ---- Perceptual states as JSON, and the default one of a general assistant ----


StateT = TypeVar("StateT", bound=BaseModel)
_SCALARS = (str, int, float, bytes)
_GROUPS = (tuple, frozenset)
"""Just these: what derives from them may hold more than its items."""


class AssistantState(BaseModel):
    """What a general assistant perceives of its environment: how its tools are doing."""

    model_config = ConfigDict(frozen=True)

    tool_calls: int = 0
    """Tool calls that have returned."""
    successes: int = 0
    """Those of them that did not fail."""
    last_tool: str = ""
    last_failed: bool = False


def dump_state(state: BaseModel) -> dict[str, Any]:
    """A state as JSON without nulls: in it, a missing key and a null are the same."""
    return cast("dict[str, Any]", _without_nulls(state.model_dump(mode="json")))


def state_fields(schema: type[BaseModel]) -> frozenset[str] | None:
    """The names in the JSON of such a state; None if it may have any."""
    if schema.model_config.get("extra") == "allow":
        return None
    return frozenset({*schema.model_fields, *schema.model_computed_fields})


def load_state(schema: type[StateT], value: Mapping[str, Any]) -> StateT:
    """The typed view of a state kept as JSON.

    Raises:
        StateError: The JSON does not fit the schema; says where.
    """
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise StateError(
            f"The perceptual state does not fit {schema.__name__}: "
            f"{first_error(error, 'the state')} (got {error.errors()[0]['input']!r}). "
            "Give fields that may be absent a default."
        ) from error


def own_copy(state: Any) -> Any:
    """A copy of the state that its receiver may change; an unchangeable state itself.

    What is no pydantic model is given as it is.
    """
    if not isinstance(state, BaseModel) or cannot_change(state):
        return state
    return state.model_copy(deep=True)


def cannot_change(state: BaseModel) -> bool:
    """True if nothing in the state can be changed: it may be handed out without a copy."""
    if not _frozen(type(state)) or state.__pydantic_private__ or state.__pydantic_extra__:
        return False
    return all(_is_immutable(value) for value in vars(state).values())


def _is_immutable(value: object) -> bool:
    """Whether a field's value, and all that it holds, can never be another one."""
    if value is None or isinstance(value, _SCALARS):
        return True
    if type(value) in _GROUPS:
        return all(_is_immutable(each) for each in cast("Iterable[object]", value))
    return isinstance(value, BaseModel) and cannot_change(value)


@lru_cache(maxsize=256)
def _frozen(kind: type[BaseModel]) -> bool:
    """Whether a model's fields are fixed; a cached property would be kept in a copy."""
    caches = any(
        isinstance(own, cached_property) for base in kind.__mro__ for own in vars(base).values()
    )
    return bool(kind.model_config.get("frozen")) and not caches


def checked_dump(state: BaseModel) -> dict[str, Any]:
    """`dump_state`, after making sure that it loads back to an equal state.

    Raises:
        StateError: The state holds something that JSON without nulls cannot give back.
    """
    dumped = dump_state(state)
    loaded = load_state(type(state), dumped)
    if dump_state(loaded) != dumped or loaded != state:
        changed = [
            name
            for name in type(state).model_fields
            if getattr(loaded, name) != getattr(state, name)
        ]
        raise StateError(
            f"{type(state).__name__} does not survive JSON: {', '.join(changed)} come back "
            "changed. A field that can be None needs None as its default."
        )
    return dumped


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _without_nulls(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in cast("list[Any]", value)]
    return value
