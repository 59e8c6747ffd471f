"""A bitemporal fact store: where records come from, when facts hold, which of two gives way.

Every rule here is a pure function over records. A fact has a subject, an attribute and a value,
and an interval in which it holds (valid time), beside the time at which it was stored. On one
subject and attribute the intervals follow each other: each statement holds until the next one
begins whose trust is no lower. Statements of higher trust stay, and each names the other as
contradicting. A record whose value returns keeps the earlier intervals in its lineage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Fact, Provenance, Record, Scalar, Trust, ValidityInterval, folded

# ---- Trust and lineage: where a record comes from and what depends on it ----


ORIGINS_KEPT = 20
"""Further origins that a record keeps, the newest ones, beside the one that is trusted best."""

CONCLUSION = "agent"
"""The kind of source of what an agent concluded itself."""

_RANKS = {Trust.UNTRUSTED: 0, Trust.USER: 1, Trust.DEVELOPER: 2}


def rank_of(trust: Trust) -> int:
    """The place of a trust among the others, from the lowest."""
    return _RANKS[trust]


def at_least(trust: Trust, other: Trust) -> bool:
    """Whether one trust is no lower than another."""
    return _RANKS[trust] >= _RANKS[other]


def trust_of(record: Record) -> Trust:
    """The trust of a record: that of the best of its origins."""
    if not record.lineage.also_from:
        return record.provenance.trust
    return max((one.trust for one in origins(record)), key=rank_of)


def origins(record: Record) -> tuple[Provenance, ...]:
    """Every origin of a record, the best trusted one first, the others oldest first."""
    return (record.provenance, *record.lineage.also_from)


def with_origin(record: Record, origin: Provenance) -> Record:
    """The record with one more origin, unless it has it already.

    The first of the best trusted origins is the record's provenance, and is always kept. A stranger
    who repeats what only trusted sources said is no origin of it: its metadata would bind no more.
    """
    stranger = origin.trust is Trust.UNTRUSTED
    if origin in origins(record) or (stranger and record.metadata and is_trusted(record)):
        return record
    return _with_origins(record, (*origins(record), origin))


def without_source(record: Record, source: str) -> Record | None:
    """The record without the origins that are this source, or that were shown its text.

    None if no origin is left.
    """
    rest = [one for one in origins(record) if source not in (one.source, *one.shown)]
    return _with_origins(record, rest) if rest else None


def trusted_at_most(record: Record, trust: Trust) -> Record:
    """The record, the trust of all its origins lowered to at most this."""
    return _with_origins(record, [_at_most(one, trust) for one in origins(record)])


def _at_most(origin: Provenance, trust: Trust) -> Provenance:
    return origin.model_copy(update={"trust": min(origin.trust, trust, key=rank_of)})


def _with_origins(record: Record, every: Sequence[Provenance]) -> Record:
    best = max(every, key=lambda one: rank_of(one.trust))
    others = [one for one in every if one is not best][-ORIGINS_KEPT:]
    return with_lineage(record.model_copy(update={"provenance": best}), also_from=tuple(others))


def binding_metadata(record: Record) -> Mapping[str, Scalar]:
    """The metadata of a record that a constraint may rely on; empty if nobody vouches for them.

    The agent's own code vouches for what it read off its perceptual state (`Record.sensed`). The
    user or the developer vouch for a record whose origins are all theirs. A record from a stranger
    may be recalled and read, but must forbid nothing.
    """
    return record.metadata if record.sensed or is_trusted(record) else {}


def is_trusted(record: Record) -> bool:
    """Whether none of a record's origins is untrusted."""
    return all(one.trust is not Trust.UNTRUSTED for one in origins(record))


def is_conclusion(record: Record) -> bool:
    """Whether a new record is what its agent concluded, not what somebody said to it."""
    return record.provenance.source_kind == CONCLUSION


def concluded_by(
    source: str, trust: Trust, *, activity: str = "", run: str = "", cycle: int = 0
) -> Provenance:
    """The origin of what was concluded from something of this trust: never a developer's."""
    return Provenance(
        run=run,
        activity=activity,
        cycle=cycle,
        source=source,
        source_kind=CONCLUSION,
        trust=min(trust, Trust.USER, key=rank_of),
    )


def no_better_than(record: Record, same: Iterable[Record]) -> Record:
    """A conclusion, trusted no more than the records that say the same already, if there are any.

    An agent that repeats a record is no further witness of it.
    """
    known = [trust_of(one) for one in same]
    return with_trust(record, [max(known, key=rank_of)]) if known else record


def with_trust(record: Record, others: Iterable[Trust]) -> Record:
    """A new record, trusted no more than the lowest of these."""
    origin = _at_most(record.provenance, min(others, default=Trust.DEVELOPER, key=rank_of))
    return record.model_copy(update={"provenance": origin})


def contradicting(record: Record, others: Iterable[str]) -> Record:
    """The record, with these ids added to those that it contradicts."""
    named = tuple(dict.fromkeys((*record.lineage.contradicts, *others)))
    if named == record.lineage.contradicts:
        return record
    return with_lineage(record, contradicts=named)


def with_lineage(record: Record, **changed: object) -> Record:
    """The record with some fields of its lineage changed."""
    return record.model_copy(update={"lineage": record.lineage.model_copy(update=changed)})


def derived_levels(roots: Iterable[str], sources: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The roots and all that is derived from them, level by level.

    Every record is in one level only, after one of those it is derived from (`sources`). So a
    removal from the last level up can be interrupted and start again from the roots.
    """
    derived: dict[str, list[str]] = defaultdict(list)
    for record, its_sources in sources.items():
        for source in its_sources:
            derived[source].append(record)
    levels = [list(roots)]
    seen = set(levels[0])
    while levels[-1]:
        level = {name for source in levels[-1] for name in derived[source]} - seen
        seen.update(level)
        levels.append(sorted(level))
    return levels[:-1]


# ---- What facts are about, and when they hold ----


def is_matter(fact: Fact | None) -> bool:
    """Whether a fact gives a value to an attribute, so that another can give another value."""
    return fact is not None and bool(fact.attribute.strip() and fact.value.strip())


def one_matter(one: Fact | None, other: Fact | None) -> bool:
    """Whether two facts are about the same attribute of the same subject."""
    if one is None or other is None or folded(one.subject) != folded(other.subject):
        return False
    return folded(one.attribute) == folded(other.attribute)


def takes_on(fact: Fact | None, record: Record) -> bool:
    """Whether a fact confirms or contradicts a record: then it is not derived from it."""
    return is_matter(fact) and one_matter(fact, record.fact)


def same_value(one: Record, other: Record) -> bool:
    """Whether two facts on one matter have the same value."""
    if one.fact is None or other.fact is None:
        return False
    return folded(one.fact.value) == folded(other.fact.value)


def begin_of(record: Record) -> datetime:
    """Since when a record holds: as its fact states, else when it happened or was stored."""
    fact = record.fact
    return record.happened_at if fact is None or fact.valid_from is None else fact.valid_from


def end_of(record: Record) -> datetime | None:
    """When a record ceased or ceases to hold, as far as is known."""
    return None if record.fact is None else record.fact.valid_until


def is_dated(record: Record) -> bool:
    """Whether a record states since when it holds."""
    return record.fact is not None and record.fact.valid_from is not None


def is_bounded(record: Record) -> bool:
    """Whether a record states since when, or until when, it holds."""
    return is_dated(record) or end_of(record) is not None


def in_force(record: Record, at: datetime) -> bool:
    """Whether a record states nothing by which it does not hold yet, or no longer."""
    return _lasts(record, at) and not (is_dated(record) and begin_of(record) > at)


def holds(record: Record, at: datetime) -> bool:
    """Whether a record holds at that time."""
    return begin_of(record) <= at and _lasts(record, at)


def bounded(record: Record, end: datetime | None) -> Record:
    """A record whose fact holds no longer than that."""
    own = end_of(record)
    if end is None or (own is not None and own <= end):
        return record
    return with_times(record, valid_until=end)


def unbounded(record: Record) -> Record:
    """A record whose fact has no end."""
    return with_times(record, valid_until=None)


def with_times(record: Record, **times: datetime | None) -> Record:
    """A record whose fact has other times; one without a fact is returned as it is."""
    if record.fact is None:
        return record
    return record.model_copy(update={"fact": record.fact.model_copy(update=dict(times))})


def _lasts(record: Record, at: datetime) -> bool:
    end = end_of(record)
    return end is None or end > at


# ---- The place of a statement among the others on its matter ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The place of a statement among what is said on its matter."""

    record: Record
    """The statement with its end and its neighbours."""
    ended: tuple[Record, ...] = ()
    """What ceases to hold when it begins, best trusted first, as it was before."""
    contradicts: tuple[Record, ...] = ()
    """What has another value at the same time and stays, best trusted first."""
    later: Record | None = None
    """What holds after it."""
    changed: tuple[Record, ...] = ()
    """Its neighbours as they are now, only those that changed."""

    @property
    def superseded(self) -> tuple[Record, ...]:
        """What was current and is no longer, because of this statement."""
        begun = {one.id for one in self.changed if one.superseded_by == self.record.id}
        return tuple(one for one in self.ended if one.superseded_by is None and one.id in begun)


def placed(statement: Record, others: Sequence[Record], at: datetime) -> Placement:
    """Gives a statement its place among what is said on its matter.

    Each statement holds until the first one begins that is trusted no less. Of two that begin at
    one time the one that was said later holds. One that begins in future leaves what holds now in
    force until then. The statement has its own trust, and is not linked to others yet. Superseded
    records are needed only if a current one begins later (see `is_last`).
    """
    over = not _lasts(statement, at)
    later = _next_one(statement, others, at)
    record = statement if later is None else bounded(statement, begin_of(later))
    ended = () if over else _ended(statement, others, at)
    if ended:
        record = record.model_copy(update={"supersedes": ended[0].id})
    if later is not None and begin_of(later) <= at:
        record = record.model_copy(update={"superseded_by": later.id})
    changed = [now for one in ended if (now := ended_by(one, record, at)) != one]
    if later is not None and later.supersedes in (None, *(one.id for one in ended)):
        changed.append(later.model_copy(update={"supersedes": record.id}))
    touched = {one.id for one in changed}
    changed += [one for one in _come_due(others, at) if one.id not in touched]
    return Placement(
        record=record,
        ended=ended,
        contradicts=() if over else _contradicted(record, ended, later, others, at),
        later=later,
        changed=tuple(changed),
    )


def is_last(statement: Record, others: Iterable[Record]) -> bool:
    """Whether nothing begins after a statement, so that only current records matter to it."""
    return not any(_follows(one, statement) for one in others)


def confirming(statement: Record, others: Iterable[Record]) -> Record | None:
    """What has the same value at the time at which a statement begins, best trusted first.

    One that states another begin does not count, unless the statement is trusted less: it has an
    interval of its own, and what held in between may still become known.
    """
    begin, trust = begin_of(statement), statement.provenance.trust

    def is_apart(one: Record) -> bool:
        both_dated = is_dated(one) and is_dated(statement)
        return both_dated and begin_of(one) != begin and at_least(trust, trust_of(one))

    found = (one for one in others if same_value(one, statement) and holds(one, begin))
    return max((one for one in found if not is_apart(one)), key=_by_trust, default=None)


def ended_by(old: Record, by: Record, at: datetime | None = None) -> Record:
    """A record that holds until another begins; superseded by it once that has begun.

    Without a time, the other has begun for sure.
    """
    begin = begin_of(by)
    begun = at is None or begin <= at or old.fact is None
    return bounded(old, begin).model_copy(update={"superseded_by": by.id if begun else None})


def without(record: Record, others: Sequence[Record]) -> list[Record]:
    """The others on its matter as they are once a record leaves its place: its neighbours meet."""
    heir = next((one for one in others if one.id == record.superseded_by), None)
    heir = heir or next((one for one in others if one.supersedes == record.id), None)
    before = next((one for one in others if one.id == record.supersedes), None)
    rest: list[Record] = []
    for one in others:
        now = one
        if one.superseded_by == record.id or (one is before and _pending(one, record)):
            now = one.model_copy(update={"superseded_by": record.superseded_by})
            if is_dated(record) and end_of(one) == begin_of(record):
                now = unbounded(now)
                now = now if heir is None else bounded(now, begin_of(heir))
        if one is heir and one.supersedes == record.id:
            now = now.model_copy(update={"supersedes": None if before is None else before.id})
        rest.append(now)
    return rest


def settled(
    record: Record, superseded: Iterable[Record], contradicted: Iterable[Record]
) -> list[Record]:
    """The other records as they are beside a written one; only those that change."""
    pairs = [(old, ended_by(old, record)) for old in superseded]
    pairs += [(other, contradicting(other, [record.id])) for other in contradicted]
    return [now for old, now in pairs if now != old]


def marked_contradictions(records: Sequence[Record]) -> list[Record]:
    """Records on one matter, those with another value naming each other; only those that change.

    For facts that hold again once what had taken their place is gone.
    """
    changed: list[Record] = []
    for record in records:
        others = (one for one in records if takes_on(record.fact, one))
        now = contradicting(record, [one.id for one in others if not same_value(record, one)])
        changed += [now] if now != record else []
    return changed


def _next_one(statement: Record, others: Iterable[Record], at: datetime) -> Record | None:
    """The first that begins after a statement and is trusted no less.

    What was said with an end that is over by now does not count.
    """
    trust = statement.provenance.trust
    after = (one for one in _in_line(others, at) if _follows(one, statement))
    return min(
        (one for one in after if at_least(trust_of(one), trust)),
        key=lambda one: (begin_of(one), end_of(one) == begin_of(one), one.created_at, one.id),
        default=None,
    )


def _come_due(others: Sequence[Record], at: datetime) -> list[Record]:
    """What was to be superseded at a time that has come since, and is superseded now."""
    begun = {one.supersedes: one for one in others if begin_of(one) <= at}
    return [
        one.model_copy(update={"superseded_by": begun[one.id].id})
        for one in others
        if one.id in begun and _pending(one, begun[one.id])
    ]


def _ended(statement: Record, others: Iterable[Record], at: datetime) -> tuple[Record, ...]:
    """What a statement ends; not what was superseded without an end of its own, and is over."""
    begin, trust = begin_of(statement), statement.provenance.trust
    before = (one for one in _in_line(others, at) if not _follows(one, statement))
    lasting = (
        one
        for one in before
        if _lasts(one, begin) and (end_of(one) is not None or one.superseded_by is None)
    )
    found = (one for one in lasting if at_least(trust, trust_of(one)))
    return tuple(sorted(found, key=_by_trust, reverse=True))


def _contradicted(
    statement: Record,
    ended: Sequence[Record],
    later: Record | None,
    others: Iterable[Record],
    at: datetime,
) -> tuple[Record, ...]:
    """What has another value at a time at which a current statement holds, too."""
    if statement.superseded_by is not None:
        return ()
    end, begin = end_of(statement), begin_of(statement)
    passed = {one.id for one in ended} | {None if later is None else later.id}
    found = [
        one
        for one in _in_line(others, at)
        if one.superseded_by is None
        and one.id not in passed
        and not same_value(one, statement)
        and _lasts(one, begin)
        and (end is None or begin_of(one) < end)
    ]
    return tuple(sorted(found, key=_by_trust, reverse=True))


def _in_line(others: Iterable[Record], at: datetime) -> list[Record]:
    """All that has a place in the sequence; not what ended by itself and has no successor."""
    every = list(others)
    followed = {one.supersedes for one in every}
    return [
        one
        for one in every
        if one.superseded_by is not None or one.id in followed or _lasts(one, at)
    ]


def _follows(one: Record, statement: Record) -> bool:
    """Whether it begins later; undated ones are not compared, since clocks may differ."""
    return begin_of(one) > begin_of(statement) and (is_dated(one) or is_dated(statement))


def _pending(one: Record, by: Record) -> bool:
    """Whether a record holds until another begins that it is not superseded by yet."""
    return one.superseded_by is None and end_of(one) == begin_of(by)


def _by_trust(record: Record) -> tuple[int, datetime, datetime, str]:
    return rank_of(trust_of(record)), begin_of(record), record.created_at, record.id


# ---- Earlier intervals: when a fact held before, where its value returned in the same words ----


EARLIER_KEPT = 20
"""Earlier intervals that a record keeps, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An interval in which a record held."""

    record: Record
    since: datetime | None
    """None where it is not known."""
    until: datetime | None
    """None where it still holds, or where it is not known."""


def with_earlier(record: Record, new: Record, known: Record, others: Iterable[Record]) -> Record:
    """A known text as it is to be stored, with the intervals in which it held before.

    The best trusted of its sources state these. A statement (`new`) of higher trust than all before
    starts without earlier intervals; one of lower trust adds none.
    """
    trust, was = rank_of(new.provenance.trust), rank_of(trust_of(known))
    if not is_matter(known.fact) or trust < was:
        return record
    if trust > was:
        return with_lineage(record, earlier=()) if known.lineage.earlier else record
    found = {one.since: one for one in known.lineage.earlier}
    for one in (known, new):
        if one is known or is_dated(one):
            # an end that is another's begin was not said, and may still move
            end = end_of(one)
            end = None if any(begin_of(other) == end for other in others) else end
            interval = ValidityInterval(since=begin_of(one), until=end)
            found.setdefault(interval.since, interval)
    latest = tuple(found[at] for at in sorted(found) if at < begin_of(record))[-EARLIER_KEPT:]
    return record if latest == record.lineage.earlier else with_lineage(record, earlier=latest)


def held_when(chain: Sequence[Record]) -> tuple[Held, ...]:
    """When each record of a chain held, oldest first; one whose value returned is there twice.

    An earlier interval ends where another one begins that is trusted no less, as every one does.
    """
    earlier = [(one, interval) for one in chain for interval in one.lineage.earlier]
    begins = [(one, interval.since) for one, interval in earlier]
    every = [*begins, *((one, begin_of(one)) for one in chain)]
    held = [_last_interval(one, begins) for one in chain]
    for one, interval in sorted(earlier, key=lambda both: both[1].since, reverse=True):
        until = _earliest(_next_begin(one, interval.since, every), interval.until)
        part = Held(record=one, since=interval.since, until=until)
        begun = (begin_of(other.record) if other.since is None else other.since for other in held)
        place = next((n for n, at in enumerate(begun) if at > interval.since), len(held))
        following = held[place] if place < len(held) else None
        if following is not None and following.record is one and following.since == until:
            held[place] = Held(record=one, since=part.since, until=following.until)
        else:
            held.insert(place, part)
    return tuple(held)


def _last_interval(one: Record, begins: Sequence[tuple[Record, datetime]]) -> Held:
    """The interval that a record's fact states, cut where an earlier one of another begins."""
    if one.fact is None:
        return Held(record=one, since=None, until=None)
    since = one.fact.valid_from
    if since is None and one.lineage.earlier:
        since = begin_of(one)
    cut = _next_begin(one, begin_of(one), begins)
    return Held(record=one, since=since, until=_earliest(end_of(one), cut))


def _next_begin(
    one: Record, after: datetime, begins: Iterable[tuple[Record, datetime]]
) -> datetime | None:
    """When the first begins after a time that is trusted no less than a record."""
    trust = trust_of(one)
    found = (at for other, at in begins if at > after and at_least(trust_of(other), trust))
    return min(found, default=None)


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)
