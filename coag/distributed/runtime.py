"""AutoGen's gRPC runtimes, and fixes for their faults; no other module knows them.

- A message above gRPC's limit breaks the sender's connection, so sizes are checked before.
- A worker whose host went away keeps a task that reads for ever, and stopping it raises.
- Two hosts on one port share its connections unless `so_reuseport` is off.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coag.errors import ConfigurationError, RemoteAgentError

from .places import AgentFactory
from .protocol import GRPC_MARGIN, Message, RemoteLimits
from .remote import RemoteConnection, open_connection
from .service import AgentService, serve_agent

if TYPE_CHECKING:
    from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost


LOOPBACK = "127.0.0.1"
_PORT_TRIES = 5
_RETRY = 0.25
"""Seconds between attempts to take a type that its last worker still holds."""


@asynccontextmanager
async def host(
    port: int = 0, *, bind: str = LOOPBACK, limits: RemoteLimits | None = None
) -> AsyncGenerator[str]:
    """Runs AutoGen's gRPC host, through which workers and clients reach each other.

    It knows neither users nor encryption: keep it on the loopback or on a network that you trust.

    Args:
        port: Where it listens; 0 takes a free port.
        bind: The address to listen on.
        limits: Bounds; workers and clients need the same `max_bytes`.

    Yields:
        Its address, `HOST:PORT`, when it takes connections.

    Raises:
        ConfigurationError: The port is taken, or grpc is not installed.
    """
    limits = limits or RemoteLimits()
    grpc_host, address = _bound_host(bind, port, limits)
    grpc_host.start()
    try:
        await _wait_for_host(address, limits)
        yield address
    finally:
        await grpc_host.stop(grace=0)


@asynccontextmanager
async def connect(
    address: str, *, limits: RemoteLimits | None = None
) -> AsyncGenerator[RemoteConnection]:
    """Connects to a host.

    Args:
        address: The host's, `HOST:PORT`.
        limits: Bounds.

    Yields:
        The way to the agents that its workers serve.

    Raises:
        RemoteAgentError: No host answers there.
        ConfigurationError: grpc is not installed.
    """
    async with worker(address, {}, limits=limits) as connection:
        yield connection


@asynccontextmanager
async def worker(
    address: str,
    agents: Mapping[str, AgentFactory | str],
    *,
    message_types: Sequence[type[Message]] = (),
    logs: Path | str | None = None,
    options: Mapping[str, str] | None = None,
    limits: RemoteLimits | None = None,
) -> AsyncGenerator[RemoteConnection]:
    """Serves chat agents to all that connect to the same host.

    A type that a dead worker held is taken as soon as the host has noticed its death.

    Args:
        address: The host's, `HOST:PORT`.
        agents: A factory for each agent type, or its name `module:function`.
        message_types: Types of message beyond AgentChat's own.
        logs: Folder for what survives this worker; see `serve_agent`.
        options: Given to the factories in `AgentPlace.options`.
        limits: Bounds.

    Yields:
        A connection, by which the worker's own agents may use agents of other workers.

    Raises:
        RemoteAgentError: No host answers there.
        ConfigurationError: Another worker serves one of the types, a factory cannot be
            imported, or grpc is not installed.
    """
    limits = limits or RemoteLimits()
    serve = partial(
        serve_agent, message_types=message_types, logs=logs, options=options, limits=limits
    )
    async with AsyncExitStack() as stack:
        yield await _serving(address, agents, limits, serve, stack)


async def _serving(
    address: str,
    agents: Mapping[str, AgentFactory | str],
    limits: RemoteLimits,
    serve: Callable[..., Awaitable[AgentService]],
    whole: AsyncExitStack,
) -> RemoteConnection:
    """Serves on a runtime of its own; tries again while another worker holds one of the types.

    A runtime cannot take back a registration that failed, so every attempt makes a new one.
    """
    _need_grpc()
    import grpc.aio

    loop = asyncio.get_running_loop()
    deadline = loop.time() + limits.patience
    while True:
        try:
            async with AsyncExitStack() as stack:
                runtime = await stack.enter_async_context(_runtime(address, limits))
                connection = await open_connection(runtime, limits=limits)
                stack.push_async_callback(connection.close)
                for type, factory in agents.items():
                    stack.push_async_callback((await serve(runtime, type, factory)).close)
                await whole.enter_async_context(stack.pop_all())
                return connection
        except grpc.aio.AioRpcError as error:
            if loop.time() > deadline or error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                raise ConfigurationError(
                    f"The host {address} refused to let this worker serve: {error.details()} "
                    "Stop the worker that serves the type, or serve under another type."
                ) from error
        await asyncio.sleep(_RETRY)


@asynccontextmanager
async def _runtime(address: str, limits: RemoteLimits) -> AsyncGenerator[GrpcWorkerAgentRuntime]:
    """A runtime that is connected to a host, and is stopped in the end."""
    from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime

    await _wait_for_host(address, limits)
    runtime = GrpcWorkerAgentRuntime(address, extra_grpc_config=_options(limits))
    await runtime.start()
    try:
        yield runtime
    finally:
        await _stop(runtime)


async def _stop(runtime: GrpcWorkerAgentRuntime) -> None:
    """Stops a runtime, also one whose host is gone."""
    import grpc.aio

    try:
        await runtime.stop()
    except grpc.aio.AioRpcError:
        # Its host has gone: the reading task, which it then leaves, has no public name.
        reading: asyncio.Task[None] = getattr(runtime, "_read_task")  # noqa: B009 - private
        reading.cancel()
        await asyncio.wait([reading])


async def _wait_for_host(address: str, limits: RemoteLimits) -> None:
    import grpc.aio

    channel = grpc.aio.insecure_channel(address, options=_options(limits))
    try:
        async with asyncio.timeout(limits.patience):
            await channel.channel_ready()
    except TimeoutError as error:
        raise RemoteAgentError(
            agent="*",
            worker="",
            kind="unreachable",
            problem=(
                f"no host answers at {address!r} within {limits.patience:g} s. Start one: "
                "python -m coag.distributed host --port N"
            ),
        ) from error
    finally:
        await channel.close()


def _bound_host(
    bind: str, port: int, limits: RemoteLimits
) -> tuple[GrpcWorkerAgentRuntimeHost, str]:
    """A host that has its port, and its address."""
    _need_grpc()
    from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntimeHost

    options = [("grpc.so_reuseport", 0), ("grpc.keepalive_time_ms", 20_000), *_options(limits)]
    for _ in range(_PORT_TRIES if port == 0 else 1):
        address = f"{bind}:{port or free_port(bind)}"
        try:
            return GrpcWorkerAgentRuntimeHost(address, extra_grpc_config=options), address
        except RuntimeError:
            continue
    raise ConfigurationError(
        f"Cannot listen on {bind}:{port}: the port is taken, or the address is not this "
        "machine's. Choose another --port, or 0 for a free one."
    )


def free_port(bind: str = LOOPBACK) -> int:
    """A port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind((bind, 0))
        return int(probe.getsockname()[1])


def _options(limits: RemoteLimits) -> list[tuple[str, Any]]:
    """Settings of gRPC: the size of messages, and no proxy between one's own processes."""
    size = limits.max_bytes + GRPC_MARGIN
    return [
        ("grpc.max_receive_message_length", size),
        ("grpc.max_send_message_length", size),
        ("grpc.enable_http_proxy", 0),
    ]


def _need_grpc() -> None:
    try:
        import_module("grpc")
    except ImportError as error:
        raise ConfigurationError(
            "Agents on several processes or machines need grpc, which is not installed: "
            'pip install "coag[grpc]"'
        ) from error
