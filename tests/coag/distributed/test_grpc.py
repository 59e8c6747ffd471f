from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

import pytest
from kits.remote_agents import Puppet
from kits.remote_stage import BRISK, HASTY, TRUSTING, Stage

from coag._util.sockets import reserved_port
from coag.distributed import connect, host, worker
from coag.errors import ConfigurationError, RemoteAgentError


async def test_a_port_that_is_taken_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    async with host(limits=BRISK) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(ConfigurationError, match=f"Cannot listen on 127.0.0.1:{port}"):
            await host(port, limits=BRISK).__aenter__()
    capfd.readouterr()  # gRPC's own words on it


async def test_no_host_is_an_error_that_says_how_to_start_one() -> None:
    with reserved_port() as port:
        address = f"127.0.0.1:{port}"
        with pytest.raises(RemoteAgentError, match=r"python -m coag\.distributed host"):
            await connect(address, limits=HASTY).__aenter__()
        with pytest.raises(RemoteAgentError, match="no host answers"):
            await worker(address, {"puppet": lambda place: Puppet()}, limits=HASTY).__aenter__()


async def test_without_grpc_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigurationError, match=r'pip install "coag\[grpc\]"'):
        await host().__aenter__()
    with pytest.raises(ConfigurationError, match=r'pip install "coag\[grpc\]"'):
        await connect("127.0.0.1:1").__aenter__()


async def test_a_type_that_another_worker_serves_is_refused(stage: Stage) -> None:
    await stage.serve()
    with pytest.raises(ConfigurationError, match="puppet already registered"):
        await stage.serve(limits=BRISK.model_copy(update={"patience": 3.0}))


async def test_a_type_is_taken_over_as_soon_as_its_worker_is_gone(stage: Stage) -> None:
    first = await stage.serve()
    second = asyncio.create_task(stage.serve())
    remote = await stage.connect()
    await remote.agent("puppet")
    await first.aclose()
    await second
    assert (await remote.agent("puppet")).name == "puppet"


async def test_a_factory_that_cannot_be_imported_is_refused_before_anything_is_served(
    stage: Stage,
) -> None:
    for name, error in {
        "kits.remote_agents:nobody": "cannot be imported",
        "kits.remote_agents:FACT": "cannot be called",
        "puppet": "MODULE:FUNCTION",
    }.items():
        with pytest.raises(ConfigurationError, match=error):
            await worker(stage.address, {"puppet": name}, limits=BRISK).__aenter__()


async def test_a_factory_that_makes_no_agent_is_an_error(stage: Stage) -> None:
    async with worker(stage.address, {"puppet": "kits.remote_agents:no_agent"}, limits=BRISK):
        remote = await stage.connect()
        with pytest.raises(RemoteAgentError, match="made 'a stone', which is no ChatAgent"):
            await remote.agent("puppet")


async def test_a_worker_that_ends_closes_its_agents_and_ends_their_turns(stage: Stage) -> None:
    serving = await stage.serve()
    remote = await stage.connect()
    agent = await remote.agent("puppet")
    await agent.run(task="Hello.")
    await serving.aclose()
    assert stage.puppet.done == ["turn", "close"]


async def test_a_host_that_goes_away_is_noticed_and_everything_still_ends() -> None:
    async with AsyncExitStack() as hosting, AsyncExitStack() as others:
        address = await hosting.enter_async_context(host(limits=BRISK))
        serving = worker(address, {"puppet": lambda place: Puppet()}, limits=BRISK)
        connection = await others.enter_async_context(serving)
        remote = await others.enter_async_context(connect(address, limits=TRUSTING))
        agent = await remote.agent("puppet")
        connection.limits = remote.limits = HASTY
        watching = asyncio.create_task(connection.wait_until_lost())
        await hosting.aclose()
        await watching
        with pytest.raises(RemoteAgentError, match="no sign of life"):
            await agent.run(task="Hello.")


async def test_a_worker_may_use_agents_of_another_worker(stage: Stage) -> None:
    await stage.serve("far")
    async with worker(stage.address, {"near": lambda place: Puppet()}, limits=BRISK) as connection:
        far = await connection.agent("far")
        assert (await far.run(task="Hello.")).messages[-1].to_text() == "Hello."
