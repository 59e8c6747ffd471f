"""A run while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from coag.schema import Entry
from coag.tracing import RunFolder, TraceLine, TraceTail, read_run

_INTERVAL = 0.2
"""Seconds between two looks at the file."""


def wait() -> None:
    """Lets some time pass before the next look."""
    time.sleep(_INTERVAL)


def followed(
    folder: RunFolder,
    entry_of: Callable[[TraceLine], Entry | None],
    pause: Callable[[], None] = wait,
) -> Iterator[Entry]:
    """The records that are there and then those that come, until the run ends or Ctrl-C.

    A run that was killed has not ended: it is waited for, and may be resumed.

    Args:
        folder: The run; it need not have begun its trace.
        entry_of: What to show of a line.
        pause: Is called when there is nothing new.

    Raises:
        TraceError: If the run cannot be read.
    """
    tail = TraceTail(folder.trace_path)
    while True:
        # Looked at first: what was written before the end is then read before it is believed.
        ended = read_run(folder.path).ended_at is not None
        for line in tail.lines():
            entry = entry_of(line)
            if entry is not None:
                yield entry
        if ended:
            return
        try:
            pause()
        except KeyboardInterrupt:
            return
