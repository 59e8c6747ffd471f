"""`python -m coag.distributed`, as its users see it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import typer
from kits.remote_stage import BRISK, HASTY
from typer.testing import CliRunner

from coag.distributed import RemoteConnection, host, processes, worker
from coag.distributed.__main__ import (
    _run,  # pyright: ignore[reportPrivateUsage]
    _serve,  # pyright: ignore[reportPrivateUsage]
    app,  # pyright: ignore[reportPrivateUsage]
)
from coag.errors import ConfigurationError

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["worker", "--host", "h:1", "--type", "a", "--type", "b", "--agent", "m:f"], "2 --type"),
        (["worker", "--host", "h:1", "--type", "a", "--agent", "m:f", "--option", "x"], "NAME="),
        (["worker", "--type", "a", "--agent", "m:f"], "--host"),
        (["host", "--port", "70000"], "65535"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], problem: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert problem in result.output


def test_an_address_that_is_not_this_machines_is_a_plain_error() -> None:
    result = CliRunner().invoke(app, ["host", "--bind", "192.0.2.1"])
    assert result.exit_code == 1
    assert "Cannot listen on 192.0.2.1:50051" in result.output


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_host_says_when_it_is_ready_and_ends_on_a_signal(number: signal.Signals) -> None:
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "coag.distributed", "host", "--port", "0"],
        stdout=asyncio.subprocess.PIPE,
        cwd=TESTS.parent,
    )
    assert process.stdout is not None
    ready = (await process.stdout.readline()).decode()
    assert ready.startswith("ready: host at 127.0.0.1:")
    process.send_signal(number)
    assert (await process.stdout.read()).decode() == "stopped\n"
    assert await process.wait() == 0


def test_a_worker_whose_host_is_gone_ends_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    there = asyncio.Event()

    @asynccontextmanager
    async def serving(address: str) -> AsyncGenerator[RemoteConnection]:
        """A worker that is soon impatient, once it serves."""
        agents = {"puppet": "kits.remote_agents:puppet"}
        async with worker(address, agents, limits=BRISK) as connection:
            await connection.agent("puppet")
            connection.limits = HASTY
            there.set()
            yield connection

    async def work_until_the_host_is_gone() -> None:
        async with AsyncExitStack() as hosting:
            address = await hosting.enter_async_context(host(limits=BRISK))
            what = f"serving puppet by way of {address}"
            working = asyncio.create_task(_serve(serving(address), what, address))
            await there.wait()
            await hosting.aclose()
            await working

    with pytest.raises(typer.Exit):
        _run(work_until_the_host_is_gone())
    printed = capsys.readouterr()
    assert "ready: serving puppet by way of 127.0.0.1:" in printed.out
    assert "does not answer any more. Start this worker again" in printed.err


@pytest.mark.slow
async def test_a_process_that_is_not_ready_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="ended before it was ready") as caught:
        await processes(tmp_path, {"puppet": "nowhere:puppet"}).__aenter__()
    assert "No module named 'nowhere'" in str(caught.value)
