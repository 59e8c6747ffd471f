"""What it means that a record supersedes another, as a pure rule."""

from __future__ import annotations

from coag.errors import RecordStoreError
from coag.schema import Record


def superseded_pair(
    old_id: str, old: Record | None, new: Record, known: Record | None
) -> tuple[Record, Record]:
    """Both records as they stand once `new` has superseded `old`.

    Args:
        old_id: Which record is to be superseded.
        old: That record as it is stored, or None.
        new: The record that takes its place.
        known: What is stored under the new record's id, or None. It is kept, not overwritten,
            and becomes current again if it had been superseded.

    Returns:
        The old and the new record to store; equal to what is stored if all is done already.

    Raises:
        RecordStoreError: If this may not be.
    """
    if old is None:
        raise RecordStoreError(f"There is no record {old_id!r} to supersede.")
    if old.id == new.id:
        raise RecordStoreError(f"Record {old_id!r} cannot supersede itself: the text is the same.")
    if (old.kind, old.scope) != (new.kind, new.scope):
        raise RecordStoreError(
            f"Record {old_id!r} is {old.kind.value} in scope {old.scope!r}; a {new.kind.value} "
            f"record in scope {new.scope!r} cannot supersede it."
        )
    if old.superseded_by == new.id and known is not None:
        return old, known
    if old.superseded_by is not None:
        raise RecordStoreError(
            f"Record {old_id!r} was superseded by {old.superseded_by!r} before; "
            "supersede that one instead."
        )
    marked = old.model_copy(update={"superseded_by": new.id})
    current = (known or new).model_copy(update={"supersedes": old_id, "superseded_by": None})
    return marked, current
