"""Counting what there is in a memory, record by record. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b

from coag.memory import in_force
from coag.schema import Fact, MemoryKind, Record, Trust, is_own_id
from coag.store import folded

_Said = tuple[str, str, tuple[str, ...]]
"""Id, folded value and what it names as saying otherwise."""


def digest_of(record: Record) -> bytes:
    """A short form of everything that a record says."""
    return blake2b(record.model_dump_json().encode(), digest_size=12).digest()


class Tally:
    """What was counted so far; of every record its id is kept, of few more.

    Args:
        at: Now; what does not hold then contradicts nothing.
    """

    def __init__(self, at: datetime) -> None:
        self._at = at
        self.ids: dict[str, bytes] = {}
        """Of every record a digest of all it says."""
        self.kinds: Counter[MemoryKind] = Counter()
        self.scopes: Counter[tuple[str, MemoryKind]] = Counter()
        self.types: Counter[str] = Counter()
        self.trust: Counter[Trust] = Counter()
        self.superseded: dict[str, str] = {}
        """By what, by id."""
        self.duplicates = 0
        self.foreign_ids: list[str] = []
        """Records whose id is not that of their kind, scope and text."""
        self.oldest: datetime | None = None
        self.newest: datetime | None = None
        self._texts: set[bytes] = set()
        self._contradicts: dict[str, tuple[str, ...]] = {}
        self._not_now: set[str] = set()
        """What nothing superseded and does not hold yet, or no longer."""
        self._derived: dict[str, tuple[str, ...]] = {}
        self._facts: dict[tuple[str, str, str], list[_Said]] = {}

    def take(self, records: Iterable[Record]) -> None:
        """Counts these, too."""
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        self.ids[record.id] = digest_of(record)
        self.kinds[record.kind] += 1
        self.scopes[record.scope, record.kind] += 1
        self.types[record.type] += 1
        self.trust[record.provenance.trust] += 1
        made = record.created_at
        self.oldest = made if self.oldest is None else min(self.oldest, made)
        self.newest = made if self.newest is None else max(self.newest, made)
        if not is_own_id(record):
            self.foreign_ids.append(record.id)
        if record.lineage.derived_from:
            self._derived[record.id] = record.lineage.derived_from
        if record.lineage.contradicts:
            self._contradicts[record.id] = record.lineage.contradicts
        if record.superseded_by is not None:
            self.superseded[record.id] = record.superseded_by
        else:
            self._take_current(record)

    def _take_current(self, record: Record) -> None:
        said = "\x1f".join((record.kind, record.scope, folded(record.text)))
        text = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        self.duplicates += text in self._texts
        self._texts.add(text)
        fact = record.fact
        if not in_force(record, self._at):
            self._not_now.add(record.id)
        elif fact is not None and record.kind is MemoryKind.SEMANTIC and _comparable(fact):
            matter = (record.scope, folded(fact.subject), folded(fact.attribute))
            one = (record.id, folded(fact.value), record.lineage.contradicts)
            self._facts.setdefault(matter, []).append(one)

    def contradictions(self) -> int:
        """Pairs that say otherwise and both hold now."""
        over = self.superseded.keys() | self._not_now
        pairs = {
            frozenset((one, other))
            for one, others in self._contradicts.items()
            for other in others
            if other in self.ids and not {one, other} & over
        }
        return len(pairs)

    def unmarked(self) -> int:
        """Matters on which facts hold now that differ and do not name each other."""
        return sum(map(_differ_unnamed, self._facts.values()))

    def hidden(self) -> list[str]:
        """Records that are superseded by one that is not there, so that neither is recalled."""
        return [one for one, by in self.superseded.items() if by not in self.ids]

    def orphans(self) -> int:
        """Records that were concluded from something that is gone."""
        found = (any(n not in self.ids for n in names) for names in self._derived.values())
        return sum(found)


def _comparable(fact: Fact) -> bool:
    return bool(folded(fact.attribute))


def _differ_unnamed(said: list[_Said]) -> bool:
    first = said[0]
    return any(
        one[1] != first[1] and one[0] not in first[2] and first[0] not in one[2] for one in said[1:]
    )
