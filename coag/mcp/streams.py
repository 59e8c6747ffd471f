"""Watches the streams of a server over HTTP, of which the mcp package reports nothing.

It waits for ever for an answer whose stream broke. It opens the stream of notices again when that
ends, gives up after two failures, and says nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from .session import McpNotice, OnNotice

_REOPEN_SECONDS = 2.5
"""Time in which the mcp package opens a stream again, if it does; it waits a second before."""
_ANSWER_SECONDS = 1.0
"""Time for an answer to get from its stream to the code that waits for it."""
_NO_STREAM = 405
"""Status of a server that has no stream of notices."""


class _Bytes(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class _Watched:
    """The bytes of a stream; calls `ended` with whether they were cut off."""

    def __init__(self, stream: _Bytes, ended: Callable[[bool], None]) -> None:
        self._stream = stream
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        broke = False
        try:
            async for part in self._stream:
                yield part
        except Exception:
            broke = True
            raise
        finally:
            self._ended(broke)

    async def aclose(self) -> None:
        await self._stream.aclose()


class StreamWatch:
    """Reports what happens to the stream of notices, and requests that get no answer.

    The stream is `missed` whenever it opens, since earlier notices are lost, and `deaf` when
    it ended and did not open again in time.

    Args:
        on_notice: Called with `missed` and `deaf`.
        byte_stream: The HTTP client's class of asynchronous byte streams.
    """

    def __init__(self, on_notice: OnNotice, byte_stream: type[Any]) -> None:
        self.on_lost: Callable[[Any], None] | None = None
        """Called with the number of a request whose answer does not come any more."""
        self._on_notice = on_notice
        self._stream_type = type("_WatchedStream", (_Watched, byte_stream), {})
        self._giving_up: asyncio.TimerHandle | None = None

    async def answered(self, response: Any) -> None:
        """An event hook for responses of an HTTP client (httpx or httpx2)."""
        request = response.request
        if request.method == "POST" and response.is_success:
            number = json.loads(await request.aread()).get("id")
            if number is not None:
                response.stream = self._stream_type(
                    response.stream, lambda broke: self._answer_ended(number, broke)
                )
        if request.method != "GET" or response.status_code == _NO_STREAM:
            return
        if not response.is_success:
            self._notices_ended()
            return
        self.close()
        response.stream = self._stream_type(response.stream, lambda _: self._notices_ended())
        self._on_notice(McpNotice("missed"))

    def _answer_ended(self, number: Any, broke: bool) -> None:
        if self.on_lost is not None:
            delay = 0.0 if broke else _ANSWER_SECONDS
            asyncio.get_running_loop().call_later(delay, self.on_lost, number)

    def _notices_ended(self) -> None:
        if self._giving_up is None:
            loop = asyncio.get_running_loop()
            deaf = McpNotice("deaf")
            self._giving_up = loop.call_later(_REOPEN_SECONDS, self._on_notice, deaf)

    def close(self) -> None:
        """Waits no more for the stream to open again."""
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
