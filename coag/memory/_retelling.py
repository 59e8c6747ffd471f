"""Telling a call that is repeated after it broke off from one that says the same anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from coag.schema import Record

from ._facts import begin_of
from ._lineage import CONCLUSION, origins


def is_old_call(new: Record, known: Record, since: Iterable[Record]) -> bool:
    """Whether a word is the repetition of a call after which something else was said.

    The moment of which it tells decides, if it tells one (`valid_from`, or the event's `at`).
    Else its cycle does, in one run and activity: cycles only count up. An agent says a thing once
    a cycle, so that it repeats its call where others spoke in between, in runs of their own.
    Where nothing tells the two apart, it is a new call, later than what was said before.

    Args:
        new: The word.
        known: What is stored of it, superseded by now.
        since: What was said otherwise since.
    """
    if _tells_moment(new):
        return begin_of(new) <= begin_of(known)
    origin = new.provenance
    if not origin.run or origin not in origins(known):
        return False
    here = [
        one.cycle
        for record in since
        for one in origins(record)
        if (one.run, one.activity) == (origin.run, origin.activity)
    ]
    if here:
        return max(here) > origin.cycle
    return origin.source_kind == CONCLUSION


def _tells_moment(record: Record) -> bool:
    told = record.fact is not None and record.fact.valid_from is not None
    return told or (record.event is not None and record.event.at is not None)
