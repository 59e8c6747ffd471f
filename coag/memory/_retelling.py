"""Telling a call that is repeated after it broke off from one that says the same anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from coag.schema import Record

from ._facts import is_matter
from ._lineage import CONCLUSION, at_least, origins, rank_of, trust_of
from ._stretches import begin_of, holds, is_dated, same_value


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


def moves(new: Record, known: Record, by: Record | None, others: Iterable[Record]) -> bool:
    """Whether a known text is said to hold since another time than before.

    It has one stretch: the last of those that the best trusted of its sources tell. A word that
    is trusted more than all before, and so ends what was trusted more than they, begins its own.

    Args:
        new: The word.
        known: What is stored of it.
        by: What took its place, if something did.
        others: What else is current on the matter.
    """
    trust, was, at = new.provenance.trust, trust_of(known), new.created_at
    if not is_matter(known.fact) or not at_least(trust, was):
        return False
    better = rank_of(trust) > rank_of(was)
    if is_dated(new):
        first, second = begin_of(known), begin_of(new)
        return second != first if better else second > first
    if by is not None:
        return not is_old_call(new, known, [by, *others])
    if not holds(known, at) or not better:
        return not holds(known, at)
    return any(
        rank_of(was) < rank_of(trust_of(one)) <= rank_of(trust) and not same_value(one, known)
        for one in others
    )


def _tells_moment(record: Record) -> bool:
    return is_dated(record) or (record.event is not None and record.event.at is not None)
