"""The ASGI application around one world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route

from ._clock import tick_by_clock
from ._hub import WorldHub
from ._openapi import show_openapi
from ._problems import HANDLERS
from ._table import ENDPOINTS


def create_app(
    hub: WorldHub,
    *,
    interval: float = 1.0,
    host: str = "127.0.0.1",
    on_start: Callable[[], None] | None = None,
) -> Starlette:
    """The application that serves `hub`.

    Args:
        hub: The world.
        interval: Seconds between ticks where time passes by the clock.
        host: The address served; on a loopback address only requests that name it are heeded.
        on_start: Called once in the server's event loop, before the first request.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        if on_start:
            on_start()
        clock = asyncio.ensure_future(tick_by_clock(hub))
        try:
            yield
        finally:
            clock.cancel()
            await asyncio.wait([clock])

    hub.gate.interval = interval
    loopback = host in ("127.0.0.1", "::1", "localhost")
    allowed = ["127.0.0.1", "localhost", "[::1]"] if loopback else ["*"]
    routes = [Route(e.path, e.run, methods=[e.method]) for e in ENDPOINTS]
    app = Starlette(
        routes=[*routes, Route("/openapi.json", show_openapi, methods=["GET"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=allowed)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.state.hub = hub
    return app
