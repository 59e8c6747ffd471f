"""`python -m coag.distributed`: a host, and workers, as processes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from coag.errors import CoagError, RemoteAgentError

from .protocol import RemoteLimits, load_message_type
from .remote import RemoteConnection
from .runtime import LOOPBACK, host, worker

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Chat agents on several processes or machines, over AutoGen's gRPC runtime.",
)


@app.command(name="host")
def host_command(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")
    ] = 50051,
    bind: Annotated[
        str, typer.Option(help="Address to listen on. It knows no users and no encryption.")
    ] = LOOPBACK,
    max_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Size of a message; the same everywhere.")
    ] = None,
) -> None:
    """Run the host through which workers and clients reach each other, until interrupted."""
    _run(_host(port, bind, _limits(max_bytes)))


@app.command(name="worker")
def worker_command(
    host: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the host.")],
    type: Annotated[
        list[str], typer.Option(metavar="NAME", help="Agent type to serve; may be repeated.")
    ],
    agent: Annotated[
        list[str],
        typer.Option(metavar="MODULE:FUNCTION", help="Its factory; one for each --type, in order."),
    ],
    logs: Annotated[
        Path | None,
        typer.Option(help="Folder for what survives this worker: turns and runs of its agents."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Given to the factories; may be repeated."),
    ] = None,
    message_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Type of message, or content of a StructuredMessage, that agents are given; "
            "may be repeated.",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Size of a message; the same everywhere.")
    ] = None,
) -> None:
    """Serve chat agents until interrupted, or until the host is gone."""
    if len(type) != len(agent):
        raise typer.BadParameter(f"There are {len(type)} --type and {len(agent)} --agent.")
    serving = worker(
        host,
        dict(zip(type, agent, strict=True)),
        message_types=[load_message_type(name) for name in message_type or ()],
        logs=logs,
        options=_options(option or ()),
        limits=_limits(max_bytes),
    )
    _run(_serve(serving, f"serving {', '.join(type)} by way of {host}", host))


def _options(given: Sequence[str]) -> dict[str, str]:
    for one in given:
        if "=" not in one:
            raise typer.BadParameter(f"--option takes NAME=VALUE, not {one!r}.")
    return dict((one.partition("=")[0], one.partition("=")[2]) for one in given)


def _limits(max_bytes: int | None) -> RemoteLimits:
    return RemoteLimits() if max_bytes is None else RemoteLimits(max_bytes=max_bytes)


async def _host(port: int, bind: str, limits: RemoteLimits) -> None:
    async with host(port, bind=bind, limits=limits) as address:
        typer.echo(f"ready: host at {address}")
        await asyncio.Event().wait()


async def _serve(
    serving: AbstractAsyncContextManager[RemoteConnection], what: str, address: str
) -> None:
    async with serving as connection:
        typer.echo(f"ready: {what}")
        await connection.wait_until_lost()
        problem = "it does not answer any more. Start this worker again when it does."
        raise RemoteAgentError(
            agent="*", worker="", kind="unreachable", problem=f"the host {address}: {problem}"
        )


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Lets it work until SIGINT or SIGTERM; also while it starts."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        typer.echo("stopped")


def _run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(_until_stopped(work))
    except CoagError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    app(prog_name="python -m coag.distributed")
