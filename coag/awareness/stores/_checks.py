"""What every store checks before it does anything."""

from __future__ import annotations

from coag.schema import cleaned, well_formed

from ._errors import StaleStateError, StateStoreError

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
