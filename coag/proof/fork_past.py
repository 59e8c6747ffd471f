"""The past of a fork: its records, and long-term memory as it was."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from coag._util.secrets import REDACTED
from coag._util.validation import first_error
from coag.agent import RecoveredState, reading_trace
from coag.context import CoagContext, WorkingMemory, rebuild
from coag.cycle import Deps, close_cycle
from coag.errors import ConfigurationError, RecordStoreError, TraceError, UnknownNameError
from coag.memory import LongTermMemory, RecallSource, settled
from coag.schema import (
    Entry,
    MemoryKind,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    RecalledRecord,
    Record,
    Redactor,
    RetrievalOutcome,
    Snapshot,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
    Written,
)
from coag.store import SHORT_ID_LENGTH, ChromaStore, InMemoryStore, RecordStore, Search
from coag.tracing import RunFolder, RunInfo, read_run, read_trace

from .boundary import Boundary, CycleResult, cycle_results

# ---- What a run was at one of its boundaries, and what of its later life is known ----


GENERATIONS = 100
"""Forks of forks of forks that are followed back; a trace may be hostile."""


@dataclass(slots=True, kw_only=True)
class Past:
    """A run up to a boundary."""

    run: RunFolder
    info: RunInfo
    boundary: Boundary
    seq: int
    """Number of the first record that is not part of it."""
    remains: RecoveredState = field(default_factory=RecoveredState)
    """What the run's agent is restored from."""
    at: datetime | None = None
    """When its last record was made."""
    recalled: dict[str, RecalledRecord] = field(default_factory=dict[str, RecalledRecord])
    """What was recalled so far, by the record's id."""
    knows_environment: bool = False
    """True if `remains.environment` is the environment's state as the cycle began."""

    def take(self, record: TraceRecord) -> None:
        """Adds the next record of the past."""
        self.remains.take(record)
        if isinstance(record, Note) and record.about == "environment":
            self.knows_environment, self.remains.environment = False, None
            return
        self.at = record.at
        if isinstance(record, RetrievalOutcome):
            self.recalled |= {hit.record.id: hit for hit in record.records}
        elif isinstance(record, Snapshot):
            self.knows_environment = self.remains.environment is not None

    def inherit(self) -> None:
        """Adds what a fork's own trace does not say of how it began: its turn, its environment."""
        if self.info.parent is None:
            return
        before = replace(self, remains=RecoveredState(), recalled={})
        for record in inherited(self.run, self.info)[0]:
            before.take(record)
        old, own = before.remains, self.remains
        own.turn, own.turn_open, own.outcomes = old.turn, old.turn_open, old.outcomes
        own.environment, self.knows_environment = old.environment, before.knows_environment
        if not own.turn:
            own.turn, own.turn_open = first_turn(entry.body for entry in _entries(self.run))

    @property
    def working_memory(self) -> WorkingMemory:
        """The working memory as it was there."""
        if self.remains.snapshot is None:
            raise AssertionError("A boundary comes after a snapshot.")
        return rebuild(memory_of(self.remains.snapshot), self.remains.since)


@dataclass(slots=True, kw_only=True)
class Later:
    """What the run did from the boundary on."""

    first: int
    """The boundary's cycle."""
    inputs: list[list[Percept]] = field(default_factory=list[list[Percept]])
    """The messages of each later turn."""
    sensed: int = 0
    """Percepts that came on their own, not as messages."""
    written: list[Written] = field(default_factory=list[Written])
    recalled: dict[str, RecalledRecord] = field(default_factory=dict[str, RecalledRecord])
    """What its cycles recalled, by the record's id."""
    retrieved: tuple[RecalledRecord, ...] = ()
    """What the boundary's Retrieval recalled, where it came later."""
    constraints: tuple[str, ...] | None = None
    """Those in force in the boundary's cycle, where its Retrieval came later."""
    environment: object = None
    """The last state of the environment that the trace has."""
    _outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def cycles(self) -> tuple[CycleResult, ...]:
        """The results of its cycles, from the boundary's on."""
        return tuple(cycle_results(self._outcomes))

    def note_outcome(self, record: TraceRecord) -> None:
        """Adds an outcome of the boundary's cycle, from before it or after."""
        if record.record == "outcome" and record.cycle >= self.first:
            self._outcomes.append(record)

    def take(self, record: TraceRecord) -> None:
        """Adds the next record after the boundary."""
        self.note_outcome(record)
        match record:
            case Written():
                self.written.append(record)
            case TurnStart():
                self.inputs.append([])
            case Percept() if record.caused_by is None:
                if record.kind is PerceptKind.MESSAGE and record.trust is not Trust.DEVELOPER:
                    self.inputs[-1:] = [[*one, record] for one in self.inputs[-1:]]
                self.sensed += record.kind in (PerceptKind.PROPERTY_CHANGE, PerceptKind.SIGNAL)
            case RetrievalOutcome():
                self.recalled |= {hit.record.id: hit for hit in record.records}
                if self.constraints is None:
                    self.constraints, self.retrieved = record.constraints, record.records
            case Snapshot() if record.environment is not None:
                self.environment = record.environment
            case _:
                pass


def read_past(run: RunFolder | Path | str, boundary: Boundary) -> tuple[Past, Later]:
    """What the run was at the boundary, and what it did from there on; nothing is written."""
    run = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    info = read_run(run.path)
    if info.kind != "coag":
        problem = f"Run {info.id!r} is a plain agent's: it has no phases to go back to"
        raise ConfigurationError(f"{problem}; see `coag log`.")
    seq = boundary.seq_in(_entries(run), info)
    past = Past(run=run, info=info, boundary=boundary, seq=seq)
    past.inherit()
    later = Later(first=boundary.cycle)
    for entry in _entries(run):
        if entry.seq < seq:
            past.take(entry.body)
            later.note_outcome(entry.body)
            later.environment = past.remains.environment
        else:
            later.take(entry.body)
    memory = past.working_memory
    if memory.in_cycle and REDACTED in str(memory.to_json()):
        secret = f"Cycle {boundary.cycle} of run {info.id!r} held a secret, which no trace keeps"
        raise ConfigurationError(f"{secret}: fork it at {boundary.cycle}.retrieval.")
    return past, later


def inherited(run: RunFolder, info: RunInfo) -> tuple[Iterator[TraceRecord], str]:
    """What came before a fork: the records of its ancestors, and the first that is not there."""
    origins: list[tuple[RunFolder, int]] = []
    above, missing = info.parent, ""
    while above is not None and len(origins) < GENERATIONS:
        run = RunFolder((run.path.parent / above.path).resolve())
        parent = read_run(run.path) if run.exists else None
        if parent is None or parent.id != above.run:
            missing = above.path
            break
        origins.append((run, above.seq))
        above = parent.parent
    records = (
        entry.body
        for folder, seq in reversed(origins)
        for entry in takewhile(lambda entry, end=seq: entry.seq < end, _entries(folder))
    )
    return records, missing


def first_turn(records: Iterable[TraceRecord]) -> tuple[int, bool]:
    """The turn that a fork began in, and whether it continued it, by its own trace."""
    for number, record in enumerate(records):
        if isinstance(record, TurnStart):
            return record.turn - 1, number > 1
        if isinstance(record, TurnEnd):
            return record.turn, True
    return 1, True


def _entries(run: RunFolder) -> Iterator[Entry]:
    """The lines of a trace; of one that a crash cut off, those that are whole."""
    return read_trace(run.trace_path, lambda problem: None)


def memory_of(snapshot: Snapshot) -> WorkingMemory:
    """The working memory that a snapshot holds."""
    try:
        return WorkingMemory.model_validate(snapshot.working_memory)
    except ValidationError as error:
        where = f"The working memory in the snapshot of cycle {snapshot.cycle} cannot be read"
        raise ConfigurationError(f"{where}: {first_error(error)}.") from error


def outcomes_of(memory: WorkingMemory) -> Iterator[Outcome]:
    """The outcomes of the cycle that a working memory is in the middle of."""
    for _, outcome in memory.cognitive_state if memory.in_cycle else ():
        if outcome is not None:
            yield outcome


async def end_turn_early(context: CoagContext[Any], deps: Deps, number: int, why: str) -> None:
    """Ends the cycle and its turn before an Execution that a fork does not run."""
    await close_cycle(context, deps, why)
    cycle, at = context.working_memory.cycle, deps.clock.now()
    deps.trace.write(TurnEnd(at=at, turn=number, cycle=cycle, reason="cancelled", response=why))


# ---- The long-term memory of a fork: what its parent's held at the boundary, in RAM ----
#
# The parent's own memory is only read: a folder is copied first, since a database writes to its
# files even when it is queried. What a fork began with is stored in its run's folder, so that it
# can itself be forked.


_ALL = 1_000_000_000
_NAMED = 10
"""Records that an error names."""


class _FilteredSource:
    def __init__(self, source: RecallSource, left_out: frozenset[str]) -> None:
        self.name, self.source, self.left_out = source.name, source, left_out

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        hits = await self.source.recall(query, k + len(self.left_out))
        return [hit for hit in hits if hit.record.id not in self.left_out][:k]


async def records_at(memory: LongTermMemory, past: Past, later: Later) -> dict[str, Record]:
    """What the run's memory held at the boundary, by id."""
    before = [line for line in past.remains.written if line.what == "record"]
    if past.info.parent is not None:
        remembered = {record.id: record for record in past.run.remembered()}
        return with_written(remembered, before)
    async with _readable(memory.store) as store:
        held = {
            hit.record.id: hit.record
            for kind in MemoryKind
            for hit in await store.search(
                Search(
                    text=None,
                    kind=kind,
                    k=_ALL,
                    scopes=tuple(memory.scopes.readable),
                    include_superseded=True,
                )
            )
        }
    after = [line for line in later.written if line.what == "record"]
    held = without_later(held, before, after, past.at, past.info.id)
    written = {line.id for line in (*before, *after)}
    recalled = {  # was in memory before the run, as the trace shows
        hit.record.id: hit.record
        for hit in {**later.recalled, **past.recalled}.values()
        if hit.record.id not in written
        and hit.record.provenance.source_kind != "memory"  # of a further source of recall
        and (past.at is None or hit.record.created_at <= past.at)
    }
    return with_written({**recalled, **held}, [line for line in before if line.id not in held])


def without_later(
    held: Mapping[str, Record],
    before: Sequence[Written],
    after: Sequence[Written],
    at: datetime | None,
    run: str,
) -> dict[str, Record]:
    """The records as they were at a moment, without what was written or superseded later."""

    def superseded(lines: Sequence[Written]) -> set[str | None]:
        return {line.content.get("supersedes") for line in lines}

    def is_later(record: Record) -> bool:
        own = record.provenance.run == run or (at is not None and record.created_at >= at)
        return (at is not None and record.created_at > at) or (record.id in new and own)

    new = {line.id for line in after} - {line.id for line in before}
    earlier = {name: record for name, record in held.items() if not is_later(record)}
    undone = superseded(after) - superseded(before)
    revived = {
        line.id for line in after if line.content.get("supersedes") in undone and line.id in earlier
    }
    former = {record.supersedes: name for name, record in earlier.items() if record.supersedes}
    for name, record in earlier.items():
        by = record.superseded_by
        if by is not None and (by not in earlier or (name in undone and by in revived)):
            earlier[name] = record.model_copy(update={"superseded_by": None})
    for name in revived:
        earlier[name] = earlier[name].model_copy(update={"superseded_by": former.get(name)})
    return earlier


def with_written(held: Mapping[str, Record], lines: Iterable[Written]) -> dict[str, Record]:
    """The records after these lines of a trace, in order."""
    records = dict(held)
    for line in lines:
        with reading_trace(line, "content"):
            record = Record.model_validate(line.content)
        old = records.get(record.supersedes or "")
        others = [records[one] for one in record.lineage.contradicts if one in records]
        for changed in settled(record, [] if old is None else [old], others):
            records[changed.id] = changed
        records[record.id] = record.model_copy(update={"superseded_by": None})
    return records


def without_records(held: Mapping[str, Record], names: Iterable[str]) -> dict[str, Record]:
    """The records as if these had never been written: what they superseded is valid again."""
    removed = set(names)
    return {
        name: record.model_copy(update={"superseded_by": None})
        if record.superseded_by in removed
        else record
        for name, record in held.items()
        if name not in removed
    }


def record_named(name: str, known: Mapping[str, Record]) -> str:
    """The id of the record that an id or a short id means."""
    matches = [record_id for record_id in known if record_id.startswith(name)]
    if len(matches) == 1 and len(name) >= SHORT_ID_LENGTH:
        return matches[0]
    if matches:
        some = ", ".join(sorted(matches)[:_NAMED])
        what = f"{name!r} is no id of a record: give {SHORT_ID_LENGTH} characters or more"
        raise ConfigurationError(f"{what} of: {some}.")
    newest = sorted(known.values(), key=lambda record: record.created_at)[-_NAMED:]
    raise UnknownNameError("record at the boundary", name, (record.id for record in newest))


async def own_memory(
    memory: LongTermMemory, records: Iterable[Record], left_out: Iterable[str]
) -> LongTermMemory:
    """A memory in RAM with these records, recalled as the given one recalls."""
    store = InMemoryStore(getattr(memory.store, "embedder", None))
    await store.add(list(records))
    names = frozenset(left_out)
    return LongTermMemory(
        store,
        scope=memory.scopes,
        clock=memory.clock,
        sources=[_FilteredSource(one, names) for one in memory.sources]
        if names
        else memory.sources,
        source_timeout=memory.source_timeout,
        ranking=memory.ranking,
        dynamics=None if memory.dynamics is None else memory.dynamics.apart(),
    )


def store_remembered(run: RunFolder, records: Iterable[Record]) -> None:
    """Writes down what a fork's memory began with."""
    redactor = Redactor.from_environment()
    path = run.remembered_path
    text = "".join(redactor.clean(record.model_dump_json()) + "\n" for record in records)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise TraceError(path, f"cannot be written: {error.strerror}") from error


@asynccontextmanager
async def _readable(store: RecordStore) -> AsyncGenerator[RecordStore]:
    """The store, or a copy of it where reading would write; a folder that is not there is empty."""
    if not isinstance(store, ChromaStore) or "://" in str(store.given_location):
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
    folder = folder.expanduser()
    try:
        return folder.is_dir() and bool(shutil.copytree(folder, to))
    except (OSError, shutil.Error) as error:
        raise RecordStoreError(f"The memory in {str(folder)!r} cannot be read: {error}") from error
