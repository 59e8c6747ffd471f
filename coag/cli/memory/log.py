"""What people did to a memory, in a file beside it: one JSON object a line, only ever appended.

Traces belong to runs, and a person's change to none; so it is written here. It names records by
their ids and never repeats what they say, so that what is forgotten is forgotten here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import Field, ValidationError

from coag._util.files import flush_to_disk, private
from coag.errors import RecordStoreError
from coag.schema import Moment, SystemClock, Value

from .place import MemoryPlace

LOG_FILE = "memory-log.jsonl"

Action = Literal[
    "edited",
    "forgot",
    "forgot_scope",
    "revoked",
    "imported",
    "reembedded",
    "mended",
    "slept",
    "restored",
    "persona",
]


class LoggedChange(Value):
    """Something that a person did to a memory."""

    at: Moment
    action: Action
    by: str
    """Who, as they said."""
    records: tuple[str, ...] = ()
    """Ids of the records that it was done to; the one that was named comes first."""
    reason: str = ""
    details: dict[str, Any] = Field(default_factory=dict)
    """Further details, by the sort of action."""


def note(
    place: MemoryPlace,
    action: Action,
    *,
    by: str,
    records: tuple[str, ...] = (),
    reason: str = "",
    details: Mapping[str, Any] | None = None,
) -> bool:
    """Appends what was done to the memory's log; False at a server, which has none."""
    if place.folder is None:
        return False
    done = LoggedChange(
        at=SystemClock().now(),
        action=action,
        by=by,
        records=records,
        reason=reason,
        details=dict(details or {}),
    )
    path = place.folder / LOG_FILE
    try:
        with open(path, "ab", opener=private) as file:
            file.write((done.model_dump_json() + "\n").encode())
            flush_to_disk(file)
    except OSError as error:
        raise RecordStoreError(
            f"It is done, but could not be noted in {str(path)!r}: {error.strerror or error}."
        ) from error
    return True


def changes_of(place: MemoryPlace, name: str) -> list[LoggedChange]:
    """What people did to a record, oldest first; lines that are damaged are passed over."""
    if place.folder is None:
        return []
    path, changes = place.folder / LOG_FILE, list[LoggedChange]()
    try:
        lines = path.read_bytes().splitlines() if path.is_file() else []
    except OSError as error:
        raise RecordStoreError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    for line in lines:
        try:
            done = LoggedChange.model_validate_json(line)
        except ValidationError:
            continue
        # A revocation also touches records that stayed: they hold again, or are trusted less.
        touched = (*done.records, *_ids(done, "restored"), *lowered_by(done))
        if any(one.startswith(name) for one in touched):
            changes.append(done)
    return changes


def lowered_by(done: LoggedChange) -> list[str]:
    """Ids of the records that a revocation left without the word of one of their sources."""
    return _ids(done, "lowered")


def _ids(done: LoggedChange, detail: str) -> list[str]:
    value = done.details.get(detail)
    names = cast("list[Any]", value) if isinstance(value, list) else []
    return [one for one in names if isinstance(one, str)]
