"""The live page: three files, nothing from elsewhere, under a strict content policy."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

_TYPES = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _page_file(name: str) -> Response:
    content = files("vacuum_world.server").joinpath("page", name).read_bytes()
    return Response(content, media_type=f"{_TYPES[name]}; charset=utf-8", headers=_HEADERS)


async def show_page(request: Request) -> Response:
    """The live page."""
    return _page_file("index.html")


async def page_style(request: Request) -> Response:
    """The live page's style."""
    return _page_file("page.css")


async def page_script(request: Request) -> Response:
    """The live page's script."""
    return _page_file("page.js")
