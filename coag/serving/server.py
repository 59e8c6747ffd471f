"""Serving pages on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, MappingProxyType

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coag._util.sockets import listen
from coag.errors import CoagError

# ---- Headers that keep a local page from being misused by others, or by what it shows ----


PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What pages may do (a Content-Security-Policy): nothing inline, nothing from elsewhere."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeHeaders:
    """ASGI middleware that adds the headers to every answer.

    Args:
        app: The application.
        policy: Its Content-Security-Policy.
        further: Headers beside those that every page has.
    """

    def __init__(
        self,
        app: ASGIApp,
        policy: str = PAGE_POLICY,
        further: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._app = app
        self._headers = {"Content-Security-Policy": policy, **_HEADERS, **further}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)


def allowed_hosts(host: str) -> Sequence[str]:
    """The names in a `Host` header that are heeded where `host` is served.

    On a loopback address they are that machine's own, so that no other page can reach it under
    a name of its own (DNS rebinding).
    """
    loopback = host in ("127.0.0.1", "::1", "localhost")
    return ["127.0.0.1", "localhost", "[::1]"] if loopback else ["*"]


# ---- A small web application, served in this thread or from a background one ----


_START_SECONDS = 15.0
_STOP_SECONDS = 10.0


class ServingError(CoagError):
    """A local page could not be served, or did not stop."""


class _Uvicorn(uvicorn.Server):
    """A server with an event for when it answers requests, and a callback for when it stops."""

    def __init__(self, config: uvicorn.Config, closing: Callable[[], None] | None) -> None:
        super().__init__(config)
        self.answers = threading.Event()
        self._closing = closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.close()

    def close(self) -> None:
        """Ends it after the requests under way are answered."""
        self.should_exit = True
        if self._closing is not None:
            self._closing()


def url_of(listening: socket.socket) -> str:
    """Where a socket is reached, without a slash at the end."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server(app: ASGIApp, closing: Callable[[], None] | None, *, has_lifespan: bool) -> _Uvicorn:
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on" if has_lifespan else "off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    return _Uvicorn(config, closing)


def serve_until_stopped(
    app: ASGIApp,
    listening: socket.socket,
    *,
    has_lifespan: bool = False,
    closing: Callable[[], None] | None = None,
) -> None:
    """Serves an application in this thread until SIGINT or SIGTERM.

    Args:
        app: The application.
        listening: Where, from `listen`.
        has_lifespan: Whether the application handles its start and end (ASGI lifespan).
        closing: Called before it stops, so that open streams can end.
    """
    _server(app, closing, has_lifespan=has_lifespan).run(sockets=[listening])


class Served:
    """An application, served from a background thread until it is stopped.

    Args:
        app: The application.
        host: The address to serve.
        port: The port; 0 takes a free one.
        has_lifespan: Whether the application handles its start and end (ASGI lifespan).
        closing: Called, from any thread, before it stops, so that open streams can end.

    Raises:
        OSError: The address cannot be had.
        ServingError: The server did not start.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        has_lifespan: bool = False,
        closing: Callable[[], None] | None = None,
    ) -> None:
        listening = listen(host, port)
        self.address = url_of(listening)
        """Where it is reached, without a slash at the end."""
        self._server = _server(app, closing, has_lifespan=has_lifespan)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listening]},
            name="coag-served",
            daemon=True,
        )
        self._thread.start()
        if not self._server.answers.wait(_START_SECONDS):
            self.stop()
            raise ServingError(f"The page at {self.address} did not start in {_START_SECONDS} s.")

    def stop(self) -> None:
        """Ends it; requests under way are answered first.

        Raises:
            ServingError: It did not stop in time.
        """
        self._server.close()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            raise ServingError(f"The page at {self.address} did not stop in {_STOP_SECONDS} s.")
