"""States in this process's memory: for tests, and where nothing need outlive it."""

from __future__ import annotations

from coag.awareness.state import AwarenessState

from .protocol import (
    KEPT,
    StoredState,
    check_expected,
    checked_keep,
    checked_key,
    checked_limit,
    closed,
)


class InMemoryStateStore:
    """A `StateStore` in memory.

    Args:
        keep: How many versions of each key stay.

    Raises:
        ValueError: `keep` is below 1.
    """

    def __init__(self, *, keep: int = KEPT) -> None:
        self._keep = checked_keep(keep)
        self._versions: dict[str, list[StoredState]] = {}
        self._last = 0
        self._closed = False

    async def load(self, key: str) -> StoredState | None:
        """The newest version; None if there is none."""
        versions = self._of(key)
        return versions[-1] if versions else None

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        """Stores a state as the newest version."""
        versions = self._of(key)
        check_expected(key, expected_version, versions[-1].version if versions else 0)
        self._last += 1
        stored = StoredState(key=key, version=self._last, state=state)
        self._versions[key] = [*versions, stored][-self._keep :]
        return self._last

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        """The newest versions, newest first."""
        return self._of(key)[: -checked_limit(limit) - 1 : -1]

    async def delete(self, key: str) -> bool:
        """Removes all versions for good; False if there was none."""
        self._of(key)
        return self._versions.pop(key, None) is not None

    async def close(self) -> None:
        """Lets go of all states; closing twice does no harm."""
        self._closed = True
        self._versions.clear()

    def _of(self, key: str) -> list[StoredState]:
        if self._closed:
            raise closed("in memory")
        return self._versions.get(checked_key(key), [])
