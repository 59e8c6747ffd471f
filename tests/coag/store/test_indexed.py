"""The index of words of a folder: rebuilt where it is broken, and reported where that fails."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.remembered import remembered

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record
from coag.store import DEFAULT_RANKING, ChromaStore, HashEmbedder, Search
from coag.store.lexical import Lexicon

WORDS = "coag-words.sqlite3"
LAMP, DOOR = remembered("a red lamp upstairs"), remembered("the door of the cellar")
TREE = remembered("an old tree")


async def opened(folder: Path) -> ChromaStore:
    return await ChromaStore.open(folder, HashEmbedder())


async def recalled(store: ChromaStore, text: str) -> list[str]:
    search = Search(text=text, kind=MemoryKind.EPISODIC, ranking=DEFAULT_RANKING, min_score=0.1)
    return [hit.record.text for hit in await store.search(search)]


async def filled(folder: Path, *records: Record) -> None:
    store = await opened(folder)
    await store.add(records)
    await store.close()


def known(folder: Path) -> list[str]:
    """The ids of which the lexicon knows, and of which it has to look again."""
    lexicon = Lexicon(folder / WORDS)
    ids = [*lexicon.other_than([]), *(f"pending {one}" for one in lexicon.pending())]
    lexicon.close()
    return sorted(ids)


def _deleted(words: Path) -> None:
    words.unlink()


def _emptied(words: Path) -> None:
    words.write_bytes(b"")


def _cut_off(words: Path) -> None:
    content = words.read_bytes()
    words.write_bytes(content[: len(content) // 2])


def _rubbish(words: Path) -> None:
    words.write_bytes(b"This is no database. " * 500)


def _of_another_format(words: Path) -> None:
    with sqlite3.connect(words) as db:
        db.execute("UPDATE meta SET value = 'older' WHERE key = 'format'")
    db.close()


def _with_other_tables(words: Path) -> None:
    words.unlink()
    with sqlite3.connect(words) as db:
        db.execute("CREATE TABLE meta (something TEXT)")
    db.close()


def _broken_pages(words: Path) -> None:
    content = bytearray(words.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    words.write_bytes(content)


SPOILED = [
    *(_deleted, _emptied, _cut_off, _rubbish),
    *(_of_another_format, _with_other_tables, _broken_pages),
]


@pytest.mark.parametrize("spoil", SPOILED)
async def test_an_index_that_is_gone_or_broken_is_rebuilt_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None]
) -> None:
    await filled(tmp_path, LAMP, DOOR)
    spoil(tmp_path / WORDS)
    store = await opened(tmp_path)
    assert "rebuilt" in caplog.text
    assert await recalled(store, "red lamp") == [LAMP.text]
    await store.add([TREE])
    await store.close()
    assert known(tmp_path) == sorted(record.id for record in (LAMP, DOOR, TREE))


async def test_an_index_of_an_older_count_is_rebuilt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path, LAMP, DOOR)
    shutil.copy(tmp_path / WORDS, tmp_path / "older")
    store = await opened(tmp_path)
    await store.supersede(LAMP.id, remembered("a blue lamp"))
    await store.delete([DOOR.id])
    await store.add([TREE])
    await store.close()
    shutil.copy(tmp_path / "older", tmp_path / WORDS)
    again = await opened(tmp_path)
    assert "has 2 record(s), Chroma has 3: it is rebuilt" in caplog.text
    assert await recalled(again, "lamp door cellar tree red") == [TREE.text, "a blue lamp"]
    await again.close()


async def test_an_intact_index_is_opened_without_a_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path, LAMP, DOOR)
    caplog.set_level(logging.WARNING)
    await filled(tmp_path, LAMP)
    assert [r for r in caplog.records if r.name.startswith("coag")] == []


async def test_an_index_that_breaks_while_it_is_open_is_rebuilt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await opened(tmp_path)
    await store.add([LAMP, DOOR])
    _drop_tables(tmp_path)
    assert await recalled(store, "red lamp") == [LAMP.text]
    _drop_tables(tmp_path)
    await store.add([TREE])
    assert caplog.text.count("rebuilt from the records") == 2
    await store.close()
    assert known(tmp_path) == sorted(record.id for record in (LAMP, DOOR, TREE))


def _drop_tables(folder: Path) -> None:
    with sqlite3.connect(folder / WORDS) as db:
        db.execute("DROP TABLE entries")
        db.execute("DROP TABLE pending")
    db.close()


async def test_write_that_cannot_be_noted_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    store = await opened(tmp_path)
    await store.add([LAMP])
    store_words = store._words._lexicon  # pyright: ignore[reportPrivateUsage]  # a full disk
    assert store_words is not None
    full_disk(store_words, True)
    refused: list[Callable[[], Any]] = [
        lambda: store.add([DOOR]),
        lambda: store.supersede(LAMP.id, DOOR),
        lambda: store.delete([LAMP.id]),
        lambda: store.forget("alice"),
        lambda: store.update([LAMP.model_copy(update={"type": "other"})]),
    ]

    for write in refused:
        with pytest.raises(RecordStoreError, match=r"index of words .* readonly"):
            await write()
        assert await store.get([LAMP.id, DOOR.id]) == [LAMP]
    assert await recalled(store, "red lamp") == [LAMP.text]

    full_disk(store_words, False)
    assert await store.add([DOOR]) == [DOOR.id]
    await store.close()


def full_disk(lexicon: Lexicon, full: bool) -> None:
    """Refuses all writes of the lexicon, as a full disk does."""
    lexicon._db.execute(f"PRAGMA query_only = {int(full)}")  # pyright: ignore[reportPrivateUsage]


FULL_DISK = """
import asyncio, os, resource, sys
from kits.remembered import remembered
from coag.errors import RecordStoreError
from coag.store import ChromaStore, HashEmbedder

async def main(folder):
    store = await ChromaStore.open(folder, HashEmbedder(16))
    await store.add([remembered("the first")])
    largest = max(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)
                  if os.path.isfile(os.path.join(folder, name)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 60_000, largest + 60_000))
    for number in range(10_000):
        text = f"event {number} " + "and so on " * 100
        try:
            await store.add([remembered(text)])
        except RecordStoreError as error:
            print("refused", error, flush=True)
            os._exit(0)
        print("added", number, flush=True)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_where_files_may_not_grow(tmp_path: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("refused")
    acknowledged = [int(line.split()[1]) for line in lines if line.startswith("added")]
    store = await ChromaStore.open(tmp_path, HashEmbedder(16))
    there = [record async for batch in store.scan() for record in batch]
    texts = {record.text for record in there}
    assert {f"event {number} " + "and so on " * 100 for number in acknowledged} <= texts
    assert len(texts) == len(there) <= len(acknowledged) + 2
    assert await store.add([remembered("there is room again")])
    await store.close()
    assert len(known(tmp_path)) == len(there) + 1
