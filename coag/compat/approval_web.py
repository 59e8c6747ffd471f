"""`WebApprover`: a page of this machine on which a person approves actions.

Imported on demand, since it brings a web server. The pages are plain HTML without scripts, every
value in them escaped.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from concurrent.futures import Future
from html import escape
from itertools import count
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from coag._util.text import visible
from coag._util.timeouts import outcome_of
from coag._util.validation import first_error
from coag.cycle import ApprovalAnswer, ApprovalRequest
from coag.errors import ConfigurationError
from coag.schema import Value
from coag.serving import SafeHeaders, Served, ServingError, allowed_hosts

from .approvers import arguments_of, facts_of

__all__ = ["WebApprover", "ServingError"]

REFRESH_SECONDS = 2
"""How often the list of waiting requests loads itself again."""
SHOWN = 100_000
"""Characters of arguments that a page shows."""
_FILES = Path(__file__).parent / "approval_pages"
_PAGE, _REQUEST, STYLE = (
    (_FILES / name).read_text("utf-8") for name in ("page.html", "request.html", "page.css")
)
_NOTHING = "<p>Nothing waits for approval. This page looks again by itself.</p>"
_POLICY = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_BODY_BYTES = 16_384
_GONE = "This request does not wait any more: it was answered, withdrawn, or its time is over."
_OTHER = "This is not the request as it was shown. Look at it again."
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_TOKEN_LENGTH = 16
_IN_A_PATH = frozenset(f"{string.ascii_letters}{string.digits}-_")


def _page(title: str, body: str, base: str, *, refresh: bool = False) -> str:
    again = f'\n<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' if refresh else ""
    return _PAGE.format(title=escape(title), body=body, base=escape(base), refresh=again)


def list_page(waiting: Mapping[str, ApprovalRequest], base: str) -> str:
    """What waits for a decision. It loads itself again, so it has links only and no forms."""
    items = [
        f'<li><a href="{escape(base)}requests/{key}">{_text(request.action)}</a> '
        f"for {_text(request.agent)} (risk: {_text(request.risk)}), "
        f"until {request.expires_at:%H:%M:%S} UTC</li>"
        for key, request in waiting.items()
    ]
    body = "\n".join(["<ul>", *items, "</ul>"]) if items else _NOTHING
    title = f"({len(items)}) Approvals" if items else "Approvals"
    return _page(title, f"<h1>Approvals</h1>\n{body}", base, refresh=True)


def request_page(key: str, request: ApprovalRequest, base: str, by: str) -> str:
    """One request with the form to decide it; does not move under the person's hand."""
    facts = {
        "Agent": visible(request.agent),
        **facts_of(request, SHOWN),
        "Policy": request.policy,
        "Digest": request.digest,
    }
    title = f"Run {visible(request.action)}?"
    body = _REQUEST.format(
        title=escape(title),
        arguments=escape(arguments_of(request, SHOWN)),
        base=escape(base),
        key=key,
        digest=request.digest,
        by=escape(by),
        facts="\n".join(f"<dt>{label}</dt><dd>{escape(v)}</dd>" for label, v in facts.items()),
    )
    return _page(title, body, base)


def _text(text: str) -> str:
    return escape(visible(text))


class WebDecision(Value):
    """What a person sends."""

    digest: str
    """Digest of the request as it was shown."""
    granted: bool
    by: str = Field(default="", max_length=100)
    reason: str = Field(default="", max_length=500)


class WebApprover:
    """Shows what waits for approval on a web page of this machine, where a person decides.

    The page needs no script and refreshes itself. Anybody who knows its address decides: the
    address holds a secret, which is what keeps other pages and programs out, so give it to
    nobody else. A decision counts only for the request as it was shown.

    `GET api/requests` below the address lists what waits as JSON; `POST api/requests/KEY` with
    `{"digest": ..., "granted": true, "by": ..., "reason": ...}` decides.

    Example:
        `with WebApprover() as approver: print(approver.url)`

    Args:
        by: The name under which the person answers who gives none.
        host: The address to serve. Anything but this machine's own is without encryption.
        port: The port; 0 takes a free one.
        token: The secret in the address; None makes one that nobody can guess.

    Raises:
        ConfigurationError: The token is short, or does not fit into an address.
    """

    def __init__(
        self,
        by: str = "operator",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
    ) -> None:
        self.name = by
        token = secrets.token_urlsafe(24) if token is None else token
        if len(token) < _TOKEN_LENGTH or not _IN_A_PATH.issuperset(token):
            problem = f"token takes {_TOKEN_LENGTH} or more of A-Z a-z 0-9 - _"
            raise ConfigurationError(f"{problem}; it has {len(token)} characters, or others.")
        self._base = f"/{token}/"
        self._address = (host, port)
        # By a key of its own each, since the ids of requests count up in each agent. Several
        # threads use it, each time by one operation, which a dictionary does as a whole.
        self._open: dict[str, tuple[ApprovalRequest, Future[ApprovalAnswer]]] = {}
        self._keys = count(1)
        self._served: Served | None = None

    @property
    def url(self) -> str:
        """Where the page is; anybody who knows it decides. Empty while it is not served."""
        return self._served.address + self._base if self._served else ""

    def start(self) -> Self:
        """Serves the page; returns when it can be opened.

        Raises:
            OSError: The address is not to be had.
            ServingError: The server did not start.
        """
        if self._served is None:
            self._served = Served(self._app(), *self._address)
        return self

    def stop(self) -> None:
        """Closes the page; what waits is denied.

        Raises:
            ServingError: The server did not stop in time.
        """
        served, self._served = self._served, None
        for key, request in self._waiting().items():
            self._answer(key, request.deny("", "the approval page was closed"))
        if served is not None:
            served.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The person's decision; a request leaves the page when nobody waits for it any more.

        Raises:
            ConfigurationError: The page is not served.
        """
        if self._served is None:
            raise ConfigurationError("The page is not served; use `with WebApprover() as ...`.")
        key, answer = str(next(self._keys)), Future[ApprovalAnswer]()
        self._open[key] = (request, answer)
        try:
            return await outcome_of(answer)
        finally:
            self._open.pop(key, None)

    def _waiting(self) -> dict[str, ApprovalRequest]:
        return {key: request for key, (request, _) in dict(self._open).items()}

    def _answer(self, key: str, answer: ApprovalAnswer) -> bool:
        """Answers a request; False if it is not open, or no longer."""
        _, future = self._open.pop(key, (None, None))
        if future is not None:
            future.set_result(answer)
        return future is not None

    # ---- The application below the secret path ----

    def _app(self) -> Starlette:
        table = [
            ("GET", "", self._list),
            ("GET", "page.css", self._style),
            ("GET", "requests/{key}", self._request),
            ("POST", "requests/{key}", self._decide_by_form),
            ("GET", "api/requests", self._list_as_json),
            ("POST", "api/requests/{key}", self._decide_by_json),
        ]
        hosts = list(allowed_hosts(self._address[0]))
        headers = {"X-Frame-Options": "DENY", "Cache-Control": "no-store"}
        return Starlette(
            routes=[Route(self._base + path, run, methods=[verb]) for verb, path, run in table],
            middleware=[
                Middleware(SafeHeaders, _POLICY, headers),
                Middleware(TrustedHostMiddleware, allowed_hosts=hosts),
            ],
            exception_handlers={HTTPException: self._problem},
        )

    async def _list(self, request: Request) -> Response:
        return HTMLResponse(list_page(self._waiting(), self._base))

    async def _style(self, request: Request) -> Response:
        return Response(STYLE, media_type="text/css")

    async def _request(self, request: Request) -> Response:
        return HTMLResponse(request_page(*self._pending(request), self._base, self.name))

    async def _list_as_json(self, request: Request) -> Response:
        listed = [
            {"key": key, "digest": pending.digest, **pending.model_dump(mode="json")}
            for key, pending in self._waiting().items()
        ]
        return JSONResponse({"requests": listed})

    async def _decide_by_form(self, request: Request) -> Response:
        await self._decide(request, _FORM)
        return RedirectResponse(self._base, 303)

    async def _decide_by_json(self, request: Request) -> Response:
        return JSONResponse({"granted": await self._decide(request, _JSON)})

    async def _problem(self, request: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)
        path = request.url.path
        if path.startswith(f"{self._base}api/"):
            return JSONResponse({"error": problem.detail}, problem.status_code)
        base = self._base if path.startswith(self._base) else ""
        link = f'<p><a href="{escape(base)}">All that waits</a></p>' if base else ""
        body = f"<h1>Not possible</h1>\n<p>{escape(problem.detail)}</p>\n{link}"
        return HTMLResponse(_page("Not possible", body, base), problem.status_code)

    def _pending(self, request: Request) -> tuple[str, ApprovalRequest]:
        key = str(request.path_params["key"])
        pending = self._waiting().get(key)
        if pending is None:
            raise HTTPException(404, _GONE)
        return key, pending

    async def _decide(self, request: Request, kind: str) -> bool:
        decision = _decision(await _body_of(request, kind), kind)
        key, pending = self._pending(request)
        if decision.digest != pending.digest:
            raise HTTPException(409, _OTHER)
        decide = pending.grant if decision.granted else pending.deny
        answer = decide(decision.by.strip() or self.name, decision.reason.strip())
        if not self._answer(key, answer):
            raise HTTPException(404, _GONE)
        return decision.granted


async def _body_of(request: Request, kind: str) -> bytes:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != kind:
        raise HTTPException(415, f"The body has to be {kind}.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _BODY_BYTES:
            raise HTTPException(413, f"The body has more than {_BODY_BYTES} bytes.")
    return body


def _decision(body: bytes, kind: str) -> WebDecision:
    try:
        if kind == _JSON:
            return WebDecision.model_validate_json(body, strict=True)
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=8)
        return WebDecision.model_validate({name: v[-1] for name, v in fields.items()})
    except ValidationError as error:  # says what is wrong, and does not repeat it
        raise HTTPException(422, f"This is no decision: {first_error(error, 'it')}.") from error
    except ValueError as error:
        raise HTTPException(422, "This is no decision: it cannot be read.") from error
