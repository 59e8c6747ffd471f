"""Where in a trace each cycle begins."""

from __future__ import annotations

from collections.abc import Iterator

from coag.tracing import RecordKind, TraceIndex


def first_snapshots(index: TraceIndex) -> Iterator[tuple[int, int]]:
    """Of each cycle its number and the position of the first snapshot before it.

    Before the first cycle of a process that is the one with which the process began.
    """
    seen = -1
    for position in index.positions(RecordKind.SNAPSHOT):
        number = index.stretch_of(position)
        if number == seen:
            continue
        seen = number
        cycle = index.stretch(number).cycle
        if cycle:
            yield cycle, position


def cycle_snapshots(index: TraceIndex) -> list[tuple[int, int]]:
    """Of each cycle its number and the position of the snapshot that it began with, in order.

    What arrived before the cycle is in it. Of a cycle that was begun anew the last one counts.
    """
    found: dict[int, int] = {}
    for position in index.positions(RecordKind.SNAPSHOT):
        cycle = index.stretch(index.stretch_of(position)).cycle
        if cycle:
            found[cycle] = position
    return sorted(found.items(), key=lambda one: one[1])
