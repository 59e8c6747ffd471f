"""The live page: a few files, nothing from elsewhere, under a strict content policy."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from ._problems import Problem

PARTS = frozenset(
    {"board.js", "control.js", "dom.js", "mind.js", "picture.js", "shapes.js", "stream.js"}
)
"""Modules that `page.js` imports; nothing else is served from their folder."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _page_file(name: str, media: str) -> Response:
    content = files("vacuum_world.server").joinpath("page", name).read_bytes()
    return Response(content, media_type=f"{media}; charset=utf-8", headers=_HEADERS)


async def show_page(request: Request) -> Response:
    """The live page."""
    return _page_file("index.html", "text/html")


async def page_style(request: Request) -> Response:
    """The live page's style."""
    return _page_file("page.css", "text/css")


async def page_script(request: Request) -> Response:
    """The live page's script."""
    return _page_file("page.js", "text/javascript")


async def page_part(request: Request) -> Response:
    """A module of the live page's script."""
    name = request.path_params["name"]
    if name not in PARTS:
        raise Problem(404, "not_found", f"the page has no part {name!r}; see /")
    return _page_file(name, "text/javascript")
