"""Writing records, one or many: by the write policy and the rules of facts.

Each write, or batch of writes, is prepared in a `Draft` over what is stored and then carried out.
A write that was interrupted can be repeated: what is missing is done then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record, folded, record_id
from coag.store import RecordStore, Search, short_id, slices, superseded_pair

from .facts import (
    CONCLUSION,
    Placement,
    at_least,
    begin_of,
    confirming,
    contradicting,
    end_of,
    ended_by,
    holds,
    is_conclusion,
    is_dated,
    is_last,
    is_matter,
    no_better_than,
    one_matter,
    origins,
    placed,
    rank_of,
    same_value,
    trust_of,
    with_earlier,
    with_origin,
    with_times,
    without,
)
from .write_policy import (
    DecisionKind,
    Remembered,
    ToRemember,
    WriteDecision,
    decided,
    derived,
    repeats,
    repetition_of,
)

_EVERYTHING = 1_000_000_000
"""More records than there are."""
_NEAREST = 3
_ALIKE = 0.5
"""Similarity that two texts which differ in nothing but form surely have."""
_MATTERS = 100
"""So many matters are asked for at once."""

Matter = tuple[MemoryKind, str, str, str]
"""Kind, scope, subject and attribute, the last two folded."""


class Draft:
    """The records as they will be once `carry_out` has stored what was put.

    What is asked for is looked up in the store once, and then known.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._stored: dict[str, Record] = {}
        self._now: dict[str, Record | None] = {}
        """Each record that was looked up or put; None for one that is not there."""
        self._asked: set[Matter] = set()
        """The matters on which all current records are known."""
        self._by_matter: dict[Matter, dict[str, None]] = {}

    async def get(self, ids: Iterable[str]) -> list[Record]:
        """Those of these records that there are."""
        names = list(dict.fromkeys(ids))
        wanted = [one for one in names if one not in self._now]
        if wanted:
            found = {record.id: record for record in await self._store.get(wanted)}
            for one in wanted:
                self._now[one] = None
                if one in found:
                    self._learn(found[one])
        return [record for one in names if (record := self._now[one]) is not None]

    async def look_up_matters(self, records: Iterable[Record]) -> None:
        """Learns what is current on the matters of these records, in few questions."""
        asked = {matter for record in records if (matter := matter_asked(record)) is not None}
        # those of one kind and scope together, and of one attribute beside each other
        ordered = sorted(asked - self._asked, key=lambda one: (one[0], one[1], one[3], one[2]))
        for _, group in groupby(ordered, key=lambda one: one[:2]):
            for some in slices(group, _MATTERS):
                await self._learn_on(some)
        self._asked |= asked

    async def on_matter(self, record: Record) -> list[Record]:
        """The other current facts of the scope on the matter of a record."""
        await self.look_up_matters([record])
        return [one for one in self._known_on(record) if one.superseded_by is None]

    async def all_on_matter(self, record: Record) -> list[Record]:
        """The same, and those that were superseded."""
        matter = matter_asked(record)
        if matter is not None:
            await self._learn_on([matter], include_superseded=True)
        return self._known_on(record)

    async def relevant(self, statement: Record, others: Sequence[Record]) -> Sequence[Record]:
        """What matters to the place of a statement: superseded ones too where it is not the last.

        `others` is what is current on its matter.
        """
        if is_last(statement, others):
            return others
        return await self.all_on_matter(statement)

    async def nearest(self, record: Record) -> list[Record]:
        """A few current records of the scope that are most similar to it."""
        text, scopes = record.text, (record.scope,)
        search = Search(text=text, kind=record.kind, k=_NEAREST, scopes=scopes, min_score=_ALIKE)
        names = await self._search(search)
        return [one for name in names if (one := self._now[name]) is not None]

    async def _learn_on(
        self, matters: Sequence[Matter], *, include_superseded: bool = False
    ) -> None:
        kind, scope, _, _ = matters[0]
        where = {
            "subject": {"$in": sorted({subject for _, _, subject, _ in matters})},
            "attribute": {"$in": sorted({attribute for *_, attribute in matters})},
        }
        search = Search(text=None, kind=kind, k=_EVERYTHING, scopes=(scope,), where=where)
        await self._search(replace(search, include_superseded=include_superseded))

    async def _search(self, search: Search) -> list[str]:
        hits = await self._store.search(search)
        for hit in hits:
            self._learn(hit.record)
        return [hit.record.id for hit in hits]

    def put(self, record: Record) -> None:
        """The record is to be stored like this."""
        if record.id in self._now and self._now[record.id] is None:
            del self._now[record.id]  # so that new records are stored in the order of their coming
        self._now[record.id] = record
        matter = matter_of(record)
        if matter is not None:
            self._by_matter.setdefault(matter, {})[record.id] = None

    async def carry_out(self) -> None:
        """Stores what is new, then what changed of what was there.

        A single new record and the one that it supersedes are stored in one step.
        """
        held = [record for record in self._now.values() if record is not None]
        new = [record for record in held if record.id not in self._stored]
        there = ((one, self._stored[one.id]) for one in held if one.id in self._stored)
        changed = [one for one, was in there if one is not was and one != was]
        if len(new) == 1 and self._supersedes_now(new[0]):
            await self._store.supersede(new[0].supersedes or "", new[0])
        elif new:
            await self._store.add(new)
        if changed:
            await self._store.update(changed)

    def _supersedes_now(self, new: Record) -> bool:
        before, after = self._stored.get(new.supersedes or ""), self._now.get(new.supersedes or "")
        if before is None or after is None or new.superseded_by is not None:
            return False
        return before.superseded_by is None and after.superseded_by == new.id

    def _known_on(self, record: Record) -> list[Record]:
        matter = matter_asked(record)
        names = {} if matter is None else self._by_matter.get(matter, {})
        found = (self._now[name] for name in names if name != record.id)
        return [one for one in found if one is not None]

    def _learn(self, record: Record) -> None:
        """Takes in a record as it is stored, unless it was changed here."""
        self._stored.setdefault(record.id, record)
        if self._now.get(record.id) is None:
            self.put(record)


def matter_of(record: Record) -> Matter | None:
    """The matter of a record's fact; None for a record without one, or without an attribute."""
    fact = record.fact
    attribute = "" if fact is None else folded(fact.attribute)
    if fact is None or not attribute:
        return None
    return (record.kind, record.scope, folded(fact.subject), attribute)


def matter_asked(record: Record) -> Matter | None:
    """The matter on which others may contradict a record; None if nothing can."""
    asks = record.kind is MemoryKind.SEMANTIC and is_matter(record.fact)
    return matter_of(record) if asks else None


def _in_other_memory(record: Record) -> str:
    """The id that a record's text has as an event if it is a fact, and as a fact otherwise."""
    (kind,) = set(MemoryKind) - {record.kind}
    return record_id(kind, record.scope, record.text)


# ---- One write ----


class _Writer:
    def __init__(self, draft: Draft, readable: Container[str], *, look_around: bool) -> None:
        self._draft = draft
        self._readable = readable
        self._look_around = look_around

    async def write(self, new: Record, given: ToRemember) -> Remembered:
        """Writes a record, or makes it a further origin of what says the same.

        `new` is the record as it is by itself; what it was made of names what it supersedes and is
        derived from.
        """
        old_id = given.supersedes
        concluded = bool(given.derived_from) or is_conclusion(new)
        elsewhere = _in_other_memory(new) if concluded else new.id
        names = filter(None, (new.id, elsewhere, old_id, *given.derived_from))
        found = {one.id: one for one in await self._draft.get(names)}
        if given.derived_from:
            sources = [found[name] for name in given.derived_from if name in found]
            readable = [source for source in sources if source.scope in self._readable]
            new = derived(new, given.derived_from, readable)
        known = found.get(new.id)
        both = known is not None and is_matter(new.fact) and is_matter(known.fact)
        if known is not None and both and not one_matter(new.fact, known.fact):
            # one text states two facts, so that each is a record of its own
            new = new.model_copy(update={"id": record_id(new.kind, new.scope, new.text, new.fact)})
            known = next(iter(await self._draft.get([new.id])), None)
        old = None if old_id is None else found.get(old_id)
        others = await self._draft.on_matter(new)
        if concluded:
            same = [one for one in (known, old, found.get(elsewhere), *others) if one is not None]
            new = no_better_than(new, [one for one in same if repeats(new, one)])
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
        every = await self._draft.relevant(new, others)
        same, how = confirming(new, every), placed(new, every, new.created_at)
        if same is not None and _suffices(same, new, how):
            return self._merged(new, same, repetition_of(same))
        nearest: list[Record] = []
        if self._look_around and not is_matter(new.fact):  # facts differ by values, not by words
            nearest = await self._draft.nearest(new)
        if concluded and nearest:
            new = no_better_than(new, [one for one in nearest if repeats(new, one)])
            how = Placement(record=new)
        decision = decided(new, None, nearest)
        twin = next((one for one in nearest if one.id == decision.record_id), None)
        if twin is not None:
            return self._merged(new, twin, decision)
        return self._put(how, None, _with_time(how, new, decision))

    async def _once_more(self, new: Record, known: Record, others: Sequence[Record]) -> Remembered:
        placement, repeated = await _restated(self._draft, new, known, others)
        result = self._put(placement, known, repetition_of(known))
        changed = bool(result.superseded) or result.record.superseded_by != known.superseded_by
        said_before = known.provenance == new.provenance
        return replace(result, new=changed or said_before, merged=not repeated)

    async def _in_place_of(
        self,
        old_id: str,
        old: Record | None,
        new: Record,
        known: Record | None,
        others: Sequence[Record],
    ) -> Remembered:
        if old is None or old.superseded_by not in (None, new.id) or old.id == new.id:
            old, _ = superseded_pair(old_id, old, new, known)  # raises: says what is wrong
        how = placed(new, [one for one in others if one.id != old_id], new.created_at)
        how = how if how.later is None else Placement(record=new)
        if not at_least(new.provenance.trust, trust_of(old)):
            return self._beside(old, new, known, how)
        record, apart = new, [old]
        if known is not None:
            record = with_origin(known, new.provenance)
        if known is not None and known.superseded_by is not None:
            record = with_times(record, valid_from=begin_of(new), valid_until=None)
            before = [] if known.supersedes in (None, old_id) else [known.supersedes]
            apart = without(known, [old, *await self._draft.get(before)])
            record = with_earlier(record, new, known, [old, *others])
        record = record.model_copy(update={"supersedes": old_id, "superseded_by": None})
        apart[0] = ended_by(apart[0], record, new.created_at)
        placement = replace(
            how, record=record, ended=(old, *how.ended), changed=(*apart, *how.changed)
        )
        result = self._put(placement, known, decided(new, known))
        if known is None:
            return result
        as_it_was = known.superseded_by is None and known.supersedes == old_id
        return replace(
            result,
            new=not as_it_was or known.provenance == new.provenance,
            merged=new.provenance not in origins(known),
        )

    def _beside(self, old: Record, new: Record, known: Record | None, how: Placement) -> Remembered:
        """Writes what is trusted less than what it was to supersede: both stay, and say so."""
        against = (old, *(one for one in how.contradicts if one.id != old.id))
        record = how.record if known is None else with_origin(known, new.provenance)
        why = f"It is trusted less than record {short_id(old.id)}, which it cannot supersede."
        decision = WriteDecision(kind=DecisionKind.NOVEL, why=why)
        return self._put(replace(how, record=record, contradicts=against), known, decision)

    def _merged(self, new: Record, same: Record, decision: WriteDecision) -> Remembered:
        record = with_origin(same, new.provenance)
        self._draft.put(record)
        return Remembered(record=record, new=False, merged=record != same, decision=decision)

    def _put(
        self, placement: Placement, known: Record | None, decision: WriteDecision
    ) -> Remembered:
        record = contradicting(placement.record, [other.id for other in placement.contradicts])
        changed = {one.id: one for one in placement.changed}
        for other in placement.contradicts:
            changed[other.id] = contradicting(changed.get(other.id, other), [record.id])
        if record != known:
            changed[record.id] = record
        for one in changed.values():
            self._draft.put(one)
        return Remembered(
            record=record,
            new=True,
            superseded=tuple(old.id for old in placement.superseded),
            contradicts=tuple(other.id for other in placement.contradicts),
            decision=decision,
        )


def _suffices(same: Record, new: Record, how: Placement) -> bool:
    """Whether what is known has the same value and is trusted no less.

    Where the new statement supersedes others, one that is trusted as much is written too.
    """
    trust, known = new.provenance.trust, trust_of(same)
    takes_place = any(not same_value(one, new) for one in how.superseded)
    return at_least(known, trust) and not (takes_place and at_least(trust, known))


def _with_time(how: Placement, new: Record, decision: WriteDecision) -> WriteDecision:
    """The decision on a new statement, with when it holds if that is not now."""
    begin, later = begin_of(new), how.later
    if how.record.superseded_by is not None and later is not None:
        until = f"{begin_of(later):%Y-%m-%d %H:%M}"
        why = f"It held until {until}; record {short_id(later.id)} holds since."
    elif begin > new.created_at:
        why = f"It is new; it holds from {begin:%Y-%m-%d %H:%M}, and is recalled from then on."
    else:
        return decision
    return replace(decision, why=why)


# ---- A known text that is said again ----
#
# `new` is the statement, `known` what is stored of its text, `record` the same with the new
# origin, and `others` what else is current on its matter.


async def _restated(
    draft: Draft, new: Record, known: Record, others: Sequence[Record]
) -> tuple[Placement, bool]:
    """The place of a known text now that it is said again, and whether nothing is new at all."""
    record = with_origin(known, new.provenance)
    if record.fact is None and at_least(new.provenance.trust, trust_of(known)):
        record = record.model_copy(update={"fact": new.fact})
    if new.fact is None or known.fact is None:
        others = await draft.on_matter(record)
    by = None
    if known.superseded_by is not None:
        by = next(iter(await draft.get([known.superseded_by])), None)
    by = by or _due_successor(known, others, new)
    gone = known.superseded_by is not None and by is None
    placement: Placement | None = None
    becomes_matter = known.fact is None and is_matter(record.fact)
    if gone or becomes_matter or _holds_anew(new, known, by, others):
        placement = await _moved(draft, new, known, record, certain=gone or is_dated(new))
    repeated = placement is None and new.provenance in origins(known)
    if placement is None and repeated:
        placement = await _completed(draft, new, known, record, others)
    if placement is None and by is not None and not at_least(trust_of(by), trust_of(record)):
        placement = await _freed(draft, record, by)
    placement = placement or _staying(new, known, record, others)
    now = with_earlier(placement.record, new, known, others if by is None else [by, *others])
    return replace(placement, record=now), repeated


def _holds_anew(new: Record, known: Record, by: Record | None, others: Sequence[Record]) -> bool:
    """Whether a known text is said to hold since another time than before.

    It has one current interval: the last that the best trusted of its sources state. A statement
    of higher trust than all before begins its own. `by` is what took its place, if something did.
    """
    trust, was, at = new.provenance.trust, trust_of(known), new.created_at
    if not is_matter(known.fact) or not at_least(trust, was):
        return False
    better = rank_of(trust) > rank_of(was)
    if is_dated(new):
        first, second = begin_of(known), begin_of(new)
        return second != first if better else second > first
    if by is not None:
        return not _is_old_call(new, known, [by, *others])
    if not holds(known, at) or not better:
        return not holds(known, at)
    return any(
        rank_of(was) < rank_of(trust_of(one)) <= rank_of(trust) and not same_value(one, known)
        for one in others
    )


def _is_old_call(new: Record, known: Record, since: Iterable[Record]) -> bool:
    """Whether a statement repeats a call after which something else was said.

    The time that it states decides, if it states one (`valid_from`, or the event's `at`). Else its
    cycle does, within one run and activity: cycles only count up. An agent says a thing once a
    cycle, so it repeats its call where others spoke in between, in runs of their own. Where
    neither decides, it is a new call, later than the earlier statements. `since` are the later
    statements with another value.
    """
    if is_dated(new) or (new.event is not None and new.event.at is not None):
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
    return max(here) > origin.cycle if here else origin.source_kind == CONCLUSION


async def _moved(
    draft: Draft, new: Record, known: Record, record: Record, *, certain: bool
) -> Placement | None:
    """The text as it holds since another time; None if what holds stays.

    With `certain`, it has a place for sure, beside what is trusted more.
    """
    every = await draft.all_on_matter(record)
    moved, rest = record, list(every)
    if known.fact is not None:
        moved = with_times(record, valid_from=begin_of(new), valid_until=None)
        rest = without(known, every)
    moved = _with_end_of(new, moved)
    linked = any(one.id == known.supersedes for one in every)
    links = {"superseded_by": None, "supersedes": None if linked else known.supersedes}
    how = placed(moved.model_copy(update=links), rest, new.created_at)
    if not certain and known.superseded_by is not None:
        same = confirming(moved, [one for one in rest if one.superseded_by is None])
        if same is not None and at_least(trust_of(same), new.provenance.trust):
            heir = next((one for one in every if one.id == known.superseded_by), None)
            if heir is None or at_least(trust_of(heir), trust_of(record)):
                return None
            # It is trusted more now than what took its place, and gives way to its like instead.
            return Placement(record=record.model_copy(update={"superseded_by": same.id}))
        if how.contradicts and not how.superseded:
            return None
    before = {one.id: one for one in every}
    after = {one.id: one for one in (*rest, *how.changed)}
    changed = tuple(one for name, one in after.items() if one != before[name])
    return replace(how, changed=changed)


async def _freed(draft: Draft, record: Record, by: Record) -> Placement:
    """A text that is trusted more now than what took its place: it gives way to its like alone.

    Where there is none, it holds beside the last of those, and each names the other.
    """
    last, next_one, passed = by, [by], {record.id}
    while next_one and next_one[0].id not in passed:
        (last,) = next_one
        passed.add(last.id)
        if at_least(trust_of(last), trust_of(record)):
            return Placement(record=record.model_copy(update={"superseded_by": last.id}))
        next_one = [] if last.superseded_by is None else await draft.get([last.superseded_by])
    changed = [by.model_copy(update={"supersedes": None})] if by.supersedes == record.id else []
    free = record.model_copy(update={"superseded_by": None})
    return Placement(record=free, contradicts=(last,), changed=tuple(changed))


async def _completed(
    draft: Draft, new: Record, known: Record, record: Record, others: Sequence[Record]
) -> Placement:
    """Completes what was begun when the very same was said, and perhaps interrupted."""
    if known.superseded_by is not None and not is_dated(known):
        return Placement(record=record)
    statement = record
    if is_dated(known):
        every = await draft.relevant(known, others)
        statement = _with_end_of(new, with_times(record, valid_until=None))
    else:  # what was said since is no part of it
        every = [one for one in others if one.created_at <= known.created_at]
    how = placed(statement, every, new.created_at)
    changed = list(how.changed)
    if known.supersedes is not None and not changed:
        olds = await draft.get([known.supersedes])
        begun = (old for old in olds if old.superseded_by == known.id)
        changed = [now for old in begun if (now := ended_by(old, known)) != old]
    placed_again = how.record
    if known.supersedes is not None and not is_dated(known):  # the link that was written stays
        placed_again = placed_again.model_copy(update={"supersedes": known.supersedes})
    return replace(how, record=placed_again, changed=tuple(changed))


def _staying(new: Record, known: Record, record: Record, others: Sequence[Record]) -> Placement:
    """The text where it is, beside those that it ends now that one more source says it."""
    if known.superseded_by is not None or not is_matter(record.fact):
        return Placement(record=record)
    stated = {name: getattr(new, name) for name in ("provenance", "lineage", "created_at", "event")}
    statement = record.model_copy(update={**stated, "supersedes": None, "superseded_by": None})
    times = {name: getattr(new.fact, name, None) for name in ("valid_from", "valid_until")}
    statement = with_times(statement, **times)
    how = placed(statement, others, new.created_at)
    links = {"supersedes": record.supersedes or how.record.supersedes}
    later = None if how.later is None else how.later.id
    changed = tuple(one for one in how.changed if one.id != later)
    return replace(how, record=record.model_copy(update=links), changed=changed, later=None)


def _with_end_of(new: Record, record: Record) -> Record:
    """A record whose fact ends when a statement of it says so."""
    return record if new.fact is None else with_times(record, valid_until=new.fact.valid_until)


def _due_successor(known: Record, others: Sequence[Record], new: Record) -> Record | None:
    """What took a record's place once its time had come, if the text was not said again since."""
    found = (
        one
        for one in others
        if one.supersedes == known.id
        and begin_of(one) == end_of(known)
        and begin_of(one) <= new.created_at
    )
    return next(found, None)


# ---- Many writes: few questions to the store, and one write a batch ----


_YIELD_EVERY = 50
"""After so many records other tasks of the loop have their turn."""

Given = tuple[Record, ToRemember]
"""A record as it is by itself, and what it was made of."""


async def written(
    store: RecordStore, batch: Sequence[Given], readable: Container[str], *, look_around: bool
) -> list[Remembered]:
    """Writes records together."""
    draft = Draft(store)
    if len(batch) > 1:
        records = [record for record, _ in batch]
        named = {n for _, given in batch for n in (given.supersedes, *given.derived_from) if n}
        named.update(_in_other_memory(record) for record in records if is_conclusion(record))
        ids = [record.id for record in records]
        await draft.get([*ids, *sorted(named)])
        await draft.look_up_matters([*await draft.get(ids), *records])
    writer = _Writer(draft, readable, look_around=look_around)
    results: list[Remembered] = []
    for number, (record, given) in enumerate(batch, start=1):
        results.append(await writer.write(record, given))
        if number % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
    await draft.carry_out()
    return results


def in_batches(texts: Iterable[Given], most: int) -> Iterator[list[Given]]:
    """What can be written at once: at most so many, and no two that change one another's place.

    So every batch can be repeated after it was interrupted: on one matter it holds at most one
    statement.
    """
    batch: list[Given] = []
    taken: set[Matter | str | None] = set()
    for one in texts:
        record, details = one
        keys = {matter_asked(record), details.supersedes} - {None}
        if keys & taken:
            yield batch
            batch, taken = [], set()
        batch.append(one)
        taken |= {*keys, record.id}
        if len(batch) == most:
            yield batch
            batch, taken = [], set()
    if batch:
        yield batch
