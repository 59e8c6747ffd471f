from __future__ import annotations

import asyncio
import socket

import pytest
from kits.tickers import ticking

from coag.mcp import McpServerError
from coag.mcp.server import TOOLS_CHANGED, Outbox
from coag.situated import serve_http


async def test_an_outbox_sends_each_notice_once_however_often_it_was_put() -> None:
    outbox, sent, may_go = Outbox(), list[str](), asyncio.Event()
    done = asyncio.Event()

    async def send(what: str) -> None:
        sent.append(what)
        if what == "last":
            done.set()
        await may_go.wait()

    outbox.watched.update({"a", "b", "last"})
    outbox.start(send)
    for _ in range(1000):
        for what in ("a", "b", "not wanted", TOOLS_CHANGED):
            outbox.put(what)
    outbox.put("last")
    may_go.set()
    async with asyncio.timeout(5):
        await done.wait()
    assert sent == ["a", "b", TOOLS_CHANGED, "last"]
    outbox.close()
    await outbox.closed()


async def test_what_is_new_while_it_is_sent_is_sent_again() -> None:
    outbox, sending, sent = Outbox(), asyncio.Event(), list[str]()
    again = asyncio.Event()

    async def send(what: str) -> None:
        sent.append(what)
        if len(sent) == 2:
            again.set()
            return
        sending.set()
        outbox.put("a")

    outbox.watched.add("a")
    outbox.start(send)
    outbox.put("a")
    async with asyncio.timeout(5):
        await sending.wait()
        await again.wait()
    assert sent == ["a", "a"]
    outbox.close()


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(McpServerError, match=f"127.0.0.1:{port}' cannot listen"):
            async with serve_http(ticking(), port=port):
                pass
