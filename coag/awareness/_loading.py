"""Reading a kept state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import ValidationError
from pydantic_core import from_json

from coag.errors import AwarenessError, StateVersionError

from ._problems import where_wrong
from .state import STATE_VERSION, AwarenessState


def load_state(kept: str | bytes | Mapping[str, object]) -> AwarenessState:
    """The state that was kept as JSON text or as the mapping that it says.

    There is one version of the schema so far, so nothing is migrated yet; another is refused.

    Raises:
        StateVersionError: It was written by another version of the schema.
        AwarenessError: It is no state; the error names the place.
    """
    given = kept if isinstance(kept, Mapping) else _parsed(kept)
    version = given.get("version", STATE_VERSION)
    if version != STATE_VERSION or isinstance(version, bool):
        raise StateVersionError(version, STATE_VERSION)
    try:
        return AwarenessState.model_validate(given)
    except ValidationError as error:
        path, problem = where_wrong(error)
        where = f" at {path}" if path else ""
        raise AwarenessError(f"This is no awareness state{where}: {problem}") from error


def _parsed(text: str | bytes) -> Mapping[str, object]:
    """The mapping that JSON text says."""
    try:
        given: object = from_json(text)
    except ValueError as error:
        raise AwarenessError(f"This is no awareness state, but no JSON at all: {error}.") from error
    if not isinstance(given, dict):
        raise AwarenessError(
            f"This is no awareness state: JSON of a {type(given).__name__}, not an object."
        )
    return cast("dict[str, object]", given)
