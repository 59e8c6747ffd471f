"""The inspector as a local web application.

It reads logs and changes nothing. On a loopback address it answers only requests that name it, and
what it shows can load nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from coag.errors import CoagError, UnknownNameError
from coag.proof import DomainKnowledge
from coag.serving import SafeHeaders, Served, allowed_hosts, listen, serve_until_stopped, url_of

from .awareness import NOT_AWARE
from .beliefs import read_beliefs
from .charts import belief_svgs, cost_svg, history_svg, why_svg
from .live import Followers
from .memory import read_memory, read_procedures
from .pages import MEDIA_TYPES, Pages, static_text
from .run_cache import RunCache
from .views import Filters
from .why import why_graph

_TITLES = {
    400: "This address asks for nothing that there is",
    404: "There is nothing here",
    405: "The inspector only shows",
    422: "This cannot be shown",
}
_WRONG_METHOD = "It reads logs and changes nothing, so it takes no other requests than to show."
_DIGITS = 16
_FILTERS = ("query", "kind", "model", "outcome", "agent", "sort")


class _Site:
    """The pages of the application, one method an address.

    Args:
        cache: The runs that are shown.
    """

    def __init__(self, cache: RunCache) -> None:
        self.cache = cache
        self.pages = Pages()

    async def page(self, request: Request, make: Callable[..., str], *names: str) -> Response:
        """A page made in a thread, so that a slow one keeps nobody waiting.

        Args:
            request: The request.
            make: Makes the page from the parts of the address that are named.
            names: `key`, `number`, or the name of a number in the query, with `=` and its default.
        """
        values = [_value(request, name) for name in names]
        return HTMLResponse(await self.cache.soon(partial(make, *values)))

    async def runs(self, request: Request) -> Response:
        """The runs there are."""
        return await self.page(request, partial(self._runs, _filters(request)), "page=1")

    def _runs(self, filters: Mapping[str, str], page: int) -> str:
        runs = self.cache.library.listing(Filters(page=page), **filters)
        return self.pages.render("runs", runs=runs)

    def run(self, key: str, first: int) -> str:
        """One run, with a page of its timeline."""
        findings = self.cache.findings(key)
        self.cache.open(key)
        view = self.cache.library.page(key, first)
        view = replace(
            view,
            card=self.cache.card(key),
            rows=tuple(map(findings.placed_in, view.rows)),
            strip=tuple(map(findings.placed_in, view.strip)),
        )
        cost = cost_svg(view.strip or view.rows, prefix="cost")
        return self.pages.render("run", card=view.card, view=view, findings=findings, cost=cost)

    def cycle(self, key: str, number: int) -> str:
        """One cycle."""
        view = self.cache.findings(key).placed_in_cycle(self.cache.open(key).cycle(number))
        return self.pages.render("cycle", card=self.cache.card(key), view=view)

    def why(self, key: str, number: int) -> str:
        """What the decision of a cycle was based on."""
        run = self.cache.open(key)
        beside = run.beside(number)
        graph = why_graph(run.folder, number, run.index)
        address = partial(self.pages.addresses.to, "cycle", key, number)
        return self.pages.render(
            "why",
            card=self.cache.card(key),
            graph=graph,
            svg=why_svg(graph, prefix="why", leads=lambda spot: address(spot=spot)),
            beside=beside,
            findings=self.cache.findings(key).of_cycle(number),
        )

    def beliefs(self, key: str) -> str:
        """What the agent believed beside what was true."""
        card = self.cache.card(key)
        found = read_beliefs(self.cache.scanned(key), card.info.agent if card.info else "")
        svgs, findings = belief_svgs(found, prefix="b"), self.cache.findings(key).found
        return self.pages.render("beliefs", card=card, belief=found, svgs=svgs, findings=findings)

    async def awareness(self, request: Request) -> Response:
        """Where the agent stood last; the address may ask for the page of a cycle."""
        key, number = _value(request, "key"), _value(request, "cycle=0")
        if number:
            return RedirectResponse(self.pages.addresses.to("stood", key, number), 303)
        return await self.page(request, self.stood, "key")

    def stood(self, key: str, number: int | None = None) -> str:
        """Where the agent stood as a cycle began, or the last one."""
        reader = self.cache.awareness(key)
        if not reader.aware:
            raise HTTPException(404, NOT_AWARE)
        view = reader.view(number)
        leads = partial(self.pages.addresses.to, "stood", key)
        return self.pages.render(
            "awareness",
            card=self.cache.card(key),
            view=view,
            svgs=[
                history_svg(history, view.cycle, prefix=f"course{n}", leads=leads)
                for n, (_, history) in enumerate(view.modules, 1)
            ],
            chosen=number is not None,
        )

    def memory(self, key: str, page: int) -> str:
        """Long-term memory as the run used it."""
        memory, findings = read_memory(self.cache.scanned(key), page), self.cache.findings(key)
        card = self.cache.card(key)
        return self.pages.render("memory", card=card, memory=memory, findings=findings.found)

    def procedures(self, key: str) -> str:
        """The procedures with their versions."""
        histories = read_procedures(self.cache.scanned(key))
        return self.pages.render("procedures", card=self.cache.card(key), histories=histories)

    def findings(self, key: str) -> str:
        """What `verify` and `diagnose` find."""
        found = self.cache.findings(key)
        return self.pages.render("findings", card=self.cache.card(key), findings=found)

    async def compare(self, request: Request) -> Response:
        """Two runs side by side, or the choice of the second."""
        left, right = (request.query_params.get(name, "") for name in "ab")
        if right:
            return await self.page(request, partial(self._compared, left, right), "from=-1")
        choose = partial(self._choose, left, _filters(request))
        return await self.page(request, choose, "page=1")

    def _compared(self, left: str, right: str, first: int) -> str:
        return self.pages.render("compare", comparison=self.cache.comparison(left, right, first))

    def _choose(self, left: str, filters: Mapping[str, str], page: int) -> str:
        runs = self.cache.library.listing(Filters(page=page, without=left), **filters)
        return self.pages.render("choose", left=self.cache.library.card(left), runs=runs)

    async def record(self, request: Request) -> Response:
        """One record; as nothing but text where the address asks for it with `plain`."""
        if "plain" in request.query_params:
            key, number = _value(request, "key"), _value(request, "number")
            return PlainTextResponse(
                (await self.cache.soon(partial(self.cache.record, key, number))).text
            )
        return await self.page(request, self._record, "key", "number")

    def _record(self, key: str, number: int) -> str:
        record = self.cache.record(key, number)
        return self.pages.render("record", card=self.cache.card(key), record=record)

    async def failed(self, request: Request, error: Exception) -> Response:
        """What is answered where something cannot be shown."""
        status, text = (
            500,
            (
                f"This page could not be made: {type(error).__name__}. What the inspector printed "
                "where it was started says more; the other pages are not affected."
            ),
        )
        if isinstance(error, HTTPException):
            status = error.status_code
            missing = status == 404 and error.detail == "Not Found"
            text = f"There is no page at {request.url.path!r}." if missing else error.detail
            text = _WRONG_METHOD if status == 405 else text
        elif isinstance(error, CoagError):
            status, text = 404 if isinstance(error, UnknownNameError) else 422, str(error)
        title = _TITLES.get(status, "This cannot be shown")
        return HTMLResponse(
            self.pages.render("error", status=status, title=title, text=text), status
        )


async def _static(request: Request) -> Response:
    """A file that comes with the pages."""
    name = str(request.path_params["name"])
    if name not in MEDIA_TYPES:
        raise UnknownNameError("file", name, list(MEDIA_TYPES))
    return Response(
        static_text(name), media_type=MEDIA_TYPES[name], headers={"Cache-Control": "no-cache"}
    )


def _value(request: Request, name: str) -> Any:
    """A part of the address: see `_Site.page`.

    Raises:
        HTTPException: It is no number that a cycle, a record or the query could have.
    """
    if name == "key":
        return str(request.path_params["run"])
    if name == "number":
        text = str(request.path_params["number"])
        if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
            raise HTTPException(404)
        return int(text)
    name, _, default = name.partition("=")
    text = request.query_params.get(name, "")
    try:
        return min(max(int(text), 0), 2**31) if text else int(default)
    except ValueError as error:
        problem = f"{name!r} in the address takes a whole number, not {text[:40]!r}."
        raise HTTPException(400, problem) from error


def _filters(request: Request) -> Mapping[str, str]:
    return {name: request.query_params.get(name, "") for name in _FILTERS}


def create_app(cache: RunCache, *, host: str = "127.0.0.1") -> ASGIApp:
    """The application that shows runs.

    Args:
        cache: The runs; closed when the application ends.
        host: The address served; on a loopback address only requests that name it are answered.
    """
    site = _Site(cache)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with cache.at_work():
            yield

    def page(path: str, make: Callable[..., str], *names: str) -> Route:
        async def shown(request: Request) -> Response:
            return await site.page(request, make, *names)

        return Route(path, shown)

    app = Starlette(
        routes=[
            Route("/", site.runs),
            Route("/compare", site.compare),
            Route("/static/{name}", _static),
            page("/runs/{run}", site.run, "key", "from=0"),
            page("/runs/{run}/cycles/{number}", site.cycle, "key", "number"),
            page("/runs/{run}/cycles/{number}/why", site.why, "key", "number"),
            page("/runs/{run}/cycles/{number}/awareness", site.stood, "key", "number"),
            page("/runs/{run}/beliefs", site.beliefs, "key"),
            Route("/runs/{run}/awareness", site.awareness),
            page("/runs/{run}/memory", site.memory, "key", "page=1"),
            page("/runs/{run}/procedures", site.procedures, "key"),
            page("/runs/{run}/findings", site.findings, "key"),
            Route("/runs/{run}/records/{number}", site.record),
            Route("/runs/{run}/events", Followers(cache, site.pages).events),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts(host))),
            Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=3),
        ],
        exception_handlers=dict.fromkeys(
            (HTTPException, UnknownNameError, CoagError, Exception), site.failed
        ),
        lifespan=lifespan,
    )
    return SafeHeaders(app)


# ---- Serving it ----


def serve_inspector(
    logs: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    domain: DomainKnowledge | None = None,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serves the inspector in this thread until SIGINT or SIGTERM.

    Args:
        logs: A folder of logs, or the folder of one run.
        host: The address to serve. Anything but this machine's own shows the logs to whoever
            reaches it.
        port: The port; 0 takes a free one.
        domain: What is known of the runs' domain, for the causes of failures.
        on_start: Called with the address, once it can be opened.

    Raises:
        ConfigurationError: There is no such folder.
        OSError: The address cannot be had.
    """
    cache = RunCache(logs, domain=domain)
    listening = listen(host, port)
    if on_start is not None:
        on_start(url_of(listening))
    app = create_app(cache, host=host)
    serve_until_stopped(app, listening, has_lifespan=True, closing=cache.close)


class Inspector:
    """The inspector, served from a background thread, as a context manager.

    Example:
        `with Inspector(Path("logs")) as inspector: print(inspector.url)`

    Args:
        logs: A folder of logs, or the folder of one run.
        host: The address to serve.
        port: The port; 0 takes a free one.
        domain: What is known of the runs' domain, for the causes of failures.

    Raises:
        ConfigurationError: There is no such folder.
    """

    def __init__(
        self,
        logs: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        domain: DomainKnowledge | None = None,
    ) -> None:
        self._cache = RunCache(logs, domain=domain)
        self._address = (host, port)
        self._served: Served | None = None

    @property
    def url(self) -> str:
        """Its address, without a slash at the end; empty while it is not served."""
        return self._served.address if self._served else ""

    def __enter__(self) -> Self:
        host, port = self._address
        app, closing = create_app(self._cache, host=host), self._cache.close
        self._served = Served(app, host, port, has_lifespan=True, closing=closing)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        served, self._served = self._served, None
        if served is not None:
            served.stop()
