"""Where states rest: the protocol, its checks and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pydantic import Field

from coag.awareness.observation import load_state
from coag.awareness.state import AwarenessState
from coag.errors import AwarenessError, StateVersionError
from coag.schema import Value, cleaned, well_formed

# ---- What goes wrong with a store of states ----


class StateStoreError(AwarenessError):
    """A store of states refused or failed; what it holds is as it was."""


class StaleStateError(StateStoreError):
    """Somebody else changed what is stored since it was loaded; nothing was written.

    Attributes:
        key: Whose state.
        expected: The version that was loaded; 0 for none.
        found: The version that is stored; 0 for none.
    """

    def __init__(self, key: str, expected: int, found: int) -> None:
        self.key = key
        self.expected = expected
        self.found = found
        wanted = f"version {expected}" if expected else "none"
        stored = f"version {found}" if found else "none"
        super().__init__(
            f"The state of {key!r} was changed meanwhile: {wanted} was expected, {stored} is "
            "stored. Nothing was written. Load it again, repeat the change on what is loaded, "
            "and save that; `change_stored` does all this."
        )


# ---- What a store of states must do ----


class StoredState(Value):
    """A state as it is stored."""

    key: str
    """Whose state it is."""
    version: int = Field(ge=1)
    """Given by the store. The versions of a key rise, with gaps, and none is given twice."""
    state: AwarenessState


class StateStore(Protocol):
    """A place where awareness states rest, by key, each with its last versions.

    A key is a text of 1 to 200 characters without control characters, e.g. an agent's name.
    Every method raises `StateStoreError` if the store cannot be reached or was closed, and
    `ValueError` for a key that cannot be one.
    """

    async def load(self, key: str) -> StoredState | None:
        """The newest version; None if there is none.

        Raises:
            StateVersionError: A version of `coag` wrote it that this one cannot read.
        """
        ...

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        """Stores a state as the newest version; what is acknowledged survives a killed process.

        Args:
            key: Whose state.
            state: What to store.
            expected_version: The version that was loaded, 0 for none; if another one is stored
                now, nothing is written. None writes whatever is there.

        Returns:
            Its version.

        Raises:
            StaleStateError: Another version is stored than the expected one.
        """
        ...

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        """The newest versions, newest first, at most `limit` and what the store keeps.

        Raises:
            ValueError: `limit` is below 1.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Removes all versions for good; False if there was none."""
        ...

    async def close(self) -> None:
        """Lets go of files and connections; closing twice does no harm."""
        ...


# ---- What every store checks before it does anything ----


KEPT = 20
"""Versions of a key that a store keeps where nothing else is said."""
PATIENCE = 10.0
"""Seconds to wait for another one that is writing."""
_LONGEST_KEY = 200


def checked_key(key: str) -> str:
    """The key.

    Raises:
        ValueError: It is blank, too long, or has characters that not every store can hold.
    """
    holdable = key == well_formed(cleaned(key)) and not {"\t", "\n"} & set(key)
    if not key.strip() or len(key) > _LONGEST_KEY or not holdable:
        raise ValueError(
            f"A key is a text of 1 to {_LONGEST_KEY} characters without control characters, "
            f"not {key[: _LONGEST_KEY + 1]!r}."
        )
    return key


def checked_keep(keep: int) -> int:
    """How many versions to keep.

    Raises:
        ValueError: It is below 1.
    """
    if keep < 1:
        raise ValueError(f"keep is how many versions of a key stay, at least 1, not {keep!r}.")
    return keep


def checked_limit(limit: int) -> int:
    """How many versions to give.

    Raises:
        ValueError: It is below 1.
    """
    if limit < 1:
        raise ValueError(f"limit is how many versions to give, at least 1, not {limit!r}.")
    return limit


def check_expected(key: str, expected: int | None, found: int) -> None:
    """Refuses a state that rests on another version than the one that is stored.

    Raises:
        StaleStateError: It does.
        ValueError: The expected version is negative.
    """
    if expected is None or expected == found:
        return
    if expected < 0:
        raise ValueError(
            f"expected_version is what was loaded, 0 for none, None for any, not {expected!r}."
        )
    raise StaleStateError(key, expected, found)


def closed(what: str) -> StateStoreError:
    """The error for what is asked of a closed store."""
    return StateStoreError(f"The store of states {what} is closed; open a new one.")


# ---- Changing what is stored without losing what others change meanwhile ----


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


# ---- From stored text to a stored state ----


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
