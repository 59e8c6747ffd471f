"""The records of a run in RAM: which kind of run they are of, and where they begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from coag.schema import Entry, SnapshotReason, TraceRecord
from coag.tracing import RunKind


def is_opening(first: TraceRecord) -> bool:
    """Whether a run begins with this record: a snapshot that says so."""
    return first.record == "snapshot" and first.reason is not SnapshotReason.CYCLE


def numbered(
    records: Iterable[Entry] | Iterable[TraceRecord],
) -> Iterator[tuple[int, TraceRecord]]:
    for number, one in enumerate(cast("Iterable[Entry | TraceRecord]", records)):
        yield (one.seq, one.body) if isinstance(one, Entry) else (number, one)


def kind_of(
    records: Iterator[tuple[int, TraceRecord]], before: list[tuple[int, TraceRecord]]
) -> RunKind:
    """Which kind of run this is, by the first record that only one of them has.

    What is read on the way is added to `before`.
    """
    for one in records:
        before.append(one)
        record = one[1]
        if record.record == "outcome":
            return "coag"
        if record.record == "note" and record.about == "constraint":
            return "plain"  # rules judge its calls outside of any cycle
        if record.record == "intent":
            return "plain" if record.candidate_id is None else "coag"
    return "coag" if any(it.record == "snapshot" for _, it in before) else "plain"
