"""When a fact held before, where its value returned in the same words. Pure rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Record, Stretch

from ._facts import is_matter
from ._lineage import at_least, rank_of, trust_of, with_lineage
from ._stretches import begin_of, end_of, is_dated

EARLIER_KEPT = 20
"""Earlier stretches that a record keeps, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A stretch of time in which what a record says held."""

    record: Record
    since: datetime | None
    """None where nobody told."""
    until: datetime | None
    """None where it holds on, or nobody told."""


def with_earlier(record: Record, new: Record, known: Record, others: Iterable[Record]) -> Record:
    """A known text that was said again, with the times in which it held before.

    As the stretch that the fact itself tells of, these are told by the best trusted of its
    sources: a word that is trusted better than all before begins anew, one that is trusted less
    adds none.

    Args:
        record: The text as it is to be stored.
        new: The word.
        known: What was stored of it.
        others: What else is said on its matter.
    """
    trust, was = rank_of(new.provenance.trust), rank_of(trust_of(known))
    if not is_matter(known.fact) or trust < was:
        return record
    if trust > was:
        return with_lineage(record, earlier=()) if known.lineage.earlier else record
    found = {one.since: one for one in known.lineage.earlier}
    for one in (known, new):
        if one is known or is_dated(one):
            found.setdefault(begin_of(one), _stretch_of(one, others))
    begin = begin_of(record)
    earlier = sorted((one for one in found.values() if one.since < begin), key=_since)
    kept = tuple(earlier[-EARLIER_KEPT:])
    return record if kept == record.lineage.earlier else with_lineage(record, earlier=kept)


def held_when(chain: Sequence[Record]) -> tuple[Held, ...]:
    """When each record of a chain held, oldest first; one whose value returned comes again.

    An earlier stretch lasts until another begins that is trusted no less, as every stretch does.

    Args:
        chain: What `LongTermMemory.history` gives.
    """
    earlier = [(one, stretch) for one in chain for stretch in one.lineage.earlier]
    held = [_held(one, earlier) for one in chain]
    for one, stretch in sorted(earlier, key=lambda both: both[1].since, reverse=True):
        until = _first(one, stretch.since, [(other, begin_of(other)) for other in chain])
        until = _earliest(until, _first(one, stretch.since, _begins(earlier)))
        part = Held(record=one, since=stretch.since, until=_earliest(until, stretch.until))
        after = (n for n, other in enumerate(held) if _begin(other) > stretch.since)
        place = next(after, len(held))
        following = held[place] if place < len(held) else None
        if following is not None and following.record is one and following.since == part.until:
            held[place] = Held(record=one, since=part.since, until=following.until)
        else:
            held.insert(place, part)
    return tuple(held)


def _held(one: Record, earlier: Sequence[tuple[Record, Stretch]]) -> Held:
    """The stretch of which a record's fact tells, cut where an earlier one of another began."""
    since = None if one.fact is None else one.fact.valid_from
    if one.fact is None:
        return Held(record=one, since=None, until=None)
    cut = _first(one, begin_of(one), _begins(earlier))
    return Held(record=one, since=since or _said(one), until=_earliest(end_of(one), cut))


def _said(one: Record) -> datetime | None:
    """Since when an undated fact that has earlier stretches holds; None for one that has none."""
    return begin_of(one) if one.lineage.earlier else None


def _stretch_of(one: Record, others: Iterable[Record]) -> Stretch:
    """When a word holds; an end that is where another begins was not told, and may still move."""
    end = end_of(one)
    cut = end is not None and any(begin_of(other) == end for other in others)
    return Stretch(since=begin_of(one), until=None if cut else end)


def _begins(earlier: Sequence[tuple[Record, Stretch]]) -> list[tuple[Record, datetime]]:
    return [(one, stretch.since) for one, stretch in earlier]


def _first(
    one: Record, after: datetime, begins: Iterable[tuple[Record, datetime]]
) -> datetime | None:
    """When the first begins after a time that is trusted no less than a record."""
    trust = trust_of(one)
    found = (at for other, at in begins if at > after and at_least(trust_of(other), trust))
    return min(found, default=None)


def _begin(held: Held) -> datetime:
    return begin_of(held.record) if held.since is None else held.since


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _since(stretch: Stretch) -> datetime:
    return stretch.since
