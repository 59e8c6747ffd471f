from __future__ import annotations

from pathlib import Path

import pytest
from autogen_core import CancellationToken
from kits.mcp_client import QUICK, over_http, until_running

from coag.compat.mcp import PinnedMcpWorkbench, StreamableHttpServerParams

pytestmark = pytest.mark.slow  # each test starts a server


async def test_tools_over_http_are_listed_called_cancelled_and_pinned(tmp_path: Path) -> None:
    with over_http() as server:
        async with PinnedMcpWorkbench(server.params, limits=QUICK) as workbench:
            assert (await workbench.call_tool("add", {"a": 1, "b": 2})).to_text() == "3"
            cut = await workbench.call_tool("text", {"characters": 2_000_000})
            assert cut.to_text().count("x") == 20_000

            token = CancellationToken()
            running = await until_running(workbench, "wait", tmp_path, cancellation_token=token)
            token.cancel()
            assert (await running.result).may_have_happened

            await workbench.call_tool("change", {"description": "Other."})
            assert "add" not in [schema["name"] for schema in await workbench.list_tools()]
            assert workbench.quarantined["add"].new.description == "Other."


async def test_a_server_over_http_that_is_killed_in_a_call_leaves_it_open(tmp_path: Path) -> None:
    with over_http() as server:
        async with PinnedMcpWorkbench(server.params, limits=QUICK) as workbench:
            running = await until_running(workbench, "wait", tmp_path)
            server.kill()
            result = await running.result
            assert "ended before it answered" in result.to_text()
            assert result.may_have_happened
            again = await workbench.call_tool("add", {"a": 1, "b": 2})
            assert "could not be started: ConnectError" in again.to_text()
            assert not again.may_have_happened


async def test_a_session_that_the_server_has_forgotten_is_opened_again() -> None:
    with over_http() as server:
        async with PinnedMcpWorkbench(server.params, limits=QUICK) as workbench:
            assert (await workbench.call_tool("add", {"a": 1, "b": 2})).to_text() == "3"
            server.kill()
            with over_http(server.port):
                assert (await workbench.call_tool("add", {"a": 1, "b": 2})).to_text() == "3"


async def test_a_password_in_the_address_is_in_no_message() -> None:
    params = StreamableHttpServerParams(url="http://me:hunter22@127.0.0.1:9/mcp?key=abc")
    result = await PinnedMcpWorkbench(params).call_tool("add")
    assert "MCP server 'http://127.0.0.1:9/mcp' could not be started" in result.to_text()
    assert "hunter22" not in result.to_text()
