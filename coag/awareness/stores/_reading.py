"""From stored text to a stored state."""

from __future__ import annotations

from coag.awareness._loading import load_state
from coag.errors import AwarenessError, StateVersionError

from ._errors import StateStoreError
from ._protocol import StoredState


def stored_state(key: str, version: int, text: str, where: str) -> StoredState:
    """What a store holds as text.

    Raises:
        StateVersionError: It was written by a version that this one cannot read.
        StateStoreError: It is no state.
    """
    try:
        return StoredState(key=key, version=version, state=load_state(text))
    except StateVersionError:
        raise
    except AwarenessError as error:
        raise StateStoreError(
            f"{where} holds no state as version {version} of {key!r}. {error} Save a sound state "
            "over it, or delete the key."
        ) from error
