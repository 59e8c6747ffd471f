from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from kits.hostile import hostile_run
from kits.porters import porter

from coag.inspector.web import Desk, create_app
from coag.tracing import list_runs


async def _carry(place: Path) -> None:
    agent = porter(log=str(place / "carried.txt"), logs=str(place / "logs"))
    await agent.run(task="Carry the stones up.")
    await agent.close()


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs with the run of a porter and a hostile one; not to be written to."""
    place = tmp_path_factory.mktemp("inspected")
    asyncio.run(_carry(place))
    hostile_run(place / "logs", name="hostile")
    return place / "logs"


@pytest.fixture
def key(carried: Path) -> str:
    """Key of the porter's run."""
    return next(run.path.name for run in list_runs(carried) if run.path.name != "hostile")


@pytest.fixture
def desk(carried: Path) -> Iterator[Desk]:
    """What the pages are made from."""
    made = Desk(carried)
    yield made
    made.end()


@pytest.fixture
async def client(desk: Desk) -> AsyncIterator[httpx.AsyncClient]:
    """Asks the application, without a server."""
    transport = httpx.ASGITransport(create_app(desk))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        yield asking
