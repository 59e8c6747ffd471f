"""A real Postgres server for stores that several workers share."""

from __future__ import annotations

import itertools

import pytest
from kits.postgres_server import url_of

_NUMBERS = itertools.count(1)


@pytest.fixture
def database(postgres: str) -> str:
    import psycopg

    name = f"agent_{next(_NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    return url_of(postgres, name)
