"""What the approval page answers, one function per request; the secret is part of the path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from coag.cycle import ApprovalRequest
from coag.schema import Value
from coag.serving import allowed_hosts

from ._approval_page import STYLE, list_page, problem_page, request_page
from ._waiting import Waiting

_BODY_BYTES = 16_384
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_GONE = "This request does not wait any more: it was answered, withdrawn, or its time is over."
_OTHER = "This is not the request as it was shown. Look at it again."

Endpoint = Callable[[Request], Awaitable[Response]]


class Decision(Value):
    """What a person sends."""

    digest: str
    """Digest of the request as it was shown."""
    granted: bool
    by: str = Field(default="", max_length=100)
    reason: str = Field(default="", max_length=500)


def base_path(token: str) -> str:
    """The path below which everything is."""
    return f"/{token}/"


def approval_app(waiting: Waiting, token: str, *, by: str, host: str) -> Starlette:
    """The application that shows what waits and takes decisions.

    Args:
        waiting: What waits.
        token: The secret in the path; a request without it finds nothing.
        by: The name of whoever gives none.
        host: The address served; on a loopback one only requests that name it are heeded.
    """
    base = base_path(token)
    desk = _Desk(waiting, base, by)
    table: list[tuple[str, str, Endpoint]] = [
        ("GET", "", desk.show_list),
        ("GET", "page.css", desk.show_style),
        ("GET", "requests/{key}", desk.show_request),
        ("POST", "requests/{key}", desk.decide_by_form),
        ("GET", "api/requests", desk.list_as_json),
        ("POST", "api/requests/{key}", desk.decide_by_json),
    ]
    return Starlette(
        routes=[Route(base + path, _guarded(run), methods=[method]) for method, path, run in table],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts(host)))],
        exception_handlers={HTTPException: desk.show_problem},
    )


def _guarded(run: Endpoint) -> Endpoint:
    """The endpoint, with the headers that keep what it answers on this page."""

    async def guarded(request: Request) -> Response:
        response = await run(request)
        response.headers.update(_HEADERS)
        return response

    return guarded


class _Desk:
    """Where decisions are taken."""

    def __init__(self, waiting: Waiting, base: str, by: str) -> None:
        self._waiting = waiting
        self._base = base
        self._by = by

    async def show_list(self, request: Request) -> Response:
        """The page of what waits."""
        return HTMLResponse(list_page(self._waiting.listed(), self._base))

    async def show_style(self, request: Request) -> Response:
        """The pages' style."""
        return Response(STYLE, media_type="text/css")

    async def show_request(self, request: Request) -> Response:
        """The page of one request, with the form."""
        key, asked = self._asked(request)
        return HTMLResponse(request_page(key, asked, self._base, self._by))

    async def decide_by_form(self, request: Request) -> Response:
        """Takes the form; leads back to what waits."""
        body = await _body_of(request, "application/x-www-form-urlencoded")
        try:
            fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=8)
            decision = Decision.model_validate({name: v[-1] for name, v in fields.items()})
        except ValueError as error:
            raise HTTPException(422, _problem_of(error)) from error
        self._decide(request, decision)
        return RedirectResponse(self._base, 303)

    async def list_as_json(self, request: Request) -> Response:
        """What waits, as JSON."""
        listed = self._waiting.listed()
        return JSONResponse({"requests": [_as_json(key, asked) for key, asked in listed.items()]})

    async def decide_by_json(self, request: Request) -> Response:
        """Takes a decision as JSON."""
        body = await _body_of(request, "application/json")
        try:
            decision = Decision.model_validate_json(body, strict=True)
        except ValueError as error:
            raise HTTPException(422, _problem_of(error)) from error
        self._decide(request, decision)
        return JSONResponse({"granted": decision.granted})

    async def show_problem(self, request: Request, problem: Exception) -> Response:
        """Why something could not be done; leads nowhere for whoever lacks the secret."""
        assert isinstance(problem, HTTPException)
        inside = request.url.path.startswith(self._base)
        if request.url.path.startswith(f"{self._base}api/"):
            return JSONResponse({"error": problem.detail}, problem.status_code, _HEADERS)
        page = problem_page(problem.detail, self._base if inside else "")
        return HTMLResponse(page, problem.status_code, _HEADERS)

    def _asked(self, request: Request) -> tuple[str, ApprovalRequest]:
        key = str(request.path_params["key"])
        asked = self._waiting.listed().get(key)
        if asked is None:
            raise HTTPException(404, _GONE)
        return key, asked

    def _decide(self, request: Request, decision: Decision) -> None:
        key, asked = self._asked(request)
        if decision.digest != asked.digest:
            raise HTTPException(409, _OTHER)
        say = asked.grant if decision.granted else asked.deny
        answer = say(decision.by.strip() or self._by, decision.reason.strip())
        if not self._waiting.answer(key, answer):
            raise HTTPException(404, _GONE)


def _as_json(key: str, asked: ApprovalRequest) -> dict[str, object]:
    return {"key": key, "digest": asked.digest, **asked.model_dump(mode="json")}


async def _body_of(request: Request, kind: str) -> bytes:
    """The body, if it is of this kind and not too long."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != kind:
        raise HTTPException(415, f"The body has to be {kind}.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _BODY_BYTES:
            raise HTTPException(413, f"The body has more than {_BODY_BYTES} bytes.")
    return body


def _problem_of(error: ValueError) -> str:
    """What is wrong with a decision, without repeating it."""
    if not isinstance(error, ValidationError):
        return "This is no decision: it cannot be read."
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"This is no decision: {where or 'it'}: {first['msg']}."
