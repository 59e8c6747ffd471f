"""No signal is lost, whatever happens to the connection: 1,000 signals, read by cursor."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from kits.fault_proxy import fault_proxy
from kits.tickers import Reader, ticking

from coag._util.sockets import reserved_port
from coag.mcp import StreamableHttpServerParams
from coag.situated import McpToolConnection, serve_http

pytestmark = pytest.mark.timeout(120)
SIGNALS = 1000


@pytest.mark.parametrize(
    ("delay", "seconds", "cuts"),
    [
        pytest.param(0.3, 0.0, (), id="late stream"),
        pytest.param(0.0, 0.3, (0.1, 0.7), id="two cuts of 0.3 s"),
        pytest.param(0.0, 1.5, (0.2,), id="cut of 1.5 s"),
        pytest.param(0.0, 0.3, (0.1, 0.7, 1.3, 1.9), id="four cuts", marks=pytest.mark.long),
        pytest.param(0.0, 6.0, (0.2,), id="cut of 6 s", marks=pytest.mark.long),
    ],
)
async def test_no_signal_is_lost_when_the_connection_breaks(
    delay: float, seconds: float, cuts: tuple[float, ...]
) -> None:
    async with (
        asyncio.timeout(100),
        serve_http(ticking()) as address,
        fault_proxy(address) as proxy,
    ):
        connection = McpToolConnection(StreamableHttpServerParams(url=proxy.address), "there")
        reader = Reader(connection)
        proxy.get_delay = delay
        await connection.focus({"ticker"})
        await connection.invoke("ticker", "start", {"count": SIGNALS}, "once")
        for start in cuts:
            asyncio.get_running_loop().call_later(start, proxy.cut, seconds)
        await reader.until(SIGNALS)
        assert reader.numbers == list(range(1, SIGNALS + 1))
        await connection.close()


async def test_a_server_that_is_started_again_is_found_and_watched_again() -> None:
    workspace = ticking()
    with reserved_port() as port:
        async with asyncio.timeout(100), AsyncExitStack() as first:
            address = await first.enter_async_context(serve_http(workspace, port=port))
            connection = McpToolConnection(StreamableHttpServerParams(url=address), "there")
            reader = Reader(connection, seconds=30)  # only hints have it read
            await connection.focus({"ticker"})
            await connection.invoke("ticker", "start", {"count": SIGNALS // 2}, "first")
            await reader.until(SIGNALS // 2)
            await first.aclose()
            async with serve_http(workspace, port=port):
                await connection.invoke("ticker", "start", {"count": SIGNALS // 2}, "second")
                await reader.until(SIGNALS)
                assert reader.numbers == list(range(1, SIGNALS + 1))
                assert await connection.became_of("ticker", "first") == "happened"
                await connection.close()


async def test_a_stream_that_breaks_for_good_is_replaced_without_any_call() -> None:
    workspace = ticking()
    async with (
        asyncio.timeout(100),
        serve_http(workspace) as address,
        fault_proxy(address) as proxy,
    ):
        connection = McpToolConnection(StreamableHttpServerParams(url=proxy.address), "there")
        reader = Reader(connection, seconds=30)  # only hints have it read
        await connection.focus({"ticker"})
        proxy.cut(1.5)  # the mcp package gives up meanwhile
        await workspace.invoke("ticker", "start", {"count": 1})
        await reader.until(1)
        await connection.close()


async def test_a_subscriber_that_reads_nothing_holds_nobody_up() -> None:
    async with (
        asyncio.timeout(100),
        serve_http(ticking()) as address,
        fault_proxy(address) as proxy,
    ):
        slow = McpToolConnection(StreamableHttpServerParams(url=proxy.address), "slow")
        fast = McpToolConnection(StreamableHttpServerParams(url=address), "fast")
        reader = Reader(fast, seconds=30)
        await slow.focus({"ticker"})
        await fast.focus({"ticker"})
        proxy.flows.clear()
        await fast.invoke("ticker", "start", {"count": SIGNALS, "pause": 0}, "once")
        await reader.until(SIGNALS)
        assert reader.numbers == list(range(1, SIGNALS + 1))
        proxy.flows.set()
        assert (await slow.read_properties("ticker")).properties == {"last": SIGNALS}
        await slow.close()
        await fast.close()
