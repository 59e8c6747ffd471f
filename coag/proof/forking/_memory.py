"""The long-term memory of a fork: what its parent's held at the boundary, in RAM.

The parent's own memory is only read: a folder is copied first, since a database writes to its
files even when it is asked. What a fork began with is kept in its run's folder, so that it can be
forked in its turn.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from coag.agent import taking_up
from coag.errors import ConfigurationError, RecordStoreError, TraceError, UnknownNameError
from coag.memory import LongTermMemory, RecallSource, settled
from coag.schema import MemoryKind, RecalledRecord, Record, Written
from coag.store import SHORT_ID_LENGTH, ChromaStore, InMemoryStore, RecordStore, Search
from coag.tracing import Redactor, RunFolder

from ._past import Later, Past

_ALL = 1_000_000_000
_NAMED = 10
"""Records that an error names."""


class _Without:
    """A further source of recall that leaves some records out."""

    def __init__(self, source: RecallSource, left_out: frozenset[str]) -> None:
        self.name = source.name
        self._source = source
        self._left_out = left_out

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        """What the source finds besides those."""
        found = await self._source.recall(query, k + len(self._left_out))
        return [hit for hit in found if hit.record.id not in self._left_out][:k]


async def records_at(memory: LongTermMemory, past: Past, later: Later) -> dict[str, Record]:
    """What the run's memory held at the boundary, by id.

    Args:
        memory: The memory that the run's recipe makes.
        past: The run up to the boundary.
        later: The run from there on.

    Raises:
        RecordStoreError: The memory cannot be read.
    """
    before = [line for line in past.remains.written if line.what == "record"]
    if past.info.parent is not None:
        kept = {record.id: record for record in past.run.remembered()}
        return with_written(kept, before)
    async with _readable(memory.store) as store:
        held = await _all(store, memory.scopes.readable)
    after = [line for line in later.written if line.what == "record"]
    held = without_later(held, before, after, past.at, past.info.id)
    shown = _shown(past, later, {line.id for line in (*before, *after)})
    return with_written({**shown, **held}, [line for line in before if line.id not in held])


def _shown(past: Past, later: Later, written: Container[str]) -> dict[str, Record]:
    """What the trace shows to have been in memory before the run: it was recalled."""
    hits = {**later.recalled, **past.recalled}.values()
    return {
        hit.record.id: hit.record
        for hit in hits
        if hit.record.id not in written
        and hit.record.provenance.source_kind != "memory"  # of a further source of recall
        and (past.at is None or hit.record.created_at <= past.at)
    }


def without_later(
    held: Mapping[str, Record],
    before: Sequence[Written],
    after: Sequence[Written],
    at: datetime | None,
    run: str,
) -> dict[str, Record]:
    """The records as they were at a moment: what came later is gone, what it replaced holds.

    Args:
        held: The records as they are now.
        before: What the run wrote up to the moment.
        after: What it wrote since.
        at: The moment.
        run: The run's id.
    """
    old = {line.id for line in before}
    new = {line.id: line for line in after if line.id not in old}
    kept = {
        name: record
        for name, record in held.items()
        if not (at is not None and record.created_at > at)
        and not (name in new and _made_by(record, run, at))
    }
    undone = {_superseded(line) for line in after} - {_superseded(line) for line in before}
    revived = {line.id for line in after if _superseded(line) in undone and line.id in kept}
    former = {record.supersedes: name for name, record in kept.items() if record.supersedes}
    for name, record in kept.items():
        by = record.superseded_by
        if by is not None and (by not in kept or (name in undone and by in revived)):
            kept[name] = record.model_copy(update={"superseded_by": None})
    for name in revived:
        kept[name] = kept[name].model_copy(update={"superseded_by": former.get(name)})
    return kept


def with_written(held: Mapping[str, Record], lines: Iterable[Written]) -> dict[str, Record]:
    """The records after these lines of a trace, in order.

    Raises:
        TraceError: A line holds no record.
    """
    records = dict(held)
    for line in lines:
        with taking_up(line, "content"):
            record = Record.model_validate(line.content)
        old = records.get(record.supersedes or "")
        others = [records[one] for one in record.lineage.contradicts if one in records]
        for changed in settled(record, [] if old is None else [old], others):
            records[changed.id] = changed
        records[record.id] = record.model_copy(update={"superseded_by": None})
    return records


def without_records(held: Mapping[str, Record], names: Iterable[str]) -> dict[str, Record]:
    """The records as if these had never been written: what they superseded holds again."""
    gone = set(names)
    return {
        name: record.model_copy(update={"superseded_by": None})
        if record.superseded_by in gone
        else record
        for name, record in held.items()
        if name not in gone
    }


def record_named(name: str, known: Mapping[str, Record]) -> str:
    """The id of the record that an id or a short id means.

    Raises:
        UnknownNameError: There was none at the boundary; lists the newest there were.
        ConfigurationError: It is too short, or several begin with it.
    """
    found = [record_id for record_id in known if record_id.startswith(name)]
    if len(found) == 1 and len(name) >= SHORT_ID_LENGTH:
        return found[0]
    if found:
        raise ConfigurationError(
            f"{name!r} is no id of a record, nor a short one: give {SHORT_ID_LENGTH} characters or "
            f"more of: {', '.join(sorted(found)[:_NAMED])}."
        )
    newest = sorted(known.values(), key=lambda record: record.created_at)[-_NAMED:]
    raise UnknownNameError("record at the boundary", name, (record.id for record in newest))


async def own_memory(
    memory: LongTermMemory, records: Iterable[Record], left_out: Iterable[str]
) -> LongTermMemory:
    """A memory in RAM with these records, recalled as the given one recalls."""
    store = InMemoryStore(getattr(memory.store, "embedder", None))
    await store.add(list(records))
    gone = frozenset(left_out)
    return LongTermMemory(
        store,
        scope=memory.scopes,
        clock=memory.clock,
        sources=[_Without(source, gone) for source in memory.sources] if gone else memory.sources,
        source_timeout=memory.source_timeout,
        ranking=memory.ranking,
    )


def keep(run: RunFolder, records: Iterable[Record]) -> None:
    """Writes down what a fork's memory began with.

    Raises:
        TraceError: It cannot be written.
    """
    redactor = Redactor.from_environment()
    path = run.remembered_path
    text = "".join(redactor.clean(record.model_dump_json()) + "\n" for record in records)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise TraceError(path, f"cannot be written: {error.strerror}") from error


def _made_by(record: Record, run: str, at: datetime | None) -> bool:
    return record.provenance.run == run or (at is not None and record.created_at >= at)


def _superseded(line: Written) -> str | None:
    return line.content.get("supersedes")


async def _all(store: RecordStore, scopes: Sequence[str]) -> dict[str, Record]:
    found: dict[str, Record] = {}
    for kind in MemoryKind:
        search = Search(text=None, kind=kind, k=_ALL, scopes=tuple(scopes), include_superseded=True)
        found |= {hit.record.id: hit.record for hit in await store.search(search)}
    return found


@asynccontextmanager
async def _readable(store: RecordStore) -> AsyncGenerator[RecordStore]:
    """The store, or a copy of it where reading would write; a folder that is not there is empty."""
    location = store.given_location if isinstance(store, ChromaStore) else None
    if not isinstance(store, ChromaStore) or "://" in str(location):
        yield store
        return
    with TemporaryDirectory(prefix="coag-fork-") as where:
        copied = Path(where) / "memory"
        if not await asyncio.to_thread(_copied, Path(store.given_location), copied):
            yield InMemoryStore(store.embedder)
            return
        copy = ChromaStore(copied, store.embedder, collection=store.collection)
        try:
            yield copy
        finally:
            await copy.close()


def _copied(folder: Path, to: Path) -> bool:
    """Copies a folder, if it is there.

    Raises:
        RecordStoreError: It cannot be read.
    """
    folder = folder.expanduser()
    if not folder.is_dir():
        return False
    try:
        shutil.copytree(folder, to)
    except (OSError, shutil.Error) as error:
        raise RecordStoreError(f"The memory in {str(folder)!r} cannot be read: {error}") from error
    return True
