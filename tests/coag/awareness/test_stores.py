"""What every store of states does, and what is particular to each."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kits.state_writer import KEY, one_more, opened

from coag.awareness import (
    AwarenessState,
    Entity,
    FolderStateStore,
    InMemoryStateStore,
    PostgresStateStore,
    SqliteStateStore,
    StaleStateError,
    StateStore,
    StateStoreError,
    StoredState,
    WorldModel,
    change_stored,
)
from coag.errors import ConfigurationError, StateVersionError

AT = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)
KEEP = 3
OpenStore = Callable[[], StateStore]


def state(step: int = 0, *names: str) -> AwarenessState:
    entities = tuple(Entity(name=name, type="topic", state={"said": 0.1}) for name in names)
    world = WorldModel(entities=entities)
    return AwarenessState(domain="conversation", step=step, at=AT, world=world)


async def loaded(store: StateStore, key: str = "alice") -> StoredState:
    found = await store.load(key)
    assert found is not None
    return found


async def steps(store: StateStore, key: str = "alice", limit: int = 10) -> list[int]:
    return [one.state.step for one in await store.history(key, limit)]


_TABLES = itertools.count(1)


@pytest.fixture(
    params=["memory", "folder", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)]
)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """Opens a store, each time on the same states; in memory it is one and the same."""
    only, table = InMemoryStateStore(keep=KEEP), f"states_{next(_TABLES)}"
    make: dict[str, OpenStore] = {
        "memory": lambda: only,
        "folder": lambda: FolderStateStore(tmp_path / "states", keep=KEEP),
        "sqlite": lambda: SqliteStateStore(tmp_path / "states.sqlite", keep=KEEP),
    }
    if request.param == "postgres":
        conninfo: str = request.getfixturevalue("postgres")
        make["postgres"] = lambda: PostgresStateStore(conninfo, table=table, keep=KEEP)
    async with AsyncExitStack() as opened_stores:

        def opening() -> StateStore:
            store = make[request.param]()
            opened_stores.push_async_callback(store.close)
            return store

        yield opening


@pytest.fixture
def store(open_store: OpenStore) -> StateStore:
    return open_store()


# ---- what every store does ----


async def test_what_is_saved_is_loaded_as_it_was(store: StateStore) -> None:
    saved = state(4, "Python", "naïve Müller 🦊", "a\nb\x00c\u2028")
    version = await store.save("alice", saved)
    assert await store.load("alice") == StoredState(key="alice", version=version, state=saved)
    assert (await loaded(store)).state.model_dump_json() == saved.model_dump_json()


async def test_keys_are_any_texts_that_differ_even_in_case_only(store: StateStore) -> None:
    keys = ("alice", "Alice", "alice/..", "al ice", "%", "ä", "'; DROP TABLE states; --", "ö" * 200)
    for step, key in enumerate(keys):
        assert await store.load(key) is None
        await store.save(key, state(step), 0)
    assert [(await loaded(store, key)).state.step for key in keys] == list(range(len(keys)))


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "a\x00", "\ud800", "k" * 201])
async def test_what_cannot_be_a_key_is_refused(store: StateStore, key: str) -> None:
    with pytest.raises(ValueError, match="A key is a text of 1 to 200 characters"):
        await store.load(key)
    with pytest.raises(ValueError, match="A key is"):
        await store.save(key, state())


async def test_history_is_bounded_and_newest_first(store: StateStore) -> None:
    versions = [await store.save("alice", state(step)) for step in range(5)]
    await store.save("bob", state(9))
    assert [one.version for one in await store.history("alice")] == versions[:-4:-1]
    assert versions == sorted(set(versions))
    assert (await steps(store), await steps(store, limit=2)) == ([4, 3, 2], [4, 3])
    with pytest.raises(ValueError, match="limit is how many versions to give, at least 1, not 0"):
        await store.history("alice", 0)


async def test_a_save_on_another_version_is_refused_and_writes_nothing(store: StateStore) -> None:
    first = await store.save("alice", state(1), 0)
    with pytest.raises(StaleStateError, match="none was expected"):
        await store.save("alice", state(9), 0)
    second = await store.save("alice", state(2), first)
    with pytest.raises(StaleStateError, match="Load it again, repeat the change") as refused:
        await store.save("alice", state(9), first)
    assert (refused.value.expected, refused.value.found) == (first, second)
    assert await steps(store) == [2, 1]
    await store.save("alice", state(3))
    assert await steps(store) == [3, 2, 1]
    with pytest.raises(ValueError, match="expected_version is what was loaded, 0 for none"):
        await store.save("alice", state(), -1)


async def test_after_a_deletion_nothing_is_left_and_no_version_comes_again(
    store: StateStore,
) -> None:
    assert await store.delete("alice") is False
    version = await store.save("alice", state(1))
    other = await store.save("bob", state(5))
    assert await store.delete("alice") is True
    assert (await store.load("alice"), await store.history("alice")) == (None, [])
    with pytest.raises(StaleStateError, match="none is stored"):
        await store.save("alice", state(2), version)
    assert await store.save("alice", state(1), 0) > version
    assert (await loaded(store, "bob")).version == other


async def test_of_two_writers_at_once_no_change_is_lost(open_store: OpenStore) -> None:
    writers = (open_store(), open_store())
    version = await writers[0].save("bob", state(1))
    assert (await loaded(writers[1], "bob")).version == version
    saves = [store.save("alice", state(step), 0) for step, store in enumerate(writers)]
    results = await asyncio.gather(*saves, return_exceptions=True)
    assert sorted(type(one).__name__ for one in results) == ["StaleStateError", "int"]

    async def write(store: StateStore) -> None:
        for _ in range(15):
            await change_stored(store, "shared", one_more, tries=1000)

    await asyncio.gather(*(write(store) for store in writers))
    assert (await loaded(writers[0], "shared")).state.step == 30


async def test_readers_see_whole_states_while_others_write(open_store: OpenStore) -> None:
    writer, reader = open_store(), open_store()
    names = [f"topic {number}" for number in range(200)]
    await writer.save("alice", state(0, *names))

    async def write() -> None:
        for step in range(1, 15):
            await writer.save("alice", state(step, *names))

    async def read() -> list[int]:
        seen: list[int] = []
        while not seen or seen[-1] < 14:
            found = (await loaded(reader)).state
            assert len(found.world.entities) == 200
            seen.append(found.step)
            await asyncio.sleep(0)
        return seen

    _, seen = await asyncio.gather(write(), read())
    assert seen == sorted(seen)


async def test_a_closed_store_says_so(store: StateStore) -> None:
    await store.save("alice", state())
    await store.close()
    await store.close()
    with pytest.raises(StateStoreError, match="is closed; open a new one"):
        await store.load("alice")
    with pytest.raises(StateStoreError, match="is closed"):
        await store.save("alice", state())


async def test_a_change_is_given_up_when_others_are_always_faster() -> None:
    store = InMemoryStateStore()

    class Overtaken(InMemoryStateStore):
        async def load(self, key: str) -> StoredState | None:
            found = await store.load(key)
            await store.save(key, state())
            return found

        async def save(
            self, key: str, state: AwarenessState, expected_version: int | None = None
        ) -> int:
            return await store.save(key, state, expected_version)

    with pytest.raises(StateStoreError, match="changed by others 3 times in a row"):
        await change_stored(Overtaken(), "alice", one_more, tries=3)
    with pytest.raises(ValueError, match="tries is at least 1, not 0"):
        await change_stored(store, "alice", one_more, tries=0)


def _writer(kind: str, place: Path) -> subprocess.Popen[str]:
    tests = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-m", "kits.state_writer", kind, str(place)],
        cwd=tests,
        env={**os.environ, "PYTHONPATH": str(tests.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "sqlite"])
async def test_a_killed_writer_takes_back_nothing_and_blocks_nobody(
    kind: str, tmp_path: Path
) -> None:
    place = tmp_path / "states"
    store, ours, theirs = opened(kind, place), 0, 0
    for round in range(2):
        writer = _writer(kind, place)
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline())]
        for _ in range(5 + 3 * round):  # both write at once
            await change_stored(store, KEY, one_more, tries=1000)
            ours += 1
        writer.kill()
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        theirs += len(acknowledged)
        stored = await change_stored(store, KEY, one_more)
        ours += 1
        unheard = stored.state.step - ours - theirs
        assert 0 <= unheard <= 1  # a killed one's last change may be stored and not acknowledged
        theirs += unheard
    await store.close()


# ---- folders ----


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.json"))


async def test_each_version_is_a_file_that_is_the_state(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path / "states", keep=2)
    await store.load("alice & bob")
    await store.delete("alice & bob")
    assert not store.path.exists()  # nothing is made by looking
    for step in range(3):
        await store.save("alice & bob", state(step))
    newest = files(store.path)
    assert [path.name for path in newest] == ["000000000002.json", "000000000003.json"]
    assert newest[-1].parent.name.startswith("alice-bob.")
    assert AwarenessState.model_validate_json(newest[-1].read_text("utf-8")).step == 2
    assert FolderStateStore.from_arguments(store.to_arguments()).path == store.path


async def test_what_a_killed_writer_left_unfinished_is_not_seen_and_goes_with_the_key(
    tmp_path: Path,
) -> None:
    store = FolderStateStore(tmp_path)
    await store.save("alice", state())
    unfinished = files(tmp_path)[0].with_name(".000000000002.json.x.new")
    unfinished.write_text('{"domain": "half')
    assert (await loaded(store)).state == state()
    assert await store.delete("alice") is True
    assert not unfinished.exists()


NEWER = json.dumps({**state().model_dump(mode="json"), "version": 99}).encode()
WRONG = b'{"domain": "conversation", "step": -1}'


@pytest.mark.parametrize(
    ("content", "error", "problem"),
    [
        (WRONG, StateStoreError, r"version 1 of 'alice'.* at step: .*Save a"),
        (b"\xff\xfe\x00", StateStoreError, "States cannot be read or written in"),
        (NEWER, StateVersionError, "version 99"),
    ],
)
async def test_a_damaged_file_is_an_error_and_can_be_saved_over(
    tmp_path: Path, content: bytes, error: type[Exception], problem: str
) -> None:
    store = FolderStateStore(tmp_path)
    version = await store.save("alice", state())
    files(tmp_path)[0].write_bytes(content)
    with pytest.raises(error, match=problem):
        await store.load("alice")
    await store.save("alice", state(), version)
    assert (await loaded(store)).state == state()


async def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    store = FolderStateStore(tmp_path / "taken")
    with pytest.raises(StateStoreError, match=r"States cannot be read or written in .*taken"):
        await store.save("alice", state())


# ---- SQLite ----


async def test_what_is_no_file_of_states_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    theirs, text = tmp_path / "theirs.sqlite", tmp_path / "text.sqlite"
    with closing(sqlite3.connect(theirs)) as db:
        db.execute("CREATE TABLE states (theirs TEXT)")
    text.write_text("nothing of the sort " * 100)
    before = theirs.read_bytes()
    for path, problem in (
        (theirs, "is no file of awareness states"),
        (text, "file is not a database"),
        (tmp_path / "nowhere" / "states.sqlite", r"nowhere.*states.sqlite.*unable to open"),
    ):
        with pytest.raises(StateStoreError, match=problem):
            SqliteStateStore(path)
    assert theirs.read_bytes() == before


@pytest.mark.parametrize("power_safe", [True, False])
async def test_the_file_has_a_write_ahead_log_and_a_bad_row_is_named(
    tmp_path: Path, power_safe: bool
) -> None:
    path = tmp_path / "states.sqlite"
    store = SqliteStateStore(path, power_safe=power_safe)
    await store.save("alice", state())
    assert (tmp_path / "states.sqlite-wal").exists()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE states SET state = 'no JSON'")
    with pytest.raises(StateStoreError, match="holds no state as version 1 of 'alice'"):
        await store.load("alice")
    assert await store.delete("alice") is True
    await store.close()


async def test_a_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    def opening(number: int) -> SqliteStateStore:
        return SqliteStateStore(tmp_path / f"states{number // 8}.sqlite")

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(opening, range(40)))
    for store in stores:
        await store.save("alice", state())
        await store.close()


# ---- Postgres ----


def test_arguments_that_no_store_takes_are_refused_and_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for keep in (0, -1):
        with pytest.raises(ValueError, match=f"at least 1, not {keep}"):
            InMemoryStateStore(keep=keep)
    for table in ("", "States", "a;b", "t" * 49, "1st"):
        with pytest.raises(ValueError, match="table is a name of at most 48 small letters"):
            PostgresStateStore("host=127.0.0.1", table=table)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[postgres\]'"):
        PostgresStateStore("host=127.0.0.1")


async def test_a_server_that_is_not_there_is_an_error_without_the_password() -> None:
    pytest.importorskip("psycopg")
    store = PostgresStateStore("host=127.0.0.1 port=1 password=hush dbname=x")
    with pytest.raises(StateStoreError, match=r"Postgres failed: .*try again") as caught:
        await store.load("alice")
    assert "hush" not in str(caught.value)
    await store.close()


@pytest.mark.slow
async def test_after_a_lost_connection_the_next_use_makes_a_new_one(postgres: str) -> None:
    import psycopg

    store = PostgresStateStore(postgres, table="lost")
    await store.save("alice", state())
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(StateStoreError, match="load to see whether it was stored"):
        await store.save("alice", state())
    assert (await loaded(store)).state == state()
    await store.close()


@pytest.mark.slow
async def test_one_who_holds_the_key_for_too_long_is_an_error(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr("coag.awareness.stores._PATIENCE", 1.0)
    store = PostgresStateStore(postgres, table="held")
    await store.save("alice", state())
    with psycopg.connect(postgres) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('held/alice', 0))")
        with pytest.raises(StateStoreError, match="lock timeout"):
            await store.save("alice", state())
    assert len(await store.history("alice")) == 1
    await store.close()
