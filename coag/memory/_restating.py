"""What becomes of a text that is known when it is said again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coag.schema import Record

from ._earlier import with_earlier
from ._facts import is_matter
from ._lineage import at_least, origins, trust_of, with_origin
from ._records import Records
from ._retelling import moves
from ._stretches import (
    Place,
    begin_of,
    end_of,
    ended_by,
    holding_again,
    is_dated,
    is_last,
    placed,
    saying_so,
    without,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restated:
    """What becomes of a known text."""

    place: Place
    repeated: bool
    """Whether nothing was said but what the same origin had said before."""


async def restated(
    records: Records, new: Record, known: Record, others: Sequence[Record]
) -> Restated:
    """Puts a known text in its place now that it is said again.

    Args:
        records: What there is.
        new: The word.
        known: What is stored of it.
        others: What else is current on its matter.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    record = with_origin(known, new.provenance)
    if record.fact is None and at_least(new.provenance.trust, trust_of(known)):
        record = record.model_copy(update={"fact": new.fact})
    if new.fact is None or known.fact is None:
        others = await records.on_matter(record)
    by = await superseder(records, known) or _follower(known, others, new)
    gone = known.superseded_by is not None and by is None
    place: Place | None = None
    if gone or _becomes_matter(record, known) or moves(new, known, by, others):
        place = await _moved(records, new, known, record, certain=gone or is_dated(new))
    repeated = place is None and new.provenance in origins(known)
    if place is None and repeated:
        place = await _completed(records, new, known, record, others)
    place = place or _staying(new, known, record, others)
    said = others if by is None else [by, *others]
    now = with_earlier(place.record, new, known, said)
    return Restated(place=replace(place, record=now), repeated=repeated)


async def superseder(records: Records, record: Record) -> Record | None:
    """What superseded a record, if something did and is there."""
    name = record.superseded_by
    return None if name is None else next(iter(await records.get([name])), None)


async def every_word(records: Records, word: Record, others: Sequence[Record]) -> Sequence[Record]:
    """All that has to do with the place of a word: superseded ones too, where it is not the last.

    Args:
        records: What there is.
        word: The word.
        others: What is current on its matter.
    """
    if is_last(word, others):
        return others
    return await records.all_on_matter(word)


async def _moved(
    records: Records, new: Record, known: Record, record: Record, *, certain: bool
) -> Place | None:
    """The text as it holds since another time; None if what holds stays.

    Args:
        records: What there is.
        new: The word.
        known: What is stored of it.
        record: The same with the new origin.
        certain: Whether it has a place for sure, beside what is trusted more.
    """
    every = await records.all_on_matter(record)
    word, rest = record, list(every)
    if known.fact is not None:
        word = holding_again(record, begin_of(new))
        rest = without(known, every)
    word = _with_end_of(new, word)
    linked = any(one.id == known.supersedes for one in every)
    links = {"superseded_by": None, "supersedes": None if linked else known.supersedes}
    how = placed(word.model_copy(update=links), rest, new.created_at)
    if not certain and known.superseded_by is not None:
        same = saying_so(word, [one for one in rest if one.superseded_by is None])
        if same is not None and at_least(trust_of(same), new.provenance.trust):
            heir = next((one for one in every if one.id == known.superseded_by), None)
            if heir is None or at_least(trust_of(heir), trust_of(record)):
                return None
            # Now that it is trusted more than what took its place, it gives way to its like.
            return Place(record=record.model_copy(update={"superseded_by": same.id}))
        if how.contradicts and not how.superseded:
            return None
    before = {one.id: one for one in every}
    after = {one.id: one for one in (*rest, *how.changed)}
    changed = tuple(one for name, one in after.items() if one != before[name])
    return replace(how, changed=changed)


async def _completed(
    records: Records, new: Record, known: Record, record: Record, others: Sequence[Record]
) -> Place:
    """What was begun when the very same was said, and perhaps broken off."""
    if known.superseded_by is not None and not is_dated(known):
        return Place(record=record)
    word = record
    if is_dated(known):
        every = await every_word(records, known, others)
        word = _with_end_of(new, holding_again(record))
    else:  # what was said since is no part of it
        every = [one for one in others if one.created_at <= known.created_at]
    how = placed(word, every, new.created_at)
    changed = list(how.changed)
    if known.supersedes is not None and not changed:
        half = await records.get([known.supersedes])
        olds = [old for old in half if old.superseded_by == known.id]
        changed = [now for old in olds if (now := ended_by(old, known)) != old]
    return replace(how, changed=tuple(changed))


def _with_end_of(new: Record, record: Record) -> Record:
    """A record whose fact ends when a word on it says so."""
    if record.fact is None or new.fact is None:
        return record
    times = {"valid_until": new.fact.valid_until}
    return record.model_copy(update={"fact": record.fact.model_copy(update=times)})


def _staying(new: Record, known: Record, record: Record, others: Sequence[Record]) -> Place:
    """The text where it is, beside those that it ends now that one more says it."""
    if known.superseded_by is not None or not is_matter(record.fact):
        return Place(record=record)
    how = placed(_word(record, new), others, new.created_at)
    links = {"supersedes": record.supersedes or how.record.supersedes}
    later = None if how.later is None else how.later.id
    changed = tuple(one for one in how.changed if one.id != later)
    return replace(how, record=record.model_copy(update=links), changed=changed, later=None)


def _word(record: Record, new: Record) -> Record:
    """What is said by saying a known text again: the same, of the time of which it tells now."""
    fact = record.fact
    if fact is not None:
        times = {
            "valid_from": None if new.fact is None else new.fact.valid_from,
            "valid_until": None if new.fact is None else new.fact.valid_until,
        }
        fact = fact.model_copy(update=times)
    update = {
        "provenance": new.provenance,
        "lineage": new.lineage,
        "created_at": new.created_at,
        "event": new.event,
        "fact": fact,
        "supersedes": None,
        "superseded_by": None,
    }
    return record.model_copy(update=update)


def _becomes_matter(record: Record, known: Record) -> bool:
    return known.fact is None and is_matter(record.fact)


def _follower(known: Record, others: Sequence[Record], new: Record) -> Record | None:
    """What took a record's place once its time had come, not being said anew since."""
    found = (
        one
        for one in others
        if one.supersedes == known.id
        and begin_of(one) == end_of(known)
        and begin_of(one) <= new.created_at
    )
    return next(found, None)
