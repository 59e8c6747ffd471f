"""Hosts, workers and clients within this process, over real gRPC on the loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from kits.remote_stage import BRISK, Stage

from coag.distributed import RemoteConnection, host


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """A host without workers and clients."""
    async with AsyncExitStack() as stack:
        made = Stage(stack)
        made.address = await stack.enter_async_context(host(limits=BRISK))
        yield made


@pytest.fixture
async def remote(stage: Stage) -> RemoteConnection:
    """A client of a host that has a worker for puppets, under the type `puppet`."""
    await stage.serve()
    return await stage.connect()


@pytest.fixture
def journal_path(tmp_path: Path) -> Path:
    """Where the worker with `logs=tmp_path` keeps the journal of the default puppet."""
    return tmp_path / "puppet" / "default" / "turns.jsonl"
