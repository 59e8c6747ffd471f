"""The records of a run in RAM: which kind of run they are of, and where they begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from coag.schema import Entry, TraceRecord
from coag.tracing import RunKind


def is_opening(first: tuple[int, TraceRecord] | None) -> bool:
    return first is not None and getattr(first[1], "reason", "cycle") != "cycle"


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
        if record.record == "intent":
            return "coag" if record.candidate_id and not _guarded(before) else "plain"
    return "coag" if any(it.record == "snapshot" for _, it in before) else "plain"


def _guarded(before: Iterable[tuple[int, TraceRecord]]) -> bool:
    """Whether rules have judged a call outside of any cycle, as for plain agents."""
    return any(it.record == "note" and it.about == "constraint" for _, it in before)
