"""When facts on one matter hold: stretches of time that follow each other. Pure rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Record
from coag.store import folded

from ._lineage import at_least, rank_of, trust_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a word stands among what is said on its matter."""

    record: Record
    """The word with its end and its neighbours."""
    ended: tuple[Record, ...] = ()
    """What ceases to hold when it begins, best trusted first, as it was before."""
    contradicts: tuple[Record, ...] = ()
    """What says otherwise of the same time and stays, best trusted first."""
    later: Record | None = None
    """What holds after it."""
    changed: tuple[Record, ...] = ()
    """Its neighbours that are not as they were."""

    @property
    def superseded(self) -> tuple[Record, ...]:
        """What was current and is not any more, now that this is said."""
        begun = {one.id for one in self.changed if one.superseded_by == self.record.id}
        return tuple(one for one in self.ended if one.superseded_by is None and one.id in begun)


def begin_of(record: Record) -> datetime:
    """Since when what a record says holds: as is told, else when it happened or was made."""
    fact = record.fact
    return record.happened_at if fact is None or fact.valid_from is None else fact.valid_from


def end_of(record: Record) -> datetime | None:
    """When it ceased or ceases to hold, as far as is known."""
    return None if record.fact is None else record.fact.valid_until


def is_dated(record: Record) -> bool:
    """Whether somebody told since when it holds."""
    return record.fact is not None and record.fact.valid_from is not None


def is_bounded(record: Record) -> bool:
    """Whether somebody told since when, or until when, it holds."""
    return is_dated(record) or end_of(record) is not None


def in_force(record: Record, at: datetime) -> bool:
    """Whether nothing is told by which a record does not hold yet, or no longer."""
    return _lasts(record, at) and not (is_dated(record) and begin_of(record) > at)


def holds(record: Record, at: datetime) -> bool:
    """Whether what a record says holds at that time."""
    end = end_of(record)
    return begin_of(record) <= at and (end is None or end > at)


def same_value(one: Record, other: Record) -> bool:
    """Whether two facts on one matter say the same of it."""
    if one.fact is None or other.fact is None:
        return False
    return folded(one.fact.value) == folded(other.fact.value)


def bounded(record: Record, end: datetime | None) -> Record:
    """A record whose fact holds no longer than that."""
    own = end_of(record)
    if record.fact is None or end is None or (own is not None and own <= end):
        return record
    return _with_times(record, valid_until=end)


def holding_again(record: Record, since: datetime | None = None) -> Record:
    """A record whose fact has no end, and holds from then on if that is given."""
    if record.fact is None:
        return record
    if since is None:
        return _with_times(record, valid_until=None)
    return _with_times(record, valid_from=since, valid_until=None)


def saying_so(word: Record, others: Iterable[Record]) -> Record | None:
    """What says the same of the time at which a word begins, best trusted first.

    One that is told to hold since another day is a stretch of its own, so that what held in
    between may still come; unless the word is trusted less and adds nothing.
    """
    begin, trust = begin_of(word), word.provenance.trust
    found = [
        one
        for one in others
        if same_value(one, word)
        and holds(one, begin)
        and not (
            is_dated(one)
            and is_dated(word)
            and begin_of(one) != begin
            and at_least(trust, trust_of(one))
        )
    ]
    return max(found, key=_best, default=None)


def comes_later(word: Record, others: Iterable[Record], at: datetime) -> Record | None:
    """What takes a word's place, being trusted no less: the first that begins after it.

    What was told with an end that is over by now counts no more.
    """
    trust = word.provenance.trust
    found = (
        one
        for one in _standing(others, at)
        if _follows(one, word) and at_least(trust_of(one), trust)
    )
    return min(found, key=_first, default=None)


def is_last(word: Record, others: Iterable[Record]) -> bool:
    """Whether nothing begins after a word, so that only what is current has to do with it."""
    return not any(_follows(one, word) for one in others)


def placed(word: Record, others: Sequence[Record], at: datetime) -> Place:
    """Puts a word in its place among what is said on its matter.

    Each holds until the first begins that is trusted no less. Of two that begin at one time the
    one that is said later holds. What begins in future lets hold what holds now, until then.

    Args:
        word: With its own trust; in no chain yet.
        others: What is said on the matter: all of it, superseded words too, where something
            current begins later than the word; else those that are current will do.
        at: Now.
    """
    over = not _lasts(word, at)
    later = comes_later(word, others, at)
    record = word if later is None else bounded(word, begin_of(later))
    ended = () if over else _ended_by(word, others, at)
    links: dict[str, object] = {}
    if ended:
        links["supersedes"] = ended[0].id
    if later is not None and begin_of(later) <= at:
        links["superseded_by"] = later.id
    record = record.model_copy(update=links)
    changed = [now for one in ended if (now := ended_by(one, record, at)) != one]
    if later is not None and later.supersedes in (None, *(one.id for one in ended)):
        changed.append(later.model_copy(update={"supersedes": record.id}))
    touched = {one.id for one in changed}
    changed += [one for one in _overtaken(others, at) if one.id not in touched]
    apart = () if over else _otherwise(record, ended, later, others, at)
    return Place(record=record, ended=ended, contradicts=apart, later=later, changed=tuple(changed))


def ended_by(old: Record, by: Record, at: datetime | None = None) -> Record:
    """A record that holds until another begins; superseded by it once that has begun.

    Args:
        old: The record.
        by: What takes its place.
        at: Now; None where the other has begun for sure.
    """
    begin = begin_of(by)
    begun = at is None or begin <= at or old.fact is None
    update = {"superseded_by": by.id if begun else None}
    return bounded(old, begin).model_copy(update=update)


def without(record: Record, others: Sequence[Record]) -> list[Record]:
    """The others on its matter as they are when a record leaves its place: its neighbours meet."""
    heir = next((one for one in others if one.id == record.superseded_by), None)
    heir = heir or next((one for one in others if one.supersedes == record.id), None)
    before = next((one for one in others if one.id == record.supersedes), None)
    left: list[Record] = []
    for one in others:
        now = one
        if one.superseded_by == record.id or (one is before and _pending(one, record)):
            by = record.superseded_by
            now = one.model_copy(update={"superseded_by": by})
            if is_dated(record) and end_of(one) == begin_of(record):
                now = holding_again(now)
                now = now if heir is None else bounded(now, begin_of(heir))
        if one is heir and one.supersedes == record.id:
            now = now.model_copy(update={"supersedes": None if before is None else before.id})
        left.append(now)
    return left


def _overtaken(others: Iterable[Record], at: datetime) -> list[Record]:
    """What was to be superseded when a time came that has come since, and now is."""
    every = list(others)
    begun = {one.supersedes: one for one in every if begin_of(one) <= at}
    return [
        one.model_copy(update={"superseded_by": begun[one.id].id})
        for one in every
        if one.id in begun and _pending(one, begun[one.id])
    ]


def _ended_by(word: Record, others: Iterable[Record], at: datetime) -> tuple[Record, ...]:
    begin, trust = begin_of(word), word.provenance.trust
    found = [
        one
        for one in _standing(others, at)
        if not _follows(one, word) and _beyond(one, begin) and at_least(trust, trust_of(one))
    ]
    return tuple(sorted(found, key=_best, reverse=True))


def _otherwise(
    word: Record,
    ended: Sequence[Record],
    later: Record | None,
    others: Iterable[Record],
    at: datetime,
) -> tuple[Record, ...]:
    """What says otherwise of a time of which a current word tells, too."""
    if word.superseded_by is not None:
        return ()
    end, begin = end_of(word), begin_of(word)
    passed = {one.id for one in ended} | {None if later is None else later.id}
    found = [
        one
        for one in _standing(others, at)
        if one.superseded_by is None
        and one.id not in passed
        and not same_value(one, word)
        and _lasts(one, begin)
        and (end is None or begin_of(one) < end)
    ]
    return tuple(sorted(found, key=_best, reverse=True))


def _standing(others: Iterable[Record], at: datetime) -> list[Record]:
    """What has a place among the words: all but what ended by itself, so that nothing follows."""
    every = list(others)
    followed = {one.supersedes for one in every}
    return [
        one
        for one in every
        if one.superseded_by is not None or one.id in followed or _lasts(one, at)
    ]


def _follows(one: Record, word: Record) -> bool:
    """Whether it begins later; of two that tell no time, the clocks of machines may differ."""
    return begin_of(one) > begin_of(word) and (is_dated(one) or is_dated(word))


def _first(record: Record) -> tuple[datetime, bool, datetime, str]:
    begin = begin_of(record)
    return begin, end_of(record) == begin, record.created_at, record.id


def _pending(one: Record, by: Record) -> bool:
    """Whether a record holds until another begins that it is not superseded by yet."""
    return one.superseded_by is None and end_of(one) == begin_of(by)


def _lasts(record: Record, at: datetime) -> bool:
    """Whether it has not ceased to hold by then."""
    end = end_of(record)
    return end is None or end > at


def _beyond(record: Record, at: datetime) -> bool:
    """Whether it lasts beyond a time; one that was superseded without an end does not."""
    if end_of(record) is None:
        return record.superseded_by is None
    return _lasts(record, at)


def _best(record: Record) -> tuple[int, datetime, datetime, str]:
    return rank_of(trust_of(record)), begin_of(record), record.created_at, record.id


def _with_times(record: Record, **times: datetime | None) -> Record:
    if record.fact is None:
        return record
    return record.model_copy(update={"fact": record.fact.model_copy(update=dict(times))})
