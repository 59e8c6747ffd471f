"""A workspace over MCP: what agents see of it, and what any client does."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from kits.pump import Counter, Pump

from coag.errors import ConfigurationError
from coag.mcp import StdioServerParams, StreamableHttpServerParams
from coag.situated import (
    EnhancedTool,
    InProcessConnection,
    McpToolConnection,
    ToolConnection,
    ToolConnectionError,
    VirtualClock,
    Workspace,
    operation,
    serve_http,
)

KITS = str(Path(__file__).parents[2])


class Faulty(EnhancedTool):
    """Fails."""

    @operation
    def fail(self) -> None:
        """Raises."""
        raise ZeroDivisionError("bad wiring")


def plant() -> Workspace:
    workspace = Workspace(clock=VirtualClock())
    for tool in (Pump(), Counter(), Faulty()):
        workspace.add(tool)
    return workspace


@pytest.fixture
async def workspace() -> AsyncGenerator[Workspace]:
    made = plant()
    yield made
    await made.close()


@pytest.fixture
async def served(workspace: Workspace) -> AsyncGenerator[McpToolConnection]:
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(serve_http(workspace))
        connection = McpToolConnection(StreamableHttpServerParams(url=address), "plant")
        yield connection
        await connection.close()


async def all_that_is_read(connection: ToolConnection) -> list[object]:
    tools = await connection.catalogue()
    read: list[object] = [*tools]
    for tool in tools:
        read.append(await connection.manual(tool.id))
        read.append(await connection.read_properties(tool.id))
        read.append(await connection.read_signals(tool.id, None))
    read.append(await connection.became_of("pump", "a call/1"))
    return read


async def test_over_mcp_everything_is_as_it_is_in_process(
    workspace: Workspace, served: McpToolConnection
) -> None:
    here = InProcessConnection(workspace)
    assert await all_that_is_read(served) == await all_that_is_read(here)
    done = await served.invoke("pump", "switch_off", {}, "a call/1")
    assert (done.accepted, done.data, done.repeated) == (True, {"psi_before": 0}, False)
    again = await served.invoke("pump", "switch_off", {}, "a call/1")
    assert (again.data, again.repeated) == (done.data, True)
    assert await all_that_is_read(served) == await all_that_is_read(here)
    (stopped,) = (await served.read_signals("pump", None)).events
    assert stopped.cause == "a call/1"


async def test_a_refusal_and_a_failure_say_what_happened(served: McpToolConnection) -> None:
    refused = await served.invoke("pump", "power_on", {"step": 9000}, "k1")
    assert not refused.accepted
    assert "would burst the pipe" in refused.message
    with pytest.raises(ToolConnectionError, match="bad wiring") as failed:
        await served.invoke("faulty", "fail", {}, "k2")
    assert failed.value.may_have_happened
    with pytest.raises(ToolConnectionError, match="no operation of tool 'pump' named 'fly'") as no:
        await served.invoke("pump", "fly", {}, "k3")
    assert not no.value.may_have_happened


async def test_what_does_not_exist_is_named(served: McpToolConnection) -> None:
    with pytest.raises(ToolConnectionError, match="There is no tool named 'boiler'"):
        await served.read_properties("boiler")
    with pytest.raises(ToolConnectionError, match="'yesterday' is no cursor"):
        await served.read_signals("pump", "yesterday")


async def test_a_page_is_cut_at_the_limit_and_read_on(
    workspace: Workspace, served: McpToolConnection
) -> None:
    for _ in range(5):
        await workspace.invoke("counter", "increment", {})
    first = await served.read_signals("counter", None, 3)
    second = await served.read_signals("counter", first.cursor, 3)
    assert [record.data["value"] for record in first.events + second.events] == [2, 3, 4, 5, 6]


async def test_hints_come_for_what_is_in_focus_only(
    workspace: Workspace, served: McpToolConnection
) -> None:
    hints: asyncio.Queue[str | None] = asyncio.Queue()
    served.on_hint(hints.put_nowait)
    await served.focus({"counter"})
    async with asyncio.timeout(30):
        while await hints.get() is not None:  # the connection was made
            pass
        while not hints.empty():
            hints.get_nowait()
        await workspace.invoke("pump", "switch_off", {})
        await workspace.invoke("counter", "increment", {})
        while (hint := await hints.get()) is None:
            pass
        assert hint == "counter"
        workspace.remove("pump")
        while await hints.get() is not None:
            pass
    assert [tool.id for tool in await served.catalogue()] == ["counter", "faulty"]


async def test_a_name_that_is_not_this_machines_is_turned_away(workspace: Workspace) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with serve_http(workspace) as address, httpx.AsyncClient() as client:
        for headers, status in (
            ({"Host": "evil.example"}, {421}),
            ({"Origin": "http://evil.example"}, {403}),
        ):
            answer = await client.post(address, json=ping, headers=headers)
            assert answer.status_code in status


async def test_other_machines_are_served_only_under_names_that_are_given(
    workspace: Workspace,
) -> None:
    with pytest.raises(ConfigurationError, match="can be reached from other machines"):
        async with serve_http(workspace, host="0.0.0.0"):
            pass


async def test_a_workspace_is_served_by_a_command() -> None:
    module = f"{Path(__file__).stem}:plant"
    command = StdioServerParams(
        command=sys.executable,
        args=["-m", "coag.situated", module],
        env={"PYTHONPATH": f"{Path(__file__).parent}:{KITS}:{':'.join(sys.path)}"},
    )
    connection = McpToolConnection(command, "plant")
    async with asyncio.timeout(30):
        done = await connection.invoke("counter", "increment", {}, "k")
        assert done.data == 2
        await connection.close()


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("plant", "names no function"),
        ("no_such_module:plant", "cannot be found"),
        ("os:getcwd", "which is no Workspace"),
    ],
)
async def test_a_command_that_names_no_workspace_says_so(place: str, problem: str) -> None:
    from coag.situated.__main__ import made

    with pytest.raises(ConfigurationError, match=problem):
        await made(place)
