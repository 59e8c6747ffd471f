"""Changing what is stored without losing what others change meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from coag.awareness.state import AwarenessState

from ._errors import StaleStateError, StateStoreError
from ._protocol import StateStore, StoredState

_TRIES = 10


async def change_stored(
    store: StateStore,
    key: str,
    change: Callable[[AwarenessState | None], AwarenessState],
    *,
    tries: int = _TRIES,
) -> StoredState:
    """Loads a state, changes it and saves it; again on the newer one, where one came between.

    Args:
        store: Where.
        key: Whose state.
        change: From the stored state, None if there is none, to the one to store. It may be
            called more than once, so it must only compute.
        tries: How often at most.

    Returns:
        What is stored now.

    Raises:
        StateStoreError: Others were faster each time.
        ValueError: `tries` is below 1.
    """
    if tries < 1:
        raise ValueError(f"tries is at least 1, not {tries!r}.")
    for _ in range(tries):
        before = await store.load(key)
        state = change(before.state if before else None)
        try:
            version = await store.save(key, state, before.version if before else 0)
        except StaleStateError:
            continue
        return StoredState(key=key, version=version, state=state)
    raise StateStoreError(
        f"The state of {key!r} was changed by others {tries} times in a row while it was to be "
        "changed here. Nothing was written: try later, or give more tries."
    )
