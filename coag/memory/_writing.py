"""The one way in which memory writes: by the write policy and the rules of facts."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime

from coag.errors import RecordStoreError
from coag.schema import Fact, MemoryKind, Record, record_id
from coag.store import short_id

from ._facts import (
    Standing,
    begin_of,
    holding_again,
    is_matter,
    one_matter,
    settled,
    standing,
)
from ._lineage import (
    at_least,
    concludes,
    contradicting,
    no_better_than,
    origins,
    trust_of,
    with_origin,
)
from ._policy import Decision, DecisionKind, decided, repeats, repetition_of
from ._records import Records, in_other_memory
from ._results import Remembered
from ._retelling import is_old_call
from ._telling import ToRemember, derived


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
            return await self._once_more(new, known)
        return await self._first_time(new, others, concluded=concluded)

    async def _first_time(
        self, new: Record, others: Sequence[Record], *, concluded: bool
    ) -> Remembered:
        how = _standing(new, others)
        same = how.same
        if same is not None and _suffices(same, new, how):
            return await self._merged(new, same, repetition_of(same))
        nearest = await self._nearest(new)
        if concluded:
            new = no_better_than(new, [one for one in nearest if repeats(new, one)])
        decision = decided(new, None, nearest)
        twin = next((one for one in nearest if one.id == decision.record_id), None)
        if twin is not None:
            return await self._merged(new, twin, decision)
        if how.later is not None and new.fact is not None:
            return await self._of_the_past(new, new.fact, how.later)
        superseded = (*how.supersedes, *((same,) if same is not None else ()))
        record = await self._commit(new, None, superseded, how.contradicts)
        return _remembered(record, superseded, how.contradicts, decision)

    async def _once_more(self, new: Record, known: Record) -> Remembered:
        by = await self._superseder(known)
        gone = known.superseded_by is not None and by is None
        record = with_origin(known, new.provenance)
        if record.fact is None and at_least(new.provenance.trust, trust_of(known)):
            record = record.model_copy(update={"fact": new.fact})
        others = await self._records.on_matter(record)
        since = others if by is None else [by, *others]
        anew = by is not None and not is_old_call(new, known, since)
        repeated = new.provenance in origins(known) and not (gone or anew)
        if repeated:  # complete what was begun then; what was said since is no part of it
            others = [one for one in others if one.created_at <= known.created_at]
        how = _standing(_word(record, new, known.created_at if repeated else None), others)
        superseded, contradicted = how.supersedes, how.contradicts
        revived = known.superseded_by is not None
        if revived and (repeated or not (gone or _may_return(record, how))):
            superseded, contradicted = (), ()
        elif revived:
            record = holding_again(record, begin_of(new))
            record = record.model_copy(update={"superseded_by": None})
        elif repeated:
            superseded = (*superseded, *await self._half_superseded(known))
        record = await self._commit(record, known, superseded, contradicted)
        told = _remembered(record, superseded, contradicted, repetition_of(known))
        changed = bool(superseded) or record.superseded_by != known.superseded_by
        return Remembered(
            record=told.record,
            new=changed or known.provenance == new.provenance,
            superseded=told.superseded,
            contradicts=told.contradicts,
            merged=not repeated,
            decision=told.decision,
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
            await self._records.supersede(old_id, new)  # tells what is wrong
        how = _standing(new, [one for one in others if one.id != old_id])
        if old is not None and not at_least(new.provenance.trust, trust_of(old)):
            return await self._beside(old, new, known, how)
        superseded = (*((old,) if old is not None else ()), *how.supersedes)
        record = new
        if known is not None:
            record = with_origin(known, new.provenance)
            if known.superseded_by is not None:
                record = holding_again(record, begin_of(new))
        record = await self._commit(record, known, superseded, how.contradicts)
        decision = decided(new, known)
        told = _remembered(record, superseded, how.contradicts, decision)
        if known is None:
            return told
        as_it_was = known.superseded_by is None and known.supersedes == old_id
        return Remembered(
            record=record,
            new=not as_it_was or known.provenance == new.provenance,
            superseded=told.superseded,
            contradicts=told.contradicts,
            merged=new.provenance not in origins(known),
            decision=decision,
        )

    async def _beside(
        self, old: Record, new: Record, known: Record | None, how: Standing
    ) -> Remembered:
        """Writes what is trusted less than what it was to supersede: both stay, and say so."""
        against = (old, *(one for one in how.contradicts if one.id != old.id))
        record = new if known is None else with_origin(known, new.provenance)
        record = await self._commit(record, known, how.supersedes, against)
        why = f"It is trusted less than record {short_id(old.id)}, which it cannot supersede."
        decision = Decision(kind=DecisionKind.NOVEL, why=why)
        return _remembered(record, how.supersedes, against, decision)

    async def _superseder(self, record: Record) -> Record | None:
        """What superseded a record, if something did and is there."""
        name = record.superseded_by
        return None if name is None else next(iter(await self._records.get([name])), None)

    async def _merged(self, new: Record, same: Record, decision: Decision) -> Remembered:
        record = with_origin(same, new.provenance)
        if record != same:
            await self._records.update([record])
        return Remembered(record=record, new=False, merged=record != same, decision=decision)

    async def _of_the_past(self, new: Record, fact: Fact, later: Record) -> Remembered:
        until = begin_of(later)
        over = fact.model_copy(update={"valid_until": until})
        record = new.model_copy(update={"fact": over, "superseded_by": later.id})
        await self._records.add([record])
        why = f"It held until {until:%Y-%m-%d %H:%M}; record {short_id(later.id)} holds since."
        return Remembered(
            record=record, new=True, decision=Decision(kind=DecisionKind.NOVEL, why=why)
        )

    async def _commit(
        self,
        record: Record,
        known: Record | None,
        superseded: Sequence[Record],
        contradicted: Sequence[Record],
    ) -> Record:
        """Writes a record and what it changes of others; gives it as it is stored."""
        record = contradicting(record, [other.id for other in contradicted])
        stored = known
        if superseded:
            stored = await self._records.supersede(superseded[0].id, record)
            update = {"supersedes": stored.supersedes, "superseded_by": stored.superseded_by}
            record = record.model_copy(update=update)
        elif known is None:
            await self._records.add([record])
            stored = record
        changed = settled(record, superseded, contradicted)
        if record != stored:
            changed.append(record)
        if changed:
            await self._records.update(changed)
        return record

    async def _nearest(self, new: Record) -> list[Record]:
        if is_matter(new.fact):  # facts are told apart by what they say, not by how
            return []
        return await self._records.nearest(new)

    async def _half_superseded(self, record: Record) -> list[Record]:
        """What a record superseded without that its fact was ended, the write broken off."""
        if record.supersedes is None:
            return []
        found = await self._records.get([record.supersedes])
        return [old for old in found if old.superseded_by == record.id]


def _standing(record: Record, others: Sequence[Record]) -> Standing:
    fact = record.fact
    if fact is None or not is_matter(fact) or record.kind is not MemoryKind.SEMANTIC:
        return Standing()
    return standing(fact, record.provenance.trust, record.created_at, others)


def _of_another_matter(new: Record, known: Record) -> bool:
    """Whether one text tells two facts, so that each is a record of its own."""
    if not is_matter(new.fact) or not is_matter(known.fact):
        return False
    return not one_matter(new.fact, known.fact)


def _suffices(same: Record, new: Record, how: Standing) -> bool:
    """Whether what is known says the same value and is trusted no less.

    Where the new word supersedes others, one that is trusted as much is written too.
    """
    trust, known = new.provenance.trust, trust_of(same)
    return at_least(known, trust) and not (how.supersedes and at_least(trust, known))


def _word(record: Record, new: Record, at: datetime | None) -> Record:
    """What is said by saying a known text again: the same, of the time of which it tells now."""
    fact = record.fact
    if fact is not None:
        times = new.fact or Fact(subject=fact.subject)
        update = {"valid_from": times.valid_from, "valid_until": times.valid_until}
        fact = fact.model_copy(update=update)
    update = {"provenance": new.provenance, "created_at": at or new.created_at, "fact": fact}
    return record.model_copy(update=update)


def _may_return(record: Record, how: Standing) -> bool:
    """Whether what was superseded holds again now that it is said again."""
    if not is_matter(record.fact) or how.later is not None or how.same is not None:
        return False
    return bool(how.supersedes) or not how.contradicts


def _remembered(
    record: Record,
    superseded: Sequence[Record],
    contradicted: Sequence[Record],
    decision: Decision,
) -> Remembered:
    return Remembered(
        record=record,
        new=True,
        superseded=tuple(old.id for old in superseded),
        contradicts=tuple(other.id for other in contradicted),
        decision=decision,
    )
