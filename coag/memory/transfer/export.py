"""Writing all records of a memory into one file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coag._util.files import AtomicFile
from coag.errors import RecordStoreError
from coag.schema import Clock, MemoryKind, SystemClock
from coag.store import ChromaStore, InMemoryStore, RecordStore

from .lines import Header

Progress = Callable[[int], None]
"""Is told how many records are done, each time that some more are."""

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    records: int
    size: int
    """Bytes of the file."""


async def export_lines(
    store: RecordStore,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
) -> AsyncIterator[list[str]]:
    """The lines of the records, some at a time, without a header.

    Args:
        store: Where they rest.
        scopes: Whose; None for everyone's.
        kinds: Which memories; None for both.

    Raises:
        RecordStoreError: If the store cannot be reached.
        ValueError: If no scope or no kind is named.
    """
    if kinds is not None and not kinds:
        raise ValueError("kinds is empty and would export nothing; give None for both.")
    for kind in MemoryKind:
        if kinds is None or kind in kinds:
            async for records in store.scan(kind=kind, scopes=scopes, batch=_BATCH):
                yield [record.model_dump_json() + "\n" for record in records]


def header_of(store: RecordStore, clock: Clock | None = None) -> Header:
    """The header of an export of a store."""
    embedder = store.embedder if isinstance(store, ChromaStore | InMemoryStore) else None
    return Header(
        made_at=(clock or SystemClock()).now(),
        embedder=None if embedder is None else embedder.name,
        dimension=None if embedder is None else embedder.dimension,
    )


async def export_records(
    store: RecordStore,
    file: Path,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[MemoryKind] | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> Exported:
    """Writes every record with every field into a file, superseded ones too, in their order.

    The file is whole or not there: it is written beside and put in its place at the end, where it
    takes the place of one that is there. It is its owner's alone, where the system has modes. One
    batch of records and the ids of all are held in memory. Vectors are not part of it.

    Args:
        store: Where the records rest.
        file: The file to write.
        scopes: Whose records; None for everyone's.
        kinds: Which memories; None for both.
        progress: Is told how many records were written.
        clock: Dates the export.

    Raises:
        RecordStoreError: If the store cannot be reached or the file cannot be written.
        ValueError: If no scope or no kind is named.
    """
    header, count = header_of(store, clock), 0
    try:
        draft = await asyncio.to_thread(AtomicFile, file)
    except OSError as error:
        raise _unwritten(file, error) from error
    out = draft.draft
    try:
        out.write(header.line().encode())
        async for lines in export_lines(store, scopes=scopes, kinds=kinds):
            await asyncio.to_thread(out.writelines, [line.encode() for line in lines])
            count += len(lines)
            if progress is not None:
                progress(count)
        out.seek(0)
        out.write(header.model_copy(update={"records": count}).line().encode())
        size = await asyncio.to_thread(draft.commit)
    except OSError as error:
        raise _unwritten(file, error) from error
    finally:
        draft.discard()
    return Exported(records=count, size=size)


def _unwritten(file: Path, error: OSError) -> RecordStoreError:
    return RecordStoreError(
        f"The export {str(file)!r} cannot be written: {error.strerror or error}."
    )
