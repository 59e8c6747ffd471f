"""The hashes that bind `run.json` to the chain: one before its first line, one after its last.

The hash before the first line stands for what is known when a run begins. The hash after the last
stands for all that `run.json` says of an ended run, and for what a fork's memory began with.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from coag.errors import TraceError

from ._line_file import backwards
from ._parse import Unreadable, parse_line
from ._regular import regular
from ._run import Seal

FIXED = (
    *("id", "kind", "agent", "model", "seed"),
    *("versions", "configuration", "started_at", "parent"),
)
"""Fields of `run.json` that never change once the run has begun. Its recipe may: code moves."""


def opening_hash(fields: dict[str, Any]) -> str:
    """What stands for the hash before the first line of a run's trace.

    Args:
        fields: What `run.json` holds, as it stands in the file.
    """
    return _hash("opening", {name: fields.get(name) for name in FIXED})


def closing_hash(fields: dict[str, Any], records: int, head: str, remembered: str) -> str:
    """The last hash of an ended run, which follows from all that is sealed.

    Args:
        fields: What `run.json` holds, as it stands in the file; its `seal` does not count.
        records: How many records the trace has.
        head: The hash of its last line; empty for an empty trace.
        remembered: SHA-256 of `remembered.jsonl`; empty where there is none.
    """
    said = {name: value for name, value in fields.items() if name != "seal"}
    return _hash("closing", [records, head, remembered, said])


def info_fields(path: Path) -> dict[str, Any] | None:
    """What a `run.json` holds, as it stands there; None where it cannot be read."""
    try:
        with open(path, "rb", opener=regular) as file:
            found: object = from_json(file.read())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex; empty where it is not there.

    Raises:
        OSError: It cannot be read.
    """
    try:
        with open(path, "rb", opener=regular) as file:
            hashed = sha256()
            while block := file.read(1 << 16):
                hashed.update(block)
            return hashed.hexdigest()
    except FileNotFoundError:
        return ""


def seal_of(trace: Path) -> Seal | None:
    """What a closed trace came to: how many records it has, and its last hash.

    Args:
        trace: A run's `trace.jsonl`.

    Returns:
        The seal; None if there is no trace, or it ends in what is no whole line of this version.

    Raises:
        TraceError: If the trace cannot be read.
    """
    try:
        with FileIO(trace, "r", opener=regular) as file:
            lines = backwards(file, os.fstat(file.fileno()).st_size)
            tail, last = next(lines), next(lines, b"")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TraceError(trace, f"cannot be read: {error.strerror or error}") from error
    if not tail and not last:
        return Seal(records=0, hash="")
    parsed = parse_line(last)
    if tail or isinstance(parsed, Unreadable) or not parsed.entry.hash:
        return None
    return Seal(records=parsed.entry.seq + 1, hash=parsed.entry.hash)


def canonical(value: object) -> bytes:
    """The one JSON text of a value: keys in order, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _hash(tag: str, value: object) -> str:
    return sha256(b"coag run " + tag.encode() + b"\n" + canonical(value)).hexdigest()
