"""A TCP proxy on loopback that cuts connections, holds up requests, and stops reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

_PIECE = 65536


class FaultProxy:
    """Passes bytes to a server; a test makes it fail.

    Args:
        address: The server's address.
    """

    def __init__(self, address: str) -> None:
        self._to = urlsplit(address)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._up = asyncio.Event()
        self._up.set()
        self.get_delay = 0.0
        """Seconds by which requests for the stream of notices come late."""
        self.flows = asyncio.Event()
        """Whether what the server sends is read."""
        self.flows.set()
        self.address = ""
        """Where it is reached."""

    async def open(self) -> None:
        """Listens on a free port."""
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = urlunsplit(self._to._replace(netloc=f"127.0.0.1:{port}"))

    async def close(self) -> None:
        """Ends everything."""
        assert self._server is not None
        self._server.close()
        self._abort()
        await self._server.wait_closed()

    def cut(self, seconds: float) -> None:
        """Breaks every connection, and each new one for so long."""
        self._up.clear()
        self._abort()
        asyncio.get_running_loop().call_later(seconds, self._up.set)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _pass(self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        if not self._up.is_set():
            writing.transport.abort()
            return
        try:
            there = await asyncio.open_connection(self._to.hostname, self._to.port)
        except OSError:
            writing.transport.abort()
            return
        ends = {writing, there[1]}
        if not self._up.is_set():  # it was cut meanwhile
            for end in ends:
                end.transport.abort()
            return
        self._writers |= ends
        try:
            await asyncio.gather(self._pump(reading, there[1]), self._answer(there[0], writing))
        finally:
            self._writers -= ends

    async def _pump(self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        try:
            while piece := await reading.read(_PIECE):
                if piece.startswith(b"GET "):
                    await asyncio.sleep(self.get_delay)
                writing.write(piece)
                await writing.drain()
        except OSError:
            pass  # one of the ends is gone, and the other is closed
        writing.close()

    async def _answer(self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        try:
            while piece := await reading.read(_PIECE):
                await self.flows.wait()
                writing.write(piece)
                await writing.drain()
        except OSError:
            pass  # as above
        writing.close()


@asynccontextmanager
async def fault_proxy(address: str) -> AsyncGenerator[FaultProxy]:
    """A proxy in front of a server."""
    proxy = FaultProxy(address)
    await proxy.open()
    try:
        yield proxy
    finally:
        proxy.flows.set()
        await proxy.close()
