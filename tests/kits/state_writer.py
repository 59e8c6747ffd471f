"""Changes a stored awareness state until it is killed, and prints each change once it is stored.

    python -m kits.state_writer folder|sqlite PATH

Each change is a step more; a line of the output is the step that was stored.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from coag.awareness import (
    AwarenessState,
    FolderStateStore,
    SqliteStateStore,
    StateStore,
    change_stored,
)

KEY = "shared"
AT = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)


def one_more(state: AwarenessState | None) -> AwarenessState:
    """The state one step later."""
    return (state or AwarenessState(domain="conversation", at=AT)).tick(AT)


def opened(kind: str, path: Path) -> StateStore:
    """The store of this kind at a path."""
    return FolderStateStore(path) if kind == "folder" else SqliteStateStore(path)


async def _write(kind: str, path: Path) -> None:
    store = opened(kind, path)
    while True:
        stored = await change_stored(store, KEY, one_more, tries=1000)
        sys.stdout.write(f"{stored.state.step}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_write(sys.argv[1], Path(sys.argv[2])))
