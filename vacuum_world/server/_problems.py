"""Every error of the server as JSON: `{"error": ..., "detail": ...}`."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ExceptionHandler

from vacuum_world.errors import (
    OutsideGridError,
    RuleError,
    UnknownGadgetError,
    UnknownRobotError,
)

from ._messages import ProblemBody


class Problem(Exception):
    """A request that ends with an error status."""

    def __init__(self, status: int, error: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        """HTTP status."""
        self.body = ProblemBody(error=error, detail=detail)
        """What the caller is told."""


def unauthorized(detail: str) -> Problem:
    """401: who is calling is not known."""
    return Problem(401, "unauthorized", detail)


def forbidden(detail: str) -> Problem:
    """403: the caller is known and may not."""
    return Problem(403, "forbidden", detail)


def invalid(error: ValidationError) -> Problem:
    """422: the request does not say what it must."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}" for fault in faults[:5]]
    return Problem(422, "invalid", "; ".join(told))


def _answer(status: int, error: str, detail: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": error, "detail": detail}, status, headers)


def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _answer(error.status, error.body.error, error.body.detail)


def _on_rule(request: Request, error: Exception) -> Response:
    missing = isinstance(error, UnknownRobotError | UnknownGadgetError)
    return _answer(404 if missing else 409, "not_found" if missing else "conflict", str(error))


def _on_outside(request: Request, error: Exception) -> Response:
    return _answer(422, "invalid", str(error))


def _on_disk(request: Request, error: Exception) -> Response:
    detail = f"the world could not be kept on disk ({error}); nothing has changed"
    return _answer(503, "not_kept", detail)


def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    detail = f"{request.method} {request.url.path}: {error.detail}; see /openapi.json"
    return _answer(error.status_code, name, detail)


HANDLERS: dict[int | type[Exception], ExceptionHandler] = {
    Problem: _on_problem,
    RuleError: _on_rule,
    OutsideGridError: _on_outside,
    OSError: _on_disk,
    HTTPException: _on_http,
}
"""What starlette does with each kind of error."""
