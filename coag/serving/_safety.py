"""Headers that keep a local page from being misused by others, or by what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What pages may do (a Content-Security-Policy): nothing inline, nothing from elsewhere."""

_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class SafeHeaders:
    """ASGI middleware that adds the headers to every answer, whatever made it.

    Args:
        app: The application.
        policy: Its Content-Security-Policy.
    """

    def __init__(self, app: ASGIApp, policy: str = PAGE_POLICY) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", self._policy)
                for name, value in _HEADERS:
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
