"""Every error of the server as JSON: `{"error": ..., "detail": ...}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vacuum_world.errors import (
    OutsideGridError,
    RuleError,
    UnknownGadgetError,
    UnknownRobotError,
)

from .messages import ProblemBody

SMALL_BODY = 64 * 1024
"""Bytes that most bodies may have."""
LARGE_BODY = 16 * 1024 * 1024
"""Bytes that a whole world may have."""


class Problem(HTTPException):
    """A request that ends with an error status."""

    def __init__(self, status: int, error: str, detail: str) -> None:
        super().__init__(status, detail)
        self.error = error
        """Short name of the problem."""


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for its description."""
    return {status: {"model": ProblemBody} for status in statuses}


class BodyLimit:
    """Refuses a body with more bytes than its path allows, while it arrives."""

    def __init__(self, app: ASGIApp, limits: Mapping[str, int]) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, and counts what it brings."""
        limit = self._limits.get(scope.get("path", ""), SMALL_BODY)
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise Problem(413, "too_long", f"the body has more than {limit} bytes")
            return message

        await self._app(scope, counted, send)


def _answer(status: int, error: str, detail: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": error, "detail": detail}, status, headers)


async def _on_http(request: Request, error: HTTPException) -> Response:
    if isinstance(error, Problem):
        return _answer(error.status_code, error.error, error.detail)
    name = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    detail = f"{request.method} {request.url.path}: {error.detail}; see /openapi.json"
    return _answer(error.status_code, name, detail)


async def _on_invalid(request: Request, error: RequestValidationError) -> Response:
    faults: Sequence[Any] = error.errors()
    texts = [f"{_place(fault['loc'])}: {fault['msg']}" for fault in faults[:5]]
    return _answer(422, "invalid", "; ".join(texts))


def _place(location: Sequence[Any]) -> str:
    """`direction` of `("body", "direction")`; the first part says where it was sent."""
    return ".".join(map(str, location[1:])) or str(location[0])


async def _on_rule(request: Request, error: RuleError) -> Response:
    missing = isinstance(error, UnknownRobotError | UnknownGadgetError)
    return _answer(404 if missing else 409, "not_found" if missing else "conflict", str(error))


async def _on_outside(request: Request, error: OutsideGridError) -> Response:
    return _answer(422, "invalid", str(error))


async def _on_disk(request: Request, error: OSError) -> Response:
    detail = f"the world could not be written to disk ({error}); nothing has changed"
    return _answer(503, "not_kept", detail)


def answer_problems(app: FastAPI) -> None:
    """Has the application answer every kind of error as JSON."""
    app.exception_handler(HTTPException)(_on_http)
    app.exception_handler(RequestValidationError)(_on_invalid)
    app.exception_handler(RuleError)(_on_rule)
    app.exception_handler(OutsideGridError)(_on_outside)
    app.exception_handler(OSError)(_on_disk)
