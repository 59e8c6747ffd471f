"""The records of a trace on which a cycle can have rested."""

from __future__ import annotations

from collections.abc import Iterator

from coag.schema import TraceRecord
from coag.tracing import TraceIndex

from ._procedures import snapshots_with_texts


def records_of(index: TraceIndex, cycle: int) -> Iterator[TraceRecord]:
    """What a cycle can have rested on: its own records, and those since the cycle before began.

    Before them the snapshot that holds the procedures' texts. Of a cycle that is not there all.
    """
    stretches = index.of_cycle(cycle)
    first = index.stretch(max(0, stretches[0] - 1)).first if stretches else 0
    last = index.stretch(stretches[-1] if stretches else -1) if index.stretches else None
    end = last.first + last.count if last else 0
    texts = [at for at in snapshots_with_texts(index) if at < first][-1:]
    for position in (*texts, *range(first, end)):
        (line,) = index.read([position])
        if line.entry is not None:
            yield line.entry.body
