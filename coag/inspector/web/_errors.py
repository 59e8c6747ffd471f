"""What is answered where something cannot be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from coag.errors import CoagError, UnknownNameError

from ._desk import Desk

_TITLES = {
    400: "This address asks for nothing that there is",
    404: "There is nothing here",
    405: "The inspector only shows",
    422: "This cannot be shown",
}
_WRONG_METHOD = "It reads logs and changes nothing, so it takes no other requests than to show."


def _page(request: Request, status: int, text: str) -> Response:
    desk: Desk = request.app.state.desk
    title = _TITLES.get(status, "This cannot be shown")
    return HTMLResponse(desk.pages.error_page(status, title, text), status)


async def _refused(request: Request, error: Exception) -> Response:
    """What starlette itself refuses."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    told = f"There is no page at {request.url.path!r}."
    if isinstance(error, HTTPException) and (status == 400 or error.detail != "Not Found"):
        told = error.detail
    return _page(request, status, _WRONG_METHOD if status == 405 else told)


async def _unknown(request: Request, error: Exception) -> Response:
    return _page(request, 404, str(error))


async def _unreadable(request: Request, error: Exception) -> Response:
    return _page(request, 422, str(error))


async def _unexpected(request: Request, error: Exception) -> Response:
    """A fault of the inspector's own; the server's log tells all of it."""
    told = (
        f"This page could not be made: {type(error).__name__}. What the inspector printed where it "
        "was started says more; the other pages are not touched by it."
    )
    return _page(request, 500, told)


HANDLERS: Mapping[Any, Any] = {
    HTTPException: _refused,
    UnknownNameError: _unknown,
    CoagError: _unreadable,
    Exception: _unexpected,
}
"""What answers which error."""
