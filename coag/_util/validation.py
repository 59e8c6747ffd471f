"""What pydantic found wrong, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import ValidationError

from coag.errors import StateError

_StateT = TypeVar("_StateT", bound=BaseModel)


def first_error(error: ValidationError, whole: str = "") -> str:
    """The first error with its place, as in `items.0.name: Field required`.

    Args:
        error: What validation raised.
        whole: What to call the value as a whole; without it such an error has no place.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"])) or whole
    return f"{where}: {first['msg']}" if where else first["msg"]


def module_state(kind: type[_StateT], state: Mapping[str, Any], name: str) -> _StateT:
    """The saved state of a module.

    Args:
        kind: What it is to be.
        state: What was saved.
        name: The module's.

    Raises:
        StateError: It is none; says what is wrong.
    """
    try:
        return kind.model_validate(dict(state))
    except ValidationError as error:
        raise StateError(f"This is no state of {name!r}: {first_error(error)}") from error
