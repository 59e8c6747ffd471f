"""What stays when records go: chains close, and what they had superseded holds again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Record
from coag.store import RecordStore

from ._facts import one_matter, parted
from ._lineage import with_lineage
from ._records import StoredRecords
from ._stretches import begin_of, bounded, end_of, holding_again

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Link:
    """How a record hangs on others."""

    derived_from: tuple[str, ...]
    contradicts: tuple[str, ...]
    supersedes: str | None
    superseded_by: str | None
    begin: datetime

    def names(self, gone: Set[str]) -> bool:
        others = (*self.contradicts, self.supersedes, self.superseded_by)
        return not gone.isdisjoint(one for one in others if one is not None)


async def links_of(store: RecordStore, scopes: Sequence[str]) -> dict[str, Link]:
    """The links of the records that have any, by id."""
    links: dict[str, Link] = {}
    async for records in store.scan(scopes=scopes, batch=_BATCH):
        for record in records:
            lineage = record.lineage
            link = Link(
                lineage.derived_from,
                lineage.contradicts,
                record.supersedes,
                record.superseded_by,
                begin_of(record),
            )
            if any((*link.derived_from, *link.contradicts, link.supersedes, link.superseded_by)):
                links[record.id] = link
    return links


async def healed(
    store: RecordStore, links: Mapping[str, Link], gone: Set[str]
) -> tuple[list[Record], list[str]]:
    """The records that stay as they are without those that go, and which of them hold again."""
    touched = [one for one, link in links.items() if one not in gone and link.names(gone)]
    waiting = _waiting(links, gone)
    before = await fetched(store, list(dict.fromkeys((*touched, *waiting))))
    after: dict[str, Record] = {}
    followers = _followers(links, gone)
    for one in before:
        by = waiting.get(one.id) if one.superseded_by is None else one.superseded_by
        after[one.id] = _without(one, gone, links, by if by in gone else None, followers)
    restored = [r.id for r in before if r.superseded_by and not after[r.id].superseded_by]
    held = [after[name] for name in restored]
    known = {record.id: record for record in before}
    for record in held:
        rivals = {other.id: other for other in held if _rivals(other, record)}
        rivals[record.id] = record
        for other in await StoredRecords(store).on_matter(record):
            if other.id not in gone:
                known.setdefault(other.id, other)
                rivals.setdefault(other.id, other)
        current = [after.get(name, rival) for name, rival in rivals.items()]
        after.update({other.id: other for other in parted(current)})
    return [record for record in after.values() if record != known[record.id]], restored


def _rivals(one: Record, other: Record) -> bool:
    return one.scope == other.scope and one_matter(one.fact, other.fact)


async def fetched(store: RecordStore, ids: Sequence[str]) -> list[Record]:
    """Those of these records that there are, asked for some at a time."""
    found: list[Record] = []
    for start in range(0, len(ids), _BATCH):
        found += await store.get(ids[start : start + _BATCH])
    return found


def _waiting(links: Mapping[str, Link], gone: Set[str]) -> dict[str, str]:
    """What goes by what stays and was to be superseded by it, or was when the time came."""
    return {
        old: one
        for one, link in links.items()
        if one in gone and (old := link.supersedes) is not None and old not in gone
    }


def _followers(links: Mapping[str, Link], gone: Set[str]) -> dict[str, str]:
    """What stays by what goes and was to be superseded by it."""
    return {
        old: one
        for one, link in links.items()
        if one not in gone and (old := link.supersedes) is not None and old in gone
    }


def _without(
    record: Record,
    gone: Set[str],
    links: Mapping[str, Link],
    by: str | None,
    followers: Mapping[str, str],
) -> Record:
    """A record as if those that go had never been.

    Args:
        record: One that stays.
        gone: What goes.
        links: How all hang together.
        by: What goes, and took the record's place or was to take it.
        followers: What stays by what goes and was to be superseded by it.
    """
    record = _not_contradicting(record, gone)
    if record.supersedes in gone:
        before = _beyond(record.supersedes, gone, links, "supersedes")
        record = record.model_copy(update={"supersedes": None if before == record.id else before})
    if by is None:
        return record
    ended_by_it = by in links and end_of(record) == links[by].begin
    if record.superseded_by is None and not ended_by_it:
        return record
    heir = _beyond(by, gone, links, "superseded_by")
    heir = None if heir == record.id else heir
    after = heir or followers.get(by)
    if ended_by_it:
        record = holding_again(record)
        if after is not None and after in links and links[after].begin > begin_of(record):
            record = bounded(record, links[after].begin)
    return record.model_copy(update={"superseded_by": heir})


def _beyond(
    name: str | None, gone: Set[str], links: Mapping[str, Link], attribute: str
) -> str | None:
    """The first record along a chain that stays."""
    seen: set[str] = set()
    while name is not None and name in gone:
        link = links.get(name)
        if link is None or name in seen:
            return None
        seen.add(name)
        name = getattr(link, attribute)
    return name


def _not_contradicting(record: Record, gone: Iterable[str]) -> Record:
    left = tuple(one for one in record.lineage.contradicts if one not in set(gone))
    return record if left == record.lineage.contradicts else with_lineage(record, contradicts=left)
