"""The stream by which a server over HTTP tells things: whether it is still open.

The mcp package opens it again when it ends, gives up after two failures, and says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from .session import McpNotice, OnNotice

_REOPEN_SECONDS = 2.5
"""Time in which the mcp package opens a stream again, if it does; it waits a second before."""
_NO_STREAM = 405
"""Status of a server that has none."""


class _Bytes(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class _Watched:
    """The bytes of a stream, and a call when they end."""

    def __init__(self, stream: _Bytes, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                yield part
        finally:
            self._ended()

    async def aclose(self) -> None:
        await self._stream.aclose()


class StreamWatch:
    """Tells of the stream of notices what became of it.

    Args:
        on_notice: Called with `missed` and `deaf`.
        byte_stream: The HTTP client's class of asynchronous byte streams.

    It is `missed` whenever it opens, since what was told before is lost, and `deaf` when it ended
    and did not open again in time.
    """

    def __init__(self, on_notice: OnNotice, byte_stream: type[Any]) -> None:
        self._on_notice = on_notice
        self._stream_type = type("_WatchedStream", (_Watched, byte_stream), {})
        self._giving_up: asyncio.TimerHandle | None = None

    async def answered(self, response: Any) -> None:
        """An event hook for responses of an HTTP client (httpx or httpx2)."""
        if response.request.method != "GET" or response.status_code == _NO_STREAM:
            return
        if not response.is_success:
            self.ended()
            return
        self.close()
        response.stream = self._stream_type(response.stream, self.ended)
        self._on_notice(McpNotice("missed"))

    def ended(self) -> None:
        """Counts from now, if it is not counted already."""
        if self._giving_up is None:
            loop = asyncio.get_running_loop()
            deaf = McpNotice("deaf")
            self._giving_up = loop.call_later(_REOPEN_SECONDS, self._on_notice, deaf)

    def close(self) -> None:
        """Waits no more for the stream to open again."""
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
