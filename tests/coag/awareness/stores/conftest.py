"""The stores that the contract is tried on."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from kits.postgres_server import postgres_programs, postgres_server

from coag.awareness import (
    FolderStateStore,
    InMemoryStateStore,
    PostgresStateStore,
    SqliteStateStore,
    StateStore,
)

KEEP = 3
OpenStore = Callable[[], StateStore]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The words that connect to a real Postgres server."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no initdb and pg_ctl on this machine")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg, the extra coag[postgres], is not installed")
    with postgres_server(programs) as conninfo:
        yield conninfo


_TABLES = itertools.count(1)


@pytest.fixture(
    params=["memory", "folder", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)]
)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """Opens a store, each time on the same states; in memory it is one and the same."""
    made: list[StateStore] = []
    make: dict[str, OpenStore] = {
        "folder": lambda: FolderStateStore(tmp_path / "states", keep=KEEP),
        "sqlite": lambda: SqliteStateStore(tmp_path / "states.sqlite", keep=KEEP),
    }
    if request.param == "memory":
        only = InMemoryStateStore(keep=KEEP)
        make["memory"] = lambda: only
    if request.param == "postgres":
        conninfo: str = request.getfixturevalue("postgres")
        table = f"states_{next(_TABLES)}"
        make["postgres"] = lambda: PostgresStateStore(conninfo, table=table, keep=KEEP)

    def opening() -> StateStore:
        made.append(make[request.param]())
        return made[-1]

    yield opening
    for store in made:
        await store.close()


@pytest.fixture
def store(open_store: OpenStore) -> StateStore:
    """One store."""
    return open_store()
