"""Records for tests of the store, with as little to say as possible."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from coag.schema import MemoryKind, Provenance, Record, Trust, record_id

START = datetime(2026, 1, 1, tzinfo=UTC)


def remembered(
    text: str,
    *,
    kind: MemoryKind = MemoryKind.EPISODIC,
    scope: str = "alice",
    source: str = "alice",
    run: str = "",
    minutes: int = 0,
    cycle: int = 1,
    trust: Trust = Trust.USER,
    **fields: Any,
) -> Record:
    """A record; events of one `run` are neighbours."""
    return Record(
        id=record_id(kind, scope, text),
        kind=kind,
        text=text,
        scope=scope,
        created_at=START + timedelta(minutes=minutes),
        provenance=Provenance(
            run=run, activity="main", cycle=cycle, source=source, source_kind="agent", trust=trust
        ),
        **fields,
    )
