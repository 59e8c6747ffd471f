"""What goes wrong with a store of states."""

from __future__ import annotations

from coag.errors import AwarenessError


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
