"""The ASGI application of the inspector."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from coag.serving import SafeHeaders, allowed_hosts

from . import _endpoints as show
from ._desk import Desk
from ._errors import HANDLERS
from ._live import events


def create_app(desk: Desk, *, host: str = "127.0.0.1") -> ASGIApp:
    """The application that shows the runs of a desk.

    Args:
        desk: The runs and what is known of them; closed when the application ends.
        host: The address served; on a loopback address only requests that name it are heeded.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with desk.at_work():
            yield

    app = Starlette(
        routes=[
            Route("/", show.runs),
            Route("/compare", show.compare),
            Route("/static/{name}", show.static),
            Route("/runs/{run}", show.run),
            Route("/runs/{run}/cycles/{number}", show.cycle),
            Route("/runs/{run}/cycles/{number}/why", show.why),
            Route("/runs/{run}/beliefs", show.beliefs),
            Route("/runs/{run}/awareness", show.awareness),
            Route("/runs/{run}/cycles/{number}/awareness", show.stood),
            Route("/runs/{run}/memory", show.memory),
            Route("/runs/{run}/procedures", show.procedures),
            Route("/runs/{run}/findings", show.findings),
            Route("/runs/{run}/records/{number}", show.record),
            Route("/runs/{run}/events", events),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts(host))),
            Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=3),
        ],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.state.desk = desk
    return SafeHeaders(app)
