"""Whether a rebuilt working memory is the one that a snapshot holds."""

from __future__ import annotations

from pydantic import ValidationError

from coag.context import WorkingMemory
from coag.schema import Snapshot

from ._book import difference


def memory_difference(
    memory: WorkingMemory, record: Snapshot, *, old: bool
) -> tuple[str, object, object] | None:
    """The first difference between a rebuilt memory and the recorded one, with both values there.

    Args:
        memory: What percepts and outcomes have led to.
        record: What the trace says that they led to.
        old: Whether an older version of the format wrote it, which lacks what came later.
    """
    ours, theirs = memory.to_json(), record.working_memory
    if ours == theirs:
        return None
    if old:  # fields that came later are not in it
        ours = {name: held for name, held in ours.items() if name in theirs}
    found = difference(ours, theirs)
    if found is None:
        return None
    try:  # fields within that came later have their defaults
        read = WorkingMemory.model_validate(theirs).to_json()
    except ValidationError:
        return found
    return difference(ours, {name: held for name, held in read.items() if name in ours})
