"""The guards of the test session itself: no other machine, no keys."""

import asyncio
import os
import socket

import pytest


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as outward, pytest.raises(RuntimeError, match=r"refused: '192\.0\.2\.1'"):
        outward.connect(("192.0.2.1", 80))


def test_a_look_up_of_another_machine_is_refused() -> None:
    with pytest.raises(RuntimeError, match="reach this machine only"):
        socket.getaddrinfo("somewhere.example", 80)


async def test_asyncio_is_refused_as_well() -> None:
    with pytest.raises(RuntimeError, match="reach this machine only"):
        await asyncio.open_connection("192.0.2.1", 80)


async def test_this_machine_can_be_reached() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        reader, writer = await asyncio.open_connection(host, port)
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()


def test_no_key_of_a_provider_is_in_the_environment() -> None:
    keys = [name for name in os.environ if name.endswith("_API_KEY")]
    assert [name for name in keys if not name.startswith("COAG_TEST_")] == []
