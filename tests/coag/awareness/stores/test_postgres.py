"""States in Postgres: what is told where it is not there, and going on after a lost connection."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from coag.awareness import AwarenessState, PostgresStateStore, StateStoreError
from coag.errors import ConfigurationError

STATE = AwarenessState(domain="conversation", at=datetime(2026, 11, 24, tzinfo=UTC))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[postgres\]'"):
        PostgresStateStore("host=127.0.0.1")


@pytest.mark.parametrize("table", ["", "States", "a;b", "t" * 49, "1st"])
def test_a_table_has_a_plain_name(table: str) -> None:
    with pytest.raises(ValueError, match="table is a name of at most 48 small letters"):
        PostgresStateStore("host=127.0.0.1", table=table)


async def test_a_server_that_is_not_there_is_an_error_without_the_password() -> None:
    pytest.importorskip("psycopg")
    store = PostgresStateStore("host=127.0.0.1 port=1 password=hush dbname=x")
    with pytest.raises(StateStoreError, match=r"Postgres failed: .*try again") as told:
        await store.load("alice")
    assert "hush" not in str(told.value)
    await store.close()


@pytest.mark.slow
async def test_after_a_lost_connection_the_next_use_makes_a_new_one(postgres: str) -> None:
    import psycopg

    store = PostgresStateStore(postgres, table="lost")
    await store.save("alice", STATE)
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(StateStoreError, match="load to see whether it was stored"):
        await store.save("alice", STATE)
    loaded = await store.load("alice")
    assert loaded is not None
    await store.close()


@pytest.mark.slow
async def test_one_who_holds_the_key_for_too_long_is_an_error(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr("coag.awareness.stores._PATIENCE", 1.0)
    store = PostgresStateStore(postgres, table="held")
    await store.save("alice", STATE)
    with psycopg.connect(postgres) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('held/alice', 0))")
        with pytest.raises(StateStoreError, match="lock timeout"):
            await store.save("alice", STATE)
    assert len(await store.history("alice")) == 1
    await store.close()
