"""What a store of states must do."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from coag.awareness.state import AwarenessState
from coag.schema import Value


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
