"""The inspector as a local web application.

It reads logs and changes nothing. On a loopback address it answers only requests that name it, and
what it shows can load nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
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

from .activities import NO_ACTIVITIES
from .awareness import NOT_AWARE
from .beliefs import read_beliefs
from .fading import NO_DYNAMICS
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
}
_CANNOT = "This cannot be shown"
_WRONG_METHOD = "It reads logs and changes nothing, so it takes no other requests than to show."
_DIGITS = 16
_FILTERS = ("query", "kind", "model", "outcome", "agent", "sort")


class _Site:
    """The pages of the application: methods that make one from the parts of its address."""

    def __init__(self, cache: RunCache) -> None:
        self.cache = cache
        self.pages = Pages()

    def runs(self, page: int, **filters: str) -> str:
        runs = self.cache.library.listing(Filters(page=page), **filters)
        runs = replace(runs, activities=self.cache.has_activities, memory=self.cache.memory.there)
        return self.pages.render("runs", runs=runs)

    def activities(self, page: int) -> str:
        """What a situated agent pursues, and what it waits for."""
        if not self.cache.has_activities:
            raise HTTPException(404, NO_ACTIVITIES)
        return self.pages.render("activities", view=self.cache.activities(page))

    def dynamics(self) -> str:
        """What faded of a memory and why, and how the personality changed."""
        if not self.cache.memory.there:
            raise HTTPException(404, NO_DYNAMICS)
        return self.pages.render("dynamics", view=self.cache.memory.view())

    def run(self, key: str, first: int) -> str:
        """One run, with a page of its timeline."""
        findings = self.cache.findings(key)
        view = self.cache.library.page(key, first)
        view = replace(
            view,
            card=self.cache.card(key),
            rows=tuple(map(findings.placed_in, view.rows)),
            strip=tuple(map(findings.placed_in, view.strip)),
        )
        return self.pages.render("run", card=view.card, view=view, findings=findings)

    def cycle(self, key: str, number: int) -> str:
        view = self.cache.findings(key).placed_in_cycle(self.cache.open(key).cycle(number))
        return self._of_run("cycle", key, view=view)

    def why(self, key: str, number: int) -> str:
        """What the decision of a cycle was based on."""
        run = self.cache.open(key)
        beside = run.beside(number)
        graph = why_graph(run.folder, number, run.index)
        findings = self.cache.findings(key).of_cycle(number)
        return self._of_run("why", key, graph=graph, beside=beside, findings=findings)

    def beliefs(self, key: str) -> str:
        """What the agent believed beside what was true."""
        run = self.cache.scanned(key)
        belief = read_beliefs(run.index, run.info.agent)
        return self._of_run("beliefs", key, belief=belief, findings=self.cache.findings(key).found)

    def stood(self, key: str, number: int | None = None) -> str:
        """The agent's awareness as a cycle began, or the last one."""
        reader = self.cache.awareness(key)
        if not reader.aware:
            raise HTTPException(404, NOT_AWARE)
        return self._of_run("awareness", key, view=reader.view(number), chosen=number is not None)

    def memory(self, key: str, page: int) -> str:
        memory = read_memory(self.cache.scanned(key).index, page)
        return self._of_run("memory", key, memory=memory, findings=self.cache.findings(key).found)

    def procedures(self, key: str) -> str:
        histories = read_procedures(self.cache.scanned(key).index)
        return self._of_run("procedures", key, histories=histories)

    def findings(self, key: str) -> str:
        return self._of_run("findings", key, findings=self.cache.findings(key))

    def record(self, key: str, number: int) -> str:
        return self._of_run("record", key, record=self.cache.record(key, number))

    def compared(self, left: str, right: str, first: int) -> str:
        return self.pages.render("compare", comparison=self.cache.comparison(left, right, first))

    def choose(self, left: str, page: int, **filters: str) -> str:
        runs = self.cache.library.listing(Filters(page=page, without=left), **filters)
        return self.pages.render("choose", left=self.cache.library.card(left), runs=runs)

    def _of_run(self, name: str, key: str, **values: Any) -> str:
        return self.pages.render(name, card=self.cache.card(key), **values)

    def route(self, path: str, make: Callable[..., str], *names: str) -> Route:
        """A page that is made from parts of its address; see `_answer`."""
        return Route(path, partial(self._answer, make, names))

    async def _answer(
        self, make: Callable[..., str], names: tuple[str, ...], request: Request
    ) -> Response:
        """A page, made in a thread, so that it keeps nobody waiting.

        A name is `run`, `number`, or that of a number in the query, with `=` and its default.
        """
        values = [_value(request, name) for name in names]
        return HTMLResponse(await self.cache.soon(partial(make, *values)))

    async def listed(self, request: Request) -> Response:
        """The runs there are, those to choose one from, or two of them side by side."""
        filters = {name: request.query_params.get(name, "") for name in (*_FILTERS, "a", "b")}
        left, right = filters.pop("a"), filters.pop("b")
        make = partial(self.runs, **filters)
        if request.url.path != "/":
            make = partial(self.choose, left, **filters)
            if right:
                return await self._answer(
                    partial(self.compared, left, right), ("from=-1",), request
                )
        return await self._answer(make, ("page=1",), request)

    async def awareness(self, request: Request) -> Response:
        """The agent's last awareness; the address may ask for the page of a cycle."""
        key, number = _value(request, "run"), _value(request, "cycle=0")
        if number:
            return RedirectResponse(self.pages.addresses.to("stood", key, number), 303)
        return await self._answer(self.stood, ("run",), request)

    async def recorded(self, request: Request) -> Response:
        """One record; as nothing but text where the address asks for it with `plain`."""
        if "plain" not in request.query_params:
            return await self._answer(self.record, ("run", "number"), request)
        key, number = _value(request, "run"), _value(request, "number")
        record = await self.cache.soon(partial(self.cache.record, key, number))
        return PlainTextResponse(record.text)

    async def failed(self, request: Request, error: Exception) -> Response:
        """What is answered where something cannot be shown."""
        if isinstance(error, HTTPException):
            status = error.status_code
            missing = status == 404 and error.detail == "Not Found"
            text = f"There is no page at {request.url.path!r}." if missing else error.detail
            text = _WRONG_METHOD if status == 405 else text
        elif isinstance(error, CoagError):
            status, text = 404 if isinstance(error, UnknownNameError) else 422, str(error)
        else:
            status, name = 500, type(error).__name__
            text = (
                f"This page could not be made: {name}. What the inspector printed where it was "
                "started says more; the other pages are not affected."
            )
        title = _TITLES.get(status, _CANNOT)
        page = self.pages.render("error", status=status, title=title, text=text)
        return HTMLResponse(page, status)


async def _static(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in MEDIA_TYPES:
        raise UnknownNameError("file", name, list(MEDIA_TYPES))
    headers = {"Cache-Control": "no-cache"}
    return Response(static_text(name), media_type=MEDIA_TYPES[name], headers=headers)


def _value(request: Request, name: str) -> Any:
    """A part of the address: see `_Site._answer`."""
    if name == "run":
        return str(request.path_params[name])
    if name == "number":
        text = str(request.path_params[name])
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


def create_app(cache: RunCache, *, host: str = "127.0.0.1") -> ASGIApp:
    """The application that shows runs."""
    site = _Site(cache)
    followers = Followers(cache, site.pages)
    page = site.route

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with cache.at_work():
            yield

    app = Starlette(
        routes=[
            Route("/", site.listed),
            Route("/compare", site.listed),
            page("/activities", site.activities, "page=1"),
            Route("/activities/events", followers.activities),
            page("/memory", site.dynamics),
            Route("/static/{name}", _static),
            page("/runs/{run}", site.run, "run", "from=0"),
            page("/runs/{run}/cycles/{number}", site.cycle, "run", "number"),
            page("/runs/{run}/cycles/{number}/why", site.why, "run", "number"),
            page("/runs/{run}/cycles/{number}/awareness", site.stood, "run", "number"),
            page("/runs/{run}/beliefs", site.beliefs, "run"),
            Route("/runs/{run}/awareness", site.awareness),
            page("/runs/{run}/memory", site.memory, "run", "page=1"),
            page("/runs/{run}/procedures", site.procedures, "run"),
            page("/runs/{run}/findings", site.findings, "run"),
            Route("/runs/{run}/records/{number}", site.recorded),
            Route("/runs/{run}/events", followers.events),
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
    memory: Path | None = None,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serves the inspector in this thread until SIGINT or SIGTERM.

    Args:
        logs: A folder of logs, or the folder of one run.
        host: The address to serve. Anything but this machine's own shows the logs to all who
            reach it.
        port: The port; 0 takes a free one.
        domain: What is known of the runs' domain, for the causes of failures.
        memory: What the agent was given as `memory=`, to show what faded; None for none.
        on_start: Called with the address, once it can be opened.

    Raises:
        ConfigurationError: There is no such folder, or no dynamics in that of the memory.
        OSError: The address cannot be had.
    """
    cache = RunCache(logs, domain=domain, memory=memory)
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
        memory: What the agent was given as `memory=`, to show what faded; None for none.

    Raises:
        ConfigurationError: There is no such folder, or no dynamics in that of the memory.
    """

    def __init__(
        self,
        logs: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        domain: DomainKnowledge | None = None,
        memory: Path | None = None,
    ) -> None:
        self._cache = RunCache(logs, domain=domain, memory=memory)
        self._address = (host, port)
        self._served = ExitStack()
        self.url = ""
        """Its address, without a slash at the end; empty while it is not served."""

    def __enter__(self) -> Self:
        app, closing = create_app(self._cache, host=self._address[0]), self._cache.close
        served = Served(app, *self._address, has_lifespan=True, closing=closing)
        self._served.callback(served.stop)
        self.url = served.address
        return self

    def __exit__(self, *error: object) -> None:
        self.url = ""
        self._served.close()
