"""Reading a kept state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from pydantic import ValidationError
from pydantic_core import from_json

from coag.errors import AwarenessError, StateVersionError

from ._problems import where_wrong
from .state import STATE_VERSION, AwarenessState

Migration = Callable[[Mapping[str, object]], Mapping[str, object]]
"""From the fields of a state of one version to those of the next; it changes nothing in place."""

MIGRATIONS: Final[Mapping[int, Migration]] = {}
"""By the version that each reads. There has been one version so far, so there is none.

Whoever raises `STATE_VERSION` adds the step from the version before: `{1: _from_1}`.
"""


def load_state(
    kept: str | bytes | Mapping[str, object], *, migrations: Mapping[int, Migration] = MIGRATIONS
) -> AwarenessState:
    """The state that was kept as JSON text or as the mapping that it says.

    A state of an older version is brought up to date step by step.

    Args:
        kept: JSON text, or what it says.
        migrations: The steps, by the version that each reads.

    Raises:
        StateVersionError: It was written by a newer version, or by one that no step leads from.
        AwarenessError: It is no state; the error names the place.
    """
    given = kept if isinstance(kept, Mapping) else _parsed(kept)
    current = _up_to_date(given, migrations)
    try:
        return AwarenessState.model_validate(current)
    except ValidationError as error:
        path, problem = where_wrong(error)
        where = f" at {path}" if path else ""
        raise AwarenessError(f"This is no awareness state{where}: {problem}") from error


def _up_to_date(
    given: Mapping[str, object], migrations: Mapping[int, Migration]
) -> Mapping[str, object]:
    """The fields as the present version has them."""
    version = given.get("version", STATE_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or version > STATE_VERSION:
        raise StateVersionError(version, STATE_VERSION)
    missing = [step for step in range(version, STATE_VERSION) if step not in migrations]
    if missing or version < 0:
        raise StateVersionError(version, STATE_VERSION)
    for step in range(version, STATE_VERSION):
        try:
            given = {**migrations[step](given), "version": step + 1}
        except (KeyError, TypeError, ValueError) as error:
            raise AwarenessError(
                f"This is no awareness state of version {step}, as it says: bringing it up to "
                f"version {step + 1} raised {type(error).__name__}: {error}. Load a sound copy of "
                "it, or start from a new state."
            ) from error
    return given


def _parsed(text: object) -> Mapping[str, object]:
    """The mapping that JSON text says."""
    if not isinstance(text, str | bytes):
        raise AwarenessError(
            f"This is no awareness state, but {text!r:.80} of the type {type(text).__name__}."
        )
    try:
        given: object = from_json(text)
    except ValueError as error:
        raise AwarenessError(f"This is no awareness state, but no JSON at all: {error}.") from error
    if not isinstance(given, dict):
        raise AwarenessError(
            f"This is no awareness state: JSON of a {type(given).__name__}, not an object."
        )
    return cast("dict[str, object]", given)
