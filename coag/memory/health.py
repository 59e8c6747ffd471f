"""The state of a memory: figures, what is wrong in it, and how chains of records are repaired."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from coag.errors import RecordStoreError
from coag.schema import Clock, MemoryKind, Record, SystemClock, Trust, Value, folded, is_own_id
from coag.store import (
    ChromaStore,
    InMemoryStore,
    Lexicon,
    LexiconError,
    RecordStore,
    Search,
    short_id,
    slices,
)

from .dynamics import MemoryArchive
from .facts import in_force, unbounded
from .writing import Matter, matter_of

_NAMED = 3
_BATCH = 500


class IndexHealth(Value):
    """How the index of words of a folder agrees with its records."""

    file: str
    records: int = 0
    """How many it knows."""
    missing: int = 0
    """Records that it does not know: they are not found by their words."""
    stale: int = 0
    """Records that it knows as they were: recall would show what does not hold."""
    extra: int = 0
    """Records that it knows and that are gone."""
    pending: int = 0
    """Records whose writing was interrupted; they are looked at again at the next opening."""
    problem: str = ""
    """Why it cannot be read; empty if it can."""

    @property
    def sound(self) -> bool:
        """Whether it agrees with the records."""
        return not (self.missing or self.stale or self.extra or self.pending or self.problem)


class HealthFinding(Value):
    """Something about a memory that a person should know."""

    level: Literal["look", "bad"]
    """`bad` is damage; what is to be looked at may well be as it should."""
    text: str
    """One sentence, with what to do."""


class MemoryHealth(Value):
    """How a memory is."""

    episodic: int
    semantic: int
    superseded: int
    scopes: dict[str, dict[str, int]]
    """Records by scope and kind."""
    types: dict[str, int]
    """Records by type, the most frequent first."""
    trust: dict[str, int]
    """Records by trust."""
    contradictions: int
    """Pairs of records that say otherwise and both hold now."""
    duplicates: int
    """Records beyond the first that hold with the same text but for case and white space."""
    oldest: datetime | None
    newest: datetime | None
    embedder: str | None
    dimension: int | None
    size: int | None
    """Bytes on disk; None for what is elsewhere."""
    index: IndexHealth | None
    """None where the index of words is not a file: at a server, and in RAM."""
    findings: tuple[HealthFinding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is damaged."""
        return all(one.level != "bad" for one in self.findings)

    @property
    def verdict(self) -> str:
        """One line."""
        bad = sum(one.level == "bad" for one in self.findings)
        look = len(self.findings) - bad
        if bad:
            return f"not healthy: {bad} thing(s) to repair, {look} to look at"
        return f"healthy, {look} thing(s) to look at" if look else "healthy"


async def examine_memory(
    store: RecordStore,
    *,
    clock: Clock | None = None,
    archive: MemoryArchive | None = None,
) -> MemoryHealth:
    """Reads everything once, holds the ids, and reports the state of it; changes nothing.

    Args:
        store: Not yet used for recall or writing: that would repair its index of words first.
        clock: Says what time it is; None for the machine's.
        archive: Where what has faded is, which is not gone.
    """
    tally = _Tally((clock or SystemClock()).now())
    async for records in store.scan():
        for record in records:
            tally.take(record)
    tally.faded = set() if archive is None else archive.has(tally.named())
    counts = {kind: await store.count(kind) for kind in MemoryKind}
    words = store.words_file if isinstance(store, ChromaStore) else None
    index = None if words is None else await asyncio.to_thread(_examine_index, words, tally.ids)
    unfound = [kind for kind, one in tally.probes.items() if not await _is_found(store, one)]
    found = [HealthFinding(level="bad", text=one) for one in _damage(tally, counts, unfound)]
    if index is not None and not index.sound:
        text = f"The index of words: {_unsound(index)} `stats --mend` makes it again."
        found.append(HealthFinding(level="bad", text=text))
    contradictions = tally.contradictions()
    curious = (
        (contradictions, "pair(s) of records contradict each other; `history` shows both"),
        (tally.unmarked(), "matter(s) have several values, none of which names the others"),
        (tally.duplicates, "record(s) repeat another one but for case and white space"),
        (tally.trust[Trust.UNTRUSTED], "record(s) are untrusted; `ls --trust untrusted`"),
        (tally.orphans(), "record(s) were concluded from something that is gone"),
    )
    found += [HealthFinding(level="look", text=f"{n} {text}.") for n, text in curious if n]
    scopes: dict[str, dict[str, int]] = defaultdict(dict)
    for (scope, kind), count in sorted(tally.scopes.items()):
        scopes[scope][kind.value] = count
    embedder = store.embedder if isinstance(store, ChromaStore | InMemoryStore) else None
    return MemoryHealth(
        episodic=tally.kinds[MemoryKind.EPISODIC],
        semantic=tally.kinds[MemoryKind.SEMANTIC],
        superseded=len(tally.superseded),
        scopes=dict(scopes),
        types=dict(tally.types.most_common()),
        trust={one.value: tally.trust[one] for one in Trust},
        contradictions=contradictions,
        duplicates=tally.duplicates,
        oldest=tally.oldest,
        newest=tally.newest,
        embedder=None if embedder is None else embedder.name,
        dimension=None if embedder is None else embedder.dimension,
        size=None if words is None else await asyncio.to_thread(_size_of, words.parent),
        index=index,
        findings=tuple(found),
    )


class _Tally:
    """What was counted so far; of every record its id is kept, of few more."""

    def __init__(self, at: datetime) -> None:
        self._at = at
        self.ids: dict[str, bytes] = {}
        """Of every record a digest of all it says."""
        self.kinds: Counter[MemoryKind] = Counter()
        self.scopes: Counter[tuple[str, MemoryKind]] = Counter()
        self.types: Counter[str] = Counter()
        self.trust: Counter[Trust] = Counter()
        self.oldest: datetime | None = None
        self.newest: datetime | None = None
        self.probes: dict[MemoryKind, Record] = {}
        """Of each kind a current record."""
        self.superseded: dict[str, str] = {}
        """By what, by id."""
        self.faded: set[str] = set()
        """Those that records name, and that are in the archive."""
        self.duplicates = 0
        self.foreign_ids: list[str] = []
        """Records whose id is not that of their kind, scope and text."""
        self._texts: set[bytes] = set()
        self._contradicts: dict[str, tuple[str, ...]] = {}
        self._not_now: set[str] = set()
        """What nothing superseded and does not hold yet, or no longer."""
        self._derived: dict[str, tuple[str, ...]] = {}
        self._facts: dict[Matter, list[tuple[str, str, tuple[str, ...]]]] = defaultdict(list)
        """Id, value and contradicted ids of what holds now."""

    def take(self, record: Record) -> None:
        """Counts a record."""
        self.ids[record.id] = _digest(record.model_dump_json())
        self.kinds[record.kind] += 1
        self.scopes[record.scope, record.kind] += 1
        self.types[record.type] += 1
        self.trust[record.provenance.trust] += 1
        self.oldest = min(self.oldest or record.created_at, record.created_at)
        self.newest = max(self.newest or record.created_at, record.created_at)
        if not is_own_id(record):
            self.foreign_ids.append(record.id)
        if record.lineage.derived_from:
            self._derived[record.id] = record.lineage.derived_from
        if record.lineage.contradicts:
            self._contradicts[record.id] = record.lineage.contradicts
        if record.superseded_by is not None:
            self.superseded[record.id] = record.superseded_by
            return
        self.probes.setdefault(record.kind, record)
        text = _digest("\x1f".join((record.kind, record.scope, folded(record.text))))
        self.duplicates += text in self._texts
        self._texts.add(text)
        if not in_force(record, self._at):
            self._not_now.add(record.id)
        elif record.kind is MemoryKind.SEMANTIC and (matter := matter_of(record)) is not None:
            value = "" if record.fact is None else folded(record.fact.value)
            self._facts[matter].append((record.id, value, record.lineage.contradicts))

    def contradictions(self) -> int:
        """Pairs that contradict each other and both hold now."""
        over = self.superseded.keys() | self._not_now
        pairs = {
            frozenset((one, other))
            for one, others in self._contradicts.items()
            for other in others
            if other in self.ids and not {one, other} & over
        }
        return len(pairs)

    def unmarked(self) -> int:
        """Matters of which a fact differs from the first, and neither names the other."""
        count = 0
        for (first, value, named), *others in self._facts.values():
            differing = (one for one in others if one[1] != value and one[0] not in named)
            count += any(first not in names for _, _, names in differing)
        return count

    def named(self) -> set[str]:
        """The ids that records name, and that are not here."""
        derived = (name for names in self._derived.values() for name in names)
        return {name for name in (*derived, *self.superseded.values()) if name not in self.ids}

    def hidden(self) -> list[str]:
        """Records that are superseded by something that is gone."""
        by = self.superseded.items()
        return [one for one, name in by if name not in self.ids and name not in self.faded]

    def orphans(self) -> int:
        """Records that were concluded from something that is gone."""
        gone = self.named() - self.faded
        return sum(not gone.isdisjoint(names) for names in self._derived.values())


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _examine_index(file: Path, ids: Mapping[str, bytes]) -> IndexHealth:
    """How an index of words agrees with these records, of which it has digests; it blocks."""
    if not file.is_file():
        problem = "There is no such file." if ids else ""
        return IndexHealth(file=str(file), missing=len(ids), problem=problem)
    missing = stale = 0
    try:
        with closing(Lexicon(file)) as lexicon:
            for some in slices(ids, 1000):
                kept = lexicon.kept(some)
                missing += len(some) - len(kept)
                stale += sum(ids[one] != _kept_digest(*said) for one, said in kept.items())
            return IndexHealth(
                file=str(file),
                records=lexicon.count(),
                missing=missing,
                stale=stale,
                extra=len(lexicon.other_than(ids.keys())),
                pending=len(lexicon.pending()),
            )
    except LexiconError as error:
        return IndexHealth(file=str(file), problem=str(error))


def _kept_digest(text: str, rest: str) -> bytes | None:
    """The digest of a record as the index keeps it; None if it is none any more."""
    try:
        record = Record.model_validate({**json.loads(rest), "text": text})
    except ValueError:
        return None
    return _digest(record.model_dump_json())


async def _is_found(store: RecordStore, probe: Record) -> bool:
    try:
        return bool(await store.search(Search(text=probe.text, kind=probe.kind, k=50, min_score=0)))
    except RecordStoreError:
        return False


def _damage(
    tally: _Tally, counts: dict[MemoryKind, int], unfound: list[MemoryKind]
) -> Iterator[str]:
    for kind, count in counts.items():
        if count != tally.kinds[kind]:
            text = f"The store counts {count} {kind} records and gives {tally.kinds[kind]}."
            yield f"{text} Was it written to just now? Look again."
    for kind in unfound:
        text = f"The search by meaning finds no {kind} record by its own text: its index is broken."
        yield f"{text} Export the records and import them elsewhere."
    if tally.foreign_ids:
        text = f"{len(tally.foreign_ids)} record(s) have an id that is not that of their text"
        yield f"{text}: {_named(tally.foreign_ids)}."
    if hidden := tally.hidden():
        text = f"{len(hidden)} record(s) are superseded by records that are gone: {_named(hidden)}."
        yield f"{text} Neither is recalled; `stats --mend` makes them hold again."


def _unsound(index: IndexHealth) -> str:
    parts = (
        (index.missing, "record(s) are not in it"),
        (index.stale, "are in it as they were"),
        (index.extra, "in it are gone"),
        (index.pending, "were being written when that was interrupted"),
    )
    counts = ", ".join(f"{count} {text}" for count, text in parts if count) + "."
    return index.problem or counts


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(map(short_id, ids[:_NAMED])) + more


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def repair_chains(store: RecordStore) -> tuple[str, ...]:
    """Makes every record hold again that is superseded by one that is gone; returns their ids.

    The end of such a record's fact goes, too, since what set it is gone.
    """
    by: dict[str, str] = {}
    there: set[str] = set()
    async for records in store.scan(batch=_BATCH):
        there.update(record.id for record in records)
        by.update({one.id: one.superseded_by for one in records if one.superseded_by is not None})
    hidden = [name for name, other in by.items() if other not in there]
    for some in slices(hidden, _BATCH):
        found = await store.get(some)
        current = [record.model_copy(update={"superseded_by": None}) for record in found]
        await store.update(list(map(unbounded, current)))
    return tuple(hidden)
