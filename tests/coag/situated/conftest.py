"""A real Postgres server for stores that several workers share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from kits.postgres_server import postgres_programs, postgres_server, url_of

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The words that connect to the server."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no initdb and pg_ctl on this machine")
    pytest.importorskip("psycopg", reason="the extra coag[postgres] is not installed")
    with postgres_server(programs) as conninfo:
        yield conninfo


@pytest.fixture
def database(postgres: str) -> str:
    """The address of a new database."""
    import psycopg

    name = f"agent_{next(_NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    return url_of(postgres, name)
