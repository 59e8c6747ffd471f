"""Reaches the server of `mcp_server` as a test needs it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import anyio
from kits.mcp_server import build
from mcp.shared.memory import create_client_server_memory_streams

from coag._util.sockets import reserved_port
from coag.compat.mcp import (
    McpLimits,
    McpToolResult,
    PinnedMcpWorkbench,
    StdioServerParams,
    StreamableHttpServerParams,
)

SCRIPT = str(Path(__file__).with_name("mcp_server.py"))
QUICK = McpLimits(check_seconds=0.5, pause_seconds=0)


def on_stdio(*flags: str, **env: str) -> StdioServerParams:
    """The server as a process of its own."""
    return StdioServerParams(command=sys.executable, args=[SCRIPT, *flags], env=env or None)


@asynccontextmanager
async def in_this_process(
    params: StdioServerParams, errlog: TextIO
) -> AsyncGenerator[tuple[Any, Any]]:
    """Replaces the mcp package's `stdio_client`: the server runs here, over streams in RAM."""
    built = build(other="--other" in params.args)
    server = getattr(built, "_mcp_server", None) or getattr(built, "_lowlevel_server")  # noqa: B009
    async with (
        create_client_server_memory_streams() as (ours, its),
        anyio.create_task_group() as tasks,
    ):
        options = server.create_initialization_options()
        tasks.start_soon(lambda: server.run(its[0], its[1], options))
        try:
            yield ours
        finally:
            tasks.cancel_scope.cancel()


_ANSWERING = """
import json, sys
answers = json.loads(sys.argv[1])
for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call:
        continue
    error = {"code": -32601, "message": "unheard of"}
    answer = {"result": answers[call["method"]]} if call["method"] in answers else {"error": error}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}) + "\\n")
    sys.stdout.flush()
"""
_GREETING: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "answering", "version": "1"},
}


def answering(**answers: Any) -> StdioServerParams:
    """A server that gives these answers to `tools/list` and `tools/call`, whatever they are."""
    methods = {f"tools/{name}": answer for name, answer in answers.items()}
    methods_json = json.dumps({"initialize": _GREETING, **methods})
    return StdioServerParams(command=sys.executable, args=["-c", _ANSWERING, methods_json])


@dataclass(frozen=True, slots=True)
class HttpServer:
    """The server over HTTP."""

    process: subprocess.Popen[str]
    port: int

    @property
    def params(self) -> StreamableHttpServerParams:
        """How it is reached."""
        return StreamableHttpServerParams(url=f"http://127.0.0.1:{self.port}/mcp")

    def kill(self) -> None:
        """Ends it as if the power had gone."""
        self.process.kill()
        self.process.wait()


@contextmanager
def over_http(port: int = 0) -> Generator[HttpServer]:
    """Runs the server over HTTP on a port of this machine.

    0 takes a free one, which nobody else is given to the end, also where the server is killed.
    """
    with ExitStack() as stack:
        port = port or stack.enter_context(reserved_port())
        command = [sys.executable, SCRIPT, "--http", str(port)]
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert process.stdout is not None
        try:
            yield HttpServer(process, int(process.stdout.readline()))
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class Running:
    """A call that the server is busy with."""

    result: asyncio.Task[McpToolResult]


async def until_running(bench: PinnedMcpWorkbench, tool: str, folder: Path, **more: Any) -> Running:
    """Calls a tool that never ends; returns when the server runs it."""
    pipe = folder / f"{tool}-runs"
    os.mkfifo(pipe)
    calling = asyncio.create_task(bench.call_tool(tool, {"path": str(pipe)}, **more))
    reading = asyncio.create_task(asyncio.to_thread(pipe.read_text))
    try:  # it is read when the server has written into it
        await asyncio.wait({reading, calling}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not reading.done():  # a wait for its thread would never end
            os.close(os.open(pipe, os.O_RDWR))
    assert not calling.done(), calling.result()
    pipe.unlink()
    return Running(calling)
