"""Against a server that nobody here wrote: npm's @modelcontextprotocol/server-everything."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import pytest

from coag._util.sockets import reserved_port
from coag.mcp import (
    McpBounds,
    McpClient,
    McpNotice,
    ServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
)
from coag.situated import McpToolConnection

COMMAND = shutil.which("mcp-server-everything")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        COMMAND is None,
        reason="mcp-server-everything is not on the PATH; to install it: "
        "npm install -g @modelcontextprotocol/server-everything",
    ),
]
DOCUMENT = "demo://resource/static/document/{}.md"
ARCHITECTURE, FEATURES = DOCUMENT.format("architecture"), DOCUMENT.format("features")


@contextmanager
def over_http() -> Generator[ServerParams]:
    with ExitStack() as stack:
        port = stack.enter_context(reserved_port())
        server = stack.enter_context(
            subprocess.Popen(
                [COMMAND or "", "streamableHttp"],
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PORT": str(port)},
            )
        )
        assert server.stderr is not None
        while "listening" not in server.stderr.readline():
            assert server.poll() is None
        yield StreamableHttpServerParams(url=f"http://127.0.0.1:{port}/mcp")
        server.kill()


@pytest.fixture(params=["stdio", "http"])
def params(request: pytest.FixtureRequest) -> Generator[ServerParams]:
    if request.param == "stdio":
        yield StdioServerParams(command=COMMAND or "", args=["stdio"])
        return
    with over_http() as reached:
        yield reached


class Notices:
    """The notices of the server."""

    def __init__(self) -> None:
        self.received: list[McpNotice] = []
        self._new = asyncio.Event()

    def __call__(self, notice: McpNotice) -> None:
        self.received.append(notice)
        self._new.set()

    async def until(self, met: Callable[[McpNotice], bool]) -> None:
        async with asyncio.timeout(15):
            while not any(map(met, self.received)):
                self._new.clear()
                await self._new.wait()


@pytest.fixture
def notices() -> Notices:
    return Notices()


async def test_updates_progress_and_log_messages_are_heard(
    params: ServerParams, notices: Notices
) -> None:
    client = McpClient(params, bounds=McpBounds(), on_notice=notices)
    await client.request(lambda session: session.watch({ARCHITECTURE, FEATURES}))
    await client.request(lambda session: session.watch({FEATURES}))
    await client.request(lambda session: session.call_tool("toggle-simulated-logging", {}))
    await client.request(lambda session: session.call_tool("toggle-subscriber-updates", {}))
    await notices.until(lambda notice: notice.kind == "updated")
    assert {notice.uri for notice in notices.received if notice.kind == "updated"} == {FEATURES}
    await notices.until(lambda notice: notice.kind == "log")

    work = {"duration": 0.2, "steps": 2}
    done = await client.request(
        lambda session: session.call_tool(
            "trigger-long-running-operation", work, {"progressToken": "p"}
        )
    )
    assert "completed" in done["content"][0]["text"]
    await notices.until(lambda notice: notice.kind == "progress" and notice.data["progress"] == 2)

    text = await client.request(lambda session: session.read_resource(FEATURES))
    assert text.text.startswith("# Everything")
    await client.close()


async def test_it_is_one_tool_with_operations_and_properties(params: ServerParams) -> None:
    connection = McpToolConnection(params, "everything")
    (tool,) = await connection.catalogue()
    assert not tool.has_manual
    assert {"get_sum", "echo"} <= {operation.name for operation in tool.operations}
    done = await connection.invoke("everything", "get_sum", {"a": 1, "b": 2}, "key")
    assert (done.accepted, "3" in done.message) == (True, True)
    assert await connection.became_of("everything", "key") == "unknown"
    reading = await connection.read_properties("everything")
    assert str(reading.properties["features_md"]).startswith("# Everything")
    assert (await connection.read_signals("everything", None)).events == ()

    hints: asyncio.Queue[str | None] = asyncio.Queue()
    connection.on_hint(hints.put_nowait)
    await connection.focus({"everything"})
    await connection.invoke("everything", "toggle_subscriber_updates", {}, "other")
    async with asyncio.timeout(15):
        while await hints.get() != "everything":
            pass
    await connection.close()
