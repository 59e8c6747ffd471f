"""Writing records, one or many."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from coag.errors import RecordStoreError
from coag.schema import Record, record_id
from coag.store import RecordStore, short_id

from .facts import (
    Place,
    at_least,
    begin_of,
    concludes,
    contradicting,
    ended_by,
    holding_again,
    is_matter,
    no_better_than,
    one_matter,
    origins,
    placed,
    same_value,
    saying_so,
    trust_of,
    with_earlier,
    with_origin,
    without,
)
from .records import Draft, Matter, Records, Scopes, StoredRecords, in_other_memory, matter_asked
from .statements import (
    Decision,
    DecisionKind,
    Remembered,
    ToRemember,
    decided,
    derived,
    every_word,
    repeats,
    repetition_of,
    restated,
)

# ---- The one way in which memory writes: by the write policy and the rules of facts ----


class Writer:
    """Writes records, one after the other; who uses it lets no other write meanwhile.

    Every write can be repeated after it was broken off: what is missing is done then.

    Args:
        records: What there is, and where they go.
        readable: Scopes of the records from which something may be derived.
    """

    def __init__(self, records: Records, readable: Container[str]) -> None:
        self._records = records
        self._readable = readable

    async def write(self, new: Record, given: ToRemember) -> Remembered:
        """Writes a record, or makes it a further origin of what says the same.

        Args:
            new: The record, as it is by itself.
            given: What it was made of: it tells what it supersedes and is derived from.

        Raises:
            ValueError: If what it is derived from is not there.
            RecordStoreError: If the store refuses or cannot be reached.
        """
        old_id = given.supersedes
        concluded = bool(given.derived_from) or concludes(new)
        elsewhere = in_other_memory(new) if concluded else new.id
        old_ids = () if old_id is None else (old_id,)
        names = (new.id, elsewhere, *old_ids, *given.derived_from)
        found = {one.id: one for one in await self._records.get(list(dict.fromkeys(names)))}
        if given.derived_from:
            sources = (found[name] for name in dict.fromkeys(given.derived_from) if name in found)
            readable = [source for source in sources if source.scope in self._readable]
            new = derived(new, given.derived_from, readable)
        known = found.get(new.id)
        if known is not None and _of_another_matter(new, known):
            new = new.model_copy(update={"id": record_id(new.kind, new.scope, new.text, new.fact)})
            known = next(iter(await self._records.get([new.id])), None)
        old = None if old_id is None else found.get(old_id)
        others = await self._records.on_matter(new)
        if concluded:
            said = [one for one in (known, old, found.get(elsewhere), *others) if one is not None]
            new = no_better_than(new, [one for one in said if repeats(new, one)])
        if old_id is not None:
            if old is not None and old.scope != new.scope:
                raise RecordStoreError(
                    f"There is no record {old_id!r} to supersede in scope {new.scope!r}."
                )
            return await self._in_place_of(old_id, old, new, known, others)
        if known is not None:
            return await self._once_more(new, known, others)
        return await self._first_time(new, others, concluded=concluded)

    async def _first_time(
        self, new: Record, others: Sequence[Record], *, concluded: bool
    ) -> Remembered:
        every = await every_word(self._records, new, others)
        same, how = saying_so(new, every), placed(new, every, new.created_at)
        if same is not None and _suffices(same, new, how):
            return await self._merged(new, same, repetition_of(same))
        nearest = await self._nearest(new)
        if concluded and nearest:
            new = no_better_than(new, [one for one in nearest if repeats(new, one)])
            how = Place(record=new)
        decision = decided(new, None, nearest)
        twin = next((one for one in nearest if one.id == decision.record_id), None)
        if twin is not None:
            return await self._merged(new, twin, decision)
        record = await self._commit(how, None)
        return _remembered(record, how, _in_time(how, new, decision))

    async def _once_more(self, new: Record, known: Record, others: Sequence[Record]) -> Remembered:
        again = await restated(self._records, new, known, others)
        record = await self._commit(again.place, known)
        told = _remembered(record, again.place, repetition_of(known))
        changed = bool(told.superseded) or record.superseded_by != known.superseded_by
        return replace(
            told,
            new=changed or known.provenance == new.provenance,
            merged=not again.repeated,
        )

    async def _in_place_of(
        self,
        old_id: str,
        old: Record | None,
        new: Record,
        known: Record | None,
        others: Sequence[Record],
    ) -> Remembered:
        if old is None or old.superseded_by not in (None, new.id) or old.id == new.id:
            old = await self._records.supersede(old_id, new)  # tells what is wrong
        how = placed(new, [one for one in others if one.id != old_id], new.created_at)
        how = how if how.later is None else Place(record=new)
        if not at_least(new.provenance.trust, trust_of(old)):
            return await self._beside(old, new, known, how)
        record, apart = new, [old]
        if known is not None:
            record = with_origin(known, new.provenance)
        if known is not None and known.superseded_by is not None:
            record = holding_again(record, begin_of(new))
            before = [] if known.supersedes in (None, old_id) else [known.supersedes]
            apart = without(known, [old, *await self._records.get(before)])
            record = with_earlier(record, new, known, [old, *others])
        record = record.model_copy(update={"supersedes": old_id, "superseded_by": None})
        apart[0] = ended_by(apart[0], record, new.created_at)
        place = replace(how, record=record, ended=(old, *how.ended), changed=(*apart, *how.changed))
        record = await self._commit(place, known)
        told = _remembered(record, place, decided(new, known))
        if known is None:
            return told
        as_it_was = known.superseded_by is None and known.supersedes == old_id
        return replace(
            told,
            new=not as_it_was or known.provenance == new.provenance,
            merged=new.provenance not in origins(known),
        )

    async def _beside(
        self, old: Record, new: Record, known: Record | None, how: Place
    ) -> Remembered:
        """Writes what is trusted less than what it was to supersede: both stay, and say so."""
        against = (old, *(one for one in how.contradicts if one.id != old.id))
        record = how.record if known is None else with_origin(known, new.provenance)
        place = replace(how, record=record, contradicts=against)
        record = await self._commit(place, known)
        why = f"It is trusted less than record {short_id(old.id)}, which it cannot supersede."
        return _remembered(record, place, Decision(kind=DecisionKind.NOVEL, why=why))

    async def _merged(self, new: Record, same: Record, decision: Decision) -> Remembered:
        record = with_origin(same, new.provenance)
        if record != same:
            await self._records.update([record])
        return Remembered(record=record, new=False, merged=record != same, decision=decision)

    async def _commit(self, place: Place, known: Record | None) -> Record:
        """Writes a record and what it changes of others; gives it as it is stored.

        Args:
            place: The record and its neighbours.
            known: What is stored under its id, or None.
        """
        record = contradicting(place.record, [other.id for other in place.contradicts])
        changed = {one.id: one for one in place.changed}
        for other in place.contradicts:
            named = contradicting(changed.get(other.id, other), [record.id])
            if named != other:
                changed[other.id] = named
        if known is not None:
            if record != known:
                changed[record.id] = record
        elif record.superseded_by is None and place.superseded:
            await self._records.supersede(place.superseded[0].id, record)
        else:
            await self._records.add([record])
        if changed:
            await self._records.update(list(changed.values()))
        return record

    async def _nearest(self, new: Record) -> list[Record]:
        if is_matter(new.fact):  # facts are told apart by what they say, not by how
            return []
        return await self._records.nearest(new)


def _of_another_matter(new: Record, known: Record) -> bool:
    """Whether one text tells two facts, so that each is a record of its own."""
    if not is_matter(new.fact) or not is_matter(known.fact):
        return False
    return not one_matter(new.fact, known.fact)


def _suffices(same: Record, new: Record, how: Place) -> bool:
    """Whether what is known says the same value and is trusted no less.

    Where the new word supersedes others, one that is trusted as much is written too.
    """
    trust, known = new.provenance.trust, trust_of(same)
    takes_place = any(not same_value(one, new) for one in how.superseded)
    return at_least(known, trust) and not (takes_place and at_least(trust, known))


def _in_time(how: Place, new: Record, decision: Decision) -> Decision:
    """The decision on a new word, with when it holds if that is not now."""
    begin, later = begin_of(new), how.later
    if how.record.superseded_by is not None and later is not None:
        until = f"{begin_of(later):%Y-%m-%d %H:%M}"
        why = f"It held until {until}; record {short_id(later.id)} holds since."
    elif begin > new.created_at:
        why = f"It is new; it holds from {begin:%Y-%m-%d %H:%M}, and is told from then on."
    else:
        return decision
    return replace(decision, why=why)


def _remembered(record: Record, how: Place, decision: Decision) -> Remembered:
    return Remembered(
        record=record,
        new=True,
        superseded=tuple(old.id for old in how.superseded),
        contradicts=tuple(other.id for other in how.contradicts),
        decision=decision,
    )


# ---- Many records written together: few questions to the store, and one write a batch ----


_BREATH = 50
"""After so many records other tasks of the loop have their turn."""


Told = tuple[Record, ToRemember]
"""A record as it is by itself, and what it was made of."""


def together(told: Iterable[Told], most: int) -> Iterator[list[Told]]:
    """What can be written at once: at most so many, and no two that change one another's place.

    So every batch can be repeated after it was broken off: of all that is said on one matter,
    at most one word was said in it.
    """
    batch: list[Told] = []
    taken: set[Matter | str] = set()
    for one in told:
        record, given = one
        keys = {matter_asked(record), given.supersedes} - {None}
        if keys & taken:
            yield batch
            batch, taken = [], set()
        batch.append(one)
        taken.update(key for key in (*keys, record.id) if key is not None)
        if len(batch) == most:
            yield batch
            batch, taken = [], set()
    if batch:
        yield batch


async def written_together(
    store: RecordStore, batch: Sequence[Told], scopes: Scopes
) -> tuple[Remembered, ...]:
    """Writes a batch by the rules of a single write, without looking for near duplicates.

    Args:
        store: Where they go.
        batch: What there is to say, see `together`.
        scopes: From whose records something may be derived.

    Raises:
        ValueError: If what one is derived from is not there; nothing of the batch is written then.
        RecordStoreError: If the store refuses or cannot be reached.
    """
    draft = Draft(store)
    await _look_up(draft, batch)
    writer = Writer(draft, scopes.readable)
    told: list[Remembered] = []
    for place, (record, given) in enumerate(batch):
        told.append(await writer.write(record, given))
        if place % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)
    await draft.carry_out()
    return tuple(told)


async def written_singly(
    store: RecordStore, batch: Sequence[Told], scopes: Scopes
) -> tuple[Remembered, ...]:
    """Writes a batch one by one, near duplicates being looked for; see `written_together`.

    Raises:
        ValueError: If what one is derived from is not there; those before it are written then.
        RecordStoreError: If the store refuses or cannot be reached.
    """
    writer = Writer(StoredRecords(store), scopes.readable)
    return tuple([await writer.write(record, given) for record, given in batch])


def broken_off(done: int, batch: int, error: RecordStoreError) -> RecordStoreError:
    """What to tell when the store fails in the middle."""
    return RecordStoreError(
        f"{done} text(s) were remembered before this; of the next {batch} a part may be. Go on "
        f"with these: what is there already stays as it is. {error}"
    )


async def _look_up(draft: Draft, batch: Sequence[Told]) -> None:
    """Learns in few questions all that the rules will ask for."""
    records = [record for record, _ in batch]
    named = {one for _, given in batch for one in (given.supersedes, *given.derived_from) if one}
    named.update(in_other_memory(record) for record in records if concludes(record))
    await draft.look_up([*(record.id for record in records), *sorted(named)])
    known = await draft.get([record.id for record in records])
    await draft.look_up_matters([*known, *records])
