"""Runs to read: one of a real agent, one of a plain one, and what can be made of them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from kits.foragers import foraged
from kits.hostile import hostile_run
from kits.porters import porter

from coag.inspector.library import Library
from coag.inspector.open_run import OpenRun
from coag.inspector.run_cache import RunCache
from coag.inspector.web import create_app
from coag.schema import (
    Intent,
    ModelCall,
    OutputMode,
    Receipt,
    ReceiptStatus,
    Redactor,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
)
from coag.tracing import RunFolder, RunInfo, list_runs, open_trace

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RunWriter = Callable[..., RunFolder]
Opener = Callable[[RunFolder], OpenRun]


@pytest.fixture(scope="session")
def foraged_once(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run of an agent with memory, constraints and an environment; only to be read."""
    return asyncio.run(foraged(tmp_path_factory.mktemp("foraged")))


@pytest.fixture
def forager_run(foraged_once: RunFolder, tmp_path: Path) -> RunFolder:
    """The same in a folder of logs of this test's own."""
    path = tmp_path / "logs" / foraged_once.path.name
    shutil.copytree(foraged_once.path, path)
    return RunFolder(path)


@pytest.fixture
def write_run(tmp_path: Path) -> RunWriter:
    """Leaves a run of some records in a folder of logs."""

    def write(
        records: Iterable[TraceRecord] = (), *, ended: bool = True, at: str = "", **fields: Any
    ) -> RunFolder:
        result = fields.pop("result", None)
        defaults = {
            "id": "a-run",
            "kind": "plain",
            "agent": "clerk",
            "model": "m",
            "started_at": AT,
        }
        info = RunInfo.model_validate(defaults | fields)
        folder = RunFolder.create(tmp_path / "logs" / at, info, redactor=Redactor())
        with open_trace(folder, redactor=Redactor()) as trace:
            for record in records:
                trace.write(record)
        if ended:
            folder.finish(at=AT + timedelta(minutes=1), result=result, redactor=Redactor())
        return folder

    return write


@pytest.fixture
def open_alone() -> Opener:

    def opened(folder: RunFolder) -> OpenRun:
        library = Library(folder.path)
        return library.open(library.cards()[0].key)

    return opened


def plain_turn(turn: int) -> list[TraceRecord]:
    """A turn of an agent without phases: it calls a tool and ends."""
    at, sell = AT + timedelta(seconds=turn), {"n": 1}
    stamp: dict[str, Any] = {"at": at, "cycle": turn}
    call = ModelCall(
        id=f"call-{turn}",
        model="m",
        rung=OutputMode.NATIVE,
        attempt=1,
        messages=(
            {"role": "system", "content": "You sell."},
            {"role": "user", "content": "Sell one."},
        ),
        raw="",
        tool_calls=({"id": f"t{turn}", "name": "sell", "arguments": '{"n": 1}'},),
        usage=TokenUsage(prompt_tokens=10, completion_tokens=2, calls=1, cost=0.5),
        **stamp,
    )
    return [
        TurnStart(turn=turn, **stamp),
        call,
        Intent(id=f"i{turn}", candidate_id=None, action="sell", arguments=sell, **stamp),
        Receipt(intent_id=f"i{turn}", status=ReceiptStatus.DONE, content="sold", **stamp),
        TurnEnd(at=at + timedelta(seconds=2), turn=turn, cycle=turn, reason="stop", response="ok"),
    ]


@pytest.fixture(scope="session")
def plain_turns() -> Callable[[int], list[TraceRecord]]:
    return lambda count: [each for turn in range(1, count + 1) for each in plain_turn(turn)]


# ---- the web application ----


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs with the run of a porter and a hostile one; not to be written to."""
    place = tmp_path_factory.mktemp("inspected")

    async def carry() -> None:
        agent = porter(log=str(place / "carried.txt"), logs=str(place / "logs"))
        await agent.run(task="Carry the stones up.")
        await agent.close()

    asyncio.run(carry())
    hostile_run(place / "logs", name="hostile")
    return place / "logs"


@pytest.fixture(scope="session")
def carried_run(carried: Path) -> RunFolder:
    return next(run for run in list_runs(carried) if run.path.name != "hostile")


@pytest.fixture
def key(carried_run: RunFolder) -> str:
    return carried_run.path.name


@pytest.fixture(scope="session")
def cache(carried: Path) -> Iterator[RunCache]:
    made = RunCache(carried)
    yield made
    made.end()


@pytest.fixture
async def client(cache: RunCache) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(cache))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        yield asking
