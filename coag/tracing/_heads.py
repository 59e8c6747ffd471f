"""What a line of a trace is, told from its beginning: it need not be parsed."""

from __future__ import annotations

import re
from datetime import datetime
from enum import IntEnum

from coag.schema import TRACE_VERSION, Percept, Snapshot, SnapshotReason, TurnStart

from ._parse import Unreadable, parse_line

HEAD = 600
"""Bytes of a line in which a writer has said what it is and which cycle it is of."""
_RECORD = re.compile(rb'^\{"v":(\d+),"seq":\d+,(?:"hash":"\w*",)?"body":\{"record":"(\w+)"')
_SCALARS = rb'(?:,"(?:id|intent_id|at|turn)":(?:"[^"\\]*"|\d+))*'
_CYCLE = re.compile(_SCALARS + rb',"cycle":(\d{1,9})(?:,"reason":"(\w+)")?[,}]')
_AT = re.compile(rb'[{,]"at":"([0-9T:.Z+-]{10,40})"')
NO_ENVIRONMENT = b'"environment":null}}\n'
"""How a line ends whose snapshot holds no environment."""
_MOST = 10**9
"""Cycles beyond which a number is none of a cycle."""
_SHORTEST = 48
"""Bytes; fewer than those of any record: a number, a body, its kind, a time and a cycle."""
_NAMES = (b'"seq"', b'"body"', b'"record"')
"""What every record says, unless its names are escaped."""
_NEVER_TOLD = frozenset({b"turn_start", b"percept"})
"""Records whose cycle is not asked for: what they stand before tells it."""


class RecordKind(IntEnum):
    """What a line holds, as `record` says it; in the order of `coag.schema.TraceRecord`."""

    UNREADABLE = 0
    """No record that this version knows."""
    OUTCOME = 1
    PERCEPT = 2
    MODEL_CALL = 3
    INTENT = 4
    RECEIPT = 5
    SNAPSHOT = 6
    ACTIONS = 7
    NOTE = 8
    TURN_START = 9
    TURN_END = 10
    WRITTEN = 11


_KINDS = {kind.name.lower().encode(): kind for kind in RecordKind if kind}


def time_of(head: bytes) -> datetime | None:
    """When a line was recorded, from its head; None where that does not tell."""
    found = _AT.search(head)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found[1].decode())
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


_NOTHING = (RecordKind.UNREADABLE, 0, False)


def told(line: bytes) -> tuple[RecordKind, int, bool]:
    """What a line says it is, which cycle it names (0 for none), and whether a stretch begins."""
    head = line[:HEAD]
    found = _RECORD.match(head)
    if found is None or int(found[1]) != TRACE_VERSION or not line.endswith(b"}}\n"):
        return _told_otherwise(line)
    kind = _KINDS.get(found[2], RecordKind.UNREADABLE)
    if found[2] in _NEVER_TOLD:
        return kind, 0, kind is RecordKind.TURN_START
    cycle = _CYCLE.match(head, found.end())
    if cycle is None or (kind is RecordKind.SNAPSHOT and cycle[2] is None):
        return _told_otherwise(line)
    return kind, int(cycle[1]), kind is RecordKind.SNAPSHOT and cycle[2] == b"cycle"


def _told_otherwise(line: bytes) -> tuple[RecordKind, int, bool]:
    """The same of a line that was not written as a writer of this version does it."""
    if _no_record(line):
        return _NOTHING
    parsed = parse_line(line)
    if isinstance(parsed, Unreadable):
        return _NOTHING
    body = parsed.entry.body
    kind = _KINDS[body.record.encode()]
    if isinstance(body, Percept | TurnStart):
        return kind, 0, isinstance(body, TurnStart)
    begins = isinstance(body, Snapshot) and body.reason is SnapshotReason.CYCLE
    return kind, body.cycle if 0 <= body.cycle < _MOST else 0, begins


def _no_record(line: bytes) -> bool:
    """True of a line that need not be parsed to be known as none."""
    if len(line) < _SHORTEST:
        return True
    return b"\\" not in line and not all(name in line for name in _NAMES)
