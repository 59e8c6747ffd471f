"""Facts: where they come from, when they hold, and which of two gives way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Fact, Lineage, Provenance, Record, Scalar, Stretch, Trust
from coag.store import folded

# ---- Where records come from and what hangs on them: pure rules over their lineage ----


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


def lowest(trust: Trust, others: Iterable[Trust]) -> Trust:
    """The lowest of them all."""
    return min((trust, *others), key=_RANKS.__getitem__)


def trust_of(record: Record) -> Trust:
    """How far what a record says may be trusted: as far as the best of its origins."""
    return max((one.trust for one in origins(record)), key=_RANKS.__getitem__)


def origins(record: Record) -> tuple[Provenance, ...]:
    """Every origin of a record, the best trusted one first, the others oldest first."""
    return (record.provenance, *record.lineage.also_from)


def with_origin(record: Record, origin: Provenance) -> Record:
    """The record with one more origin, unless it has it already.

    The first of those that are trusted best is the record's provenance, so that this tells how
    far the record may be trusted; it always stays.
    """
    if origin in origins(record):
        return record
    return _stated_by(record, (*origins(record), origin))


def without_source(record: Record, source: str) -> Record | None:
    """The record without what one source said of it, or what was concluded after it was shown.

    None if nobody else said it.
    """
    left = tuple(one for one in origins(record) if source not in (one.source, *one.shown))
    return _stated_by(record, left) if left else None


def trusted_at_most(record: Record, trust: Trust) -> Record:
    """The record, none of whose origins is trusted more than this."""
    lowered = [
        one.model_copy(update={"trust": lowest(one.trust, [trust])}) for one in origins(record)
    ]
    return _stated_by(record, lowered)


def _stated_by(record: Record, every: Sequence[Provenance]) -> Record:
    best = max(every, key=lambda one: _RANKS[one.trust])
    kept = [one for one in every if one is not best][-ORIGINS_KEPT:]
    return with_lineage(record.model_copy(update={"provenance": best}), also_from=tuple(kept))


def binding_metadata(record: Record) -> Mapping[str, Scalar]:
    """The metadata of a record by which a hard rule may go; empty where nobody vouches for them.

    The agent's own code vouches for what it read off its perceptual state (`Record.sensed`), and
    the user or the developer where all that the record stems from is theirs. A stranger's record
    may be recalled and read, but must forbid nothing.
    """
    return record.metadata if record.sensed or is_trusted(record) else {}


def is_trusted(record: Record) -> bool:
    """Whether nobody untrusted had a part in a record."""
    return all(one.trust is not Trust.UNTRUSTED for one in origins(record))


def concludes(record: Record) -> bool:
    """Whether a new record says what its agent concluded, and not what somebody told it."""
    return record.provenance.source_kind == CONCLUSION


def no_better_than(record: Record, said: Iterable[Record]) -> Record:
    """A conclusion trusted no more than the records that say the same already, if there are any.

    Repeating them is no further witness of what they say.
    """
    known = [trust_of(one) for one in said]
    if not known:
        return record
    best = max(known, key=_RANKS.__getitem__)
    trust = lowest(record.provenance.trust, [best])
    return record.model_copy(
        update={"provenance": record.provenance.model_copy(update={"trust": trust})}
    )


def contradicting(record: Record, others: Iterable[str]) -> Record:
    """The record, naming these others as what says otherwise besides those it names."""
    named = tuple(dict.fromkeys((*record.lineage.contradicts, *others)))
    if named == record.lineage.contradicts:
        return record
    return with_lineage(record, contradicts=named)


def with_lineage(record: Record, **changed: object) -> Record:
    """The record with some of its lineage changed."""
    lineage = record.lineage.model_copy(update=changed)
    return record.model_copy(update={"lineage": lineage})


def lineage_from(record_id: str, sources: Sequence[Record]) -> Lineage:
    """The lineage of a new record that is concluded from others; nothing rests on itself."""
    ids = dict.fromkeys(source.id for source in sources if source.id != record_id)
    return Lineage(derived_from=tuple(ids))


def derived_levels(
    roots: str | Collection[str], sources: Mapping[str, Collection[str]]
) -> list[list[str]]:
    """The roots and all that rests on them, level by level.

    Every record stands in one level only, behind one of those it was concluded from, so that
    whoever takes the last level away first can begin again from the roots at any time.

    Args:
        roots: The record, or the records, at which to begin.
        sources: For each record, what it was concluded from.
    """
    first = [roots] if isinstance(roots, str) else list(roots)
    resting: dict[str, list[str]] = {}
    for record, its_sources in sources.items():
        for source in its_sources:
            resting.setdefault(source, []).append(record)
    levels, seen = [first], set(first)
    while levels[-1]:
        found = (name for source in levels[-1] for name in resting.get(source, ()))
        level = sorted(set(found) - seen)
        seen.update(level)
        levels.append(level)
    return levels[:-1]


# ---- When facts on one matter hold: stretches of time that follow each other. Pure rules ----


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


def is_matter(fact: Fact | None) -> bool:
    """Whether a fact says a value of a property, so that another can say otherwise."""
    return fact is not None and bool(fact.attribute.strip() and fact.value.strip())


def one_matter(one: Fact | None, other: Fact | None) -> bool:
    """Whether two facts are about the same property of the same thing."""
    if one is None or other is None:
        return False
    return (folded(one.subject), folded(one.attribute)) == (
        *(folded(other.subject), folded(other.attribute)),
    )


def takes_on(fact: Fact | None, record: Record) -> bool:
    """Whether a fact says otherwise than a record, or the same: it does not rest on that one."""
    return is_matter(fact) and one_matter(fact, record.fact)


def settled(
    record: Record, superseded: Iterable[Record], contradicted: Iterable[Record]
) -> list[Record]:
    """The other records as they stand beside a written one; only those that change.

    Args:
        record: What was written.
        superseded: Whose place it takes.
        contradicted: What says otherwise and stays.
    """
    changed: list[Record] = []
    for old in superseded:
        now = ended_by(old, record)
        changed += [now] if now != old else []
    for other in contradicted:
        now = contradicting(other, [record.id])
        changed += [now] if now != other else []
    return changed


def parted(records: Sequence[Record]) -> list[Record]:
    """Records on one matter, those that say otherwise naming each other; only those that change.

    For facts that hold again after what had taken their place is gone.
    """
    changed: list[Record] = []
    for record in records:
        against = [
            other.id
            for other in records
            if one_matter(record.fact, other.fact)
            and is_matter(record.fact)
            and not same_value(record, other)
        ]
        now = contradicting(record, against)
        changed += [now] if now != record else []
    return changed


# ---- When a fact held before, where its value returned in the same words. Pure rules ----


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
        until = _first_stretch(one, stretch.since, [(other, begin_of(other)) for other in chain])
        until = _earliest(until, _first_stretch(one, stretch.since, _begins(earlier)))
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
    cut = _first_stretch(one, begin_of(one), _begins(earlier))
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


def _first_stretch(
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
