"""The web app: addresses, live events, errors."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from coag.errors import CoagError, TraceError, UnknownNameError
from coag.inspector import tracks
from coag.inspector.drawing import belief_svgs, cost_svg, course_svg, goals_svg, why_svg
from coag.inspector.pages import MEDIA_TYPES, Place, Target, WebAddresses, static_text
from coag.inspector.tracks import NOT_AWARE, AwarenessTrack, Placed, is_aware
from coag.inspector.views import CycleRow, Findings, Progress, RunCard, RunState
from coag.serving import SafeHeaders, allowed_hosts
from coag.tracing import RecordKind, TraceIndex

from .desk import Desk

# ---- What is answered where something cannot be shown ----


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


# ---- Where the agent stood, over a run and in one cycle of it ----


_AHEAD = 1 << 24
"""Bytes of a trace in which its first snapshot is looked for."""
_PIECE = 1 << 20
_ADDRESSES = WebAddresses()
_LOCK = Lock()
_AWARE: WeakKeyDictionary[TraceIndex, tuple[int, bool]] = WeakKeyDictionary()
"""Whether a trace keeps a state of awareness, as found when it had so many lines."""
_TRACKS: WeakKeyDictionary[TraceIndex, AwarenessTrack] = WeakKeyDictionary()


def told_card(desk: Desk, key: str) -> RunCard:
    """The card of a run that says whether it keeps a state of awareness.

    Raises:
        UnknownNameError: There is no such run.
        TraceError: Its `run.json` cannot be read.
    """
    return replace(desk.card(key), aware=_is_aware(desk.open(key).index))


def _is_aware(index: TraceIndex) -> bool:
    """As far as it was scanned, up to the first snapshot at least; pages tell of faults."""
    try:
        while not index.count(RecordKind.SNAPSHOT) and index.scanned < _AHEAD:
            if not index.extend(_PIECE):
                break
        known = _AWARE.get(index)
        if known is None or (not known[1] and known[0] != index.lines):
            known = _AWARE[index] = (index.lines, is_aware(index))
    except TraceError:
        return False
    return known[1]


def _track_of(desk: Desk, key: str) -> AwarenessTrack:
    index = desk.scanned(key)
    with _LOCK:
        track = _TRACKS.get(index)
        if track is None or track.lines != index.lines:
            track = _TRACKS[index] = AwarenessTrack(index)
    return track


def awareness_page(desk: Desk, key: str, cycle: int | None = None) -> str:
    """The page about where the agent stood as a cycle began.

    Args:
        desk: The runs.
        key: Names the run.
        cycle: The cycle; None for the last one.

    Raises:
        HTTPException: The run keeps no state of awareness.
        UnknownNameError: There is no such run, or no state of that cycle.
        TraceError: The trace cannot be read.
    """
    track = _track_of(desk, key)
    if not track.aware:
        raise HTTPException(404, NOT_AWARE)
    view = track.view(cycle)

    def leads(number: int) -> str:
        return _ADDRESSES.to(Place(target=Target.STOOD, run=key, number=number))

    courses = enumerate(view.courses, 1)
    return desk.pages.awareness_page(
        replace(desk.card(key), aware=True),
        view,
        [goals_svg(stand, prefix=f"goals{n}") for n, stand in enumerate(view.stands, 1)],
        [course_svg(one, view.cycle, prefix=f"course{n}", leads=leads) for n, one in courses],
        chosen=cycle is not None,
        beside=track.beside(view.cycle),
    )


# ---- What the application shows, one function an address ----


_DIGITS = 16
_LISTED = ("query", "kind", "model", "outcome", "agent", "sort")


def desk_of(request: Request) -> Desk:
    """The desk whose runs are shown."""
    desk: Desk = request.app.state.desk
    return desk


def _key(request: Request) -> str:
    return str(request.path_params["run"])


def _place(request: Request) -> int:
    """The number in the address's path.

    Raises:
        HTTPException: It is none that a cycle or record could have.
    """
    text = str(request.path_params["number"])
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
        raise HTTPException(404)
    return int(text)


def _number(request: Request, name: str, default: int) -> int:
    """A whole number in the address's query.

    Raises:
        HTTPException: It is none.
    """
    text = request.query_params.get(name, "")
    if not text:
        return default
    try:
        return min(max(int(text), 0), 2**31)
    except ValueError as error:
        told = f"{name!r} in the address takes a whole number, not {text[:40]!r}."
        raise HTTPException(400, told) from error


def _asked(request: Request) -> dict[str, str]:
    """What is asked of a list of runs."""
    return {name: request.query_params.get(name, "") for name in _LISTED}


async def _made(request: Request, make: Callable[[Desk], str]) -> Response:
    """A page made in a thread, so that a slow one keeps nobody waiting."""
    desk = desk_of(request)
    return HTMLResponse(await desk.soon(lambda: make(desk)))


async def runs(request: Request) -> Response:
    """The runs there are."""
    asked, page = _asked(request), _number(request, "page", 1)
    return await _made(request, lambda desk: desk.pages.runs_page(desk.listing(asked, page)))


async def run(request: Request) -> Response:
    """One run, with a page of its timeline."""
    key, first = _key(request), _number(request, "from", 0)

    def make(desk: Desk) -> str:
        view, found = desk.run_view(key, first)
        drawn = cost_svg(view.strip or view.rows, prefix="cost")
        view = replace(view, card=told_card(desk, key))
        return desk.pages.run_page(view, findings=found, cost=drawn)

    return await _made(request, make)


async def cycle(request: Request) -> Response:
    """One cycle."""
    key, number = _key(request), _place(request)

    def make(desk: Desk) -> str:
        return desk.pages.cycle_page(desk.cycle_view(key, number), told_card(desk, key))

    return await _made(request, make)


async def why(request: Request) -> Response:
    """What the decision of a cycle rested on."""
    key, number = _key(request), _place(request)

    def make(desk: Desk) -> str:
        run = desk.open(key)
        run.position_of(number)
        graph = tracks.why_graph(run.folder, number, index=run.index)
        drawn = why_svg(graph, prefix="why", leads=lambda spot: desk.address(key, number, spot))
        found = tracks.Placed(desk.findings(key)).found(number)
        beside = run.beside(number)
        return desk.pages.why_page(
            told_card(desk, key), graph, drawn, beside=beside, findings=found
        )

    return await _made(request, make)


async def beliefs(request: Request) -> Response:
    """What the agent believed beside what was so."""
    key = _key(request)

    def make(desk: Desk) -> str:
        card = told_card(desk, key)
        found = tracks.belief(desk.scanned(key), card.info.agent if card.info else "")
        drawn = belief_svgs(found, prefix="b")
        marked = desk.findings(key).found
        return desk.pages.belief_page(card, found, drawn, findings=marked)

    return await _made(request, make)


async def awareness(request: Request) -> Response:
    """Where the agent stood last; the address may ask for the page of a cycle."""
    key, number = _key(request), _number(request, "cycle", 0)
    if number:
        place = Place(target=Target.STOOD, run=key, number=number)
        return RedirectResponse(WebAddresses().to(place), 303)
    return await _made(request, lambda desk: awareness_page(desk, key))


async def stood(request: Request) -> Response:
    """Where the agent stood as a cycle began."""
    key, number = _key(request), _place(request)
    return await _made(request, lambda desk: awareness_page(desk, key, number))


async def memory(request: Request) -> Response:
    """Long-term memory as the run used it."""
    key, page = _key(request), _number(request, "page", 1)

    def make(desk: Desk) -> str:
        found, told = desk.findings(key).found, tracks.memory_page(desk.scanned(key), page)
        return desk.pages.memory_page(told_card(desk, key), told, found)

    return await _made(request, make)


async def procedures(request: Request) -> Response:
    """The procedures with their versions."""
    key = _key(request)

    def make(desk: Desk) -> str:
        histories = tracks.procedures(desk.scanned(key))
        return desk.pages.procedures_page(told_card(desk, key), histories)

    return await _made(request, make)


async def findings(request: Request) -> Response:
    """What `verify` and `diagnose` find."""
    key = _key(request)

    def make(desk: Desk) -> str:
        return desk.pages.findings_page(told_card(desk, key), desk.findings(key))

    return await _made(request, make)


async def compare(request: Request) -> Response:
    """Two runs side by side, or the choice of the second."""
    left, right = (request.query_params.get(name, "") for name in "ab")
    first, page = _number(request, "from", -1), _number(request, "page", 1)
    asked = _asked(request)

    def make(desk: Desk) -> str:
        if not right:
            return desk.pages.choose_page(desk.card(left), desk.listing(asked, page, left))
        return desk.pages.compare_page(desk.comparison(left, right, first))

    return await _made(request, make)


async def record(request: Request) -> Response:
    """One record, whole; as nothing but text where the address asks for it with `plain`."""
    key, number = _key(request), _place(request)
    desk = desk_of(request)
    if "plain" in request.query_params:
        return PlainTextResponse((await desk.soon(lambda: desk.record(key, number))).text)
    return await _made(
        request, lambda desk: desk.pages.record_page(told_card(desk, key), desk.record(key, number))
    )


async def static(request: Request) -> Response:
    """A file that comes with the pages."""
    name = str(request.path_params["name"])
    if name not in MEDIA_TYPES:
        raise UnknownNameError("file", name, list(MEDIA_TYPES))
    return Response(
        static_text(name), media_type=MEDIA_TYPES[name], headers={"Cache-Control": "no-cache"}
    )


# ---- What all that follow the runs of a desk have in common ----


MOST = 64
"""Streams of events at a time."""
_KEPT = 256
"""Pieces of HTML that are kept for the next one that asks."""


class Seat:
    """The place of one stream; it is free again when it is given back or forgotten."""

    __slots__ = ("__weakref__",)


class Shared:
    """Pieces that are made once for all followers of a run, and the places there are for them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pieces: OrderedDict[Hashable, str] = OrderedDict()
        self._taken: WeakSet[Seat] = WeakSet()

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """The piece of a key, made where nobody has asked for it of late."""
        with self._lock:
            found = self._pieces.get(key)
            if found is None:
                found = self._pieces[key] = make()
                while len(self._pieces) > _KEPT:
                    self._pieces.popitem(last=False)
            return found

    def seat(self) -> Seat | None:
        """A place for a stream; None where all are taken."""
        if len(self._taken) >= MOST:
            return None
        seat = Seat()
        self._taken.add(seat)
        return seat

    def leave(self, seat: Seat) -> None:
        """Gives a place back."""
        self._taken.discard(seat)


_OF: WeakKeyDictionary[Desk, Shared] = WeakKeyDictionary()


def shared_of(desk: Desk) -> Shared:
    """What the followers of a desk's runs share."""
    return _OF.setdefault(desk, Shared())


# ---- Following a run while it is recorded, by server-sent events ----


_LOOK = 0.1
"""Seconds between two looks at a trace."""
_AT_ONCE = 50
"""Rows that one event brings at most."""
_STRIP = 400
"""Cycles up to which the plot of what a run used is drawn anew."""
_MARKED = 400
"""Cycles whose findings a page is told of, at most."""
_PLOT = 20
"""Looks between two plots: two seconds."""
_PATIENCE = 5.0
"""Seconds for which a run may be unreadable before a page is told: a file may be half written."""
_LATER = 10
"""Seconds after which one for whom there was no place may ask again."""


@dataclass(slots=True)
class _Followed:
    """What a page shows of a run, and what has come since."""

    desk: Desk
    key: str
    rows: int
    """How many rows the page knows."""
    size: int = -1
    """Bytes of the trace when it was last looked at."""
    last: CycleRow | None = None
    """The last row as it was sent."""
    findings: Findings | None = None
    state: RunState | None = None
    looks: int = 0
    changed: bool = field(default=False)
    """True if rows were sent since the last plot."""

    def news(self) -> str:
        """HTML of all that is new; empty for nothing."""
        run = self.desk.open(self.key)
        card = self.desk.card(self.key)
        pieces: list[str] = []
        size = run.index.size
        if size != self.size or card.state is not self.state:
            self.size, self.state = size, card.state
            pieces += self._rows(size)
            self.changed = self.changed or bool(pieces)
            known = self.last.number if self.last else 0
            counted = replace(card, cycles=max(card.cycles or 0, known))
            told = ("head", self.key, size, card.state, counted.cycles)
            pieces.append(self._once(told, lambda: self.desk.fragments.head(counted)))
        self.looks += 1
        if self.changed and (self.looks % _PLOT == 0 or card.state is RunState.ENDED):
            self.changed = False
            pieces += self._plot()
        return "".join([*pieces, *self._findings(card.state)])

    def _once(self, told: Hashable, make: Callable[[], str]) -> str:
        """A piece, made once for all that follow the run."""
        return shared_of(self.desk).once(told, make)

    def _rows(self, size: int) -> list[str]:
        """The rows that are new, and the last one where it has grown."""
        run, card = self.desk.open(self.key), self.desk.card(self.key)
        first = max(self.rows - 1, 0)
        found = run.rows(first, _AT_ONCE)
        self.rows = first + len(found)
        if len(found) == _AT_ONCE:
            self.size = -1
        new = [(at, row) for at, row in enumerate(found, first) if row != self.last]
        self.last = found[-1] if found else None
        fragments = self.desk.fragments
        if self.findings:
            placed = Placed(self.findings)
            return [fragments.row(card, placed.row(row)) for _, row in new]
        return [
            self._once(("row", self.key, size, card.state, at), partial(fragments.row, card, row))
            for at, row in new
        ]

    def _plot(self) -> list[str]:
        if self.rows > _STRIP:
            return []
        return [self._once(("plot", self.key, self.size, self.state, self.rows), self._drawn)]

    def _drawn(self) -> str:
        rows = self.desk.open(self.key).rows(0, self.rows)
        return self.desk.fragments.cost(self.desk.card(self.key), cost_svg(rows, prefix="cost"))

    def _findings(self, state: RunState) -> list[str]:
        """A running one is not checked over and over: it is when it has ended."""
        known = self.findings is not None and self.findings.progress is Progress.DONE
        if known or state is not RunState.ENDED:
            return []
        found = self.desk.findings(self.key)
        if found == self.findings:
            return []
        before, self.findings = self.findings, found
        return [
            self.desk.fragments.findings(self.desk.card(self.key), found),
            *self._marked(before),
        ]

    def _marked(self, before: Findings | None) -> list[str]:
        """The cycles of which something was found since, where the page shows them."""
        if self.findings is None:
            return []
        earlier = {finding.cycle for finding in before.found} if before else set[int | None]()
        found = {finding.cycle for finding in self.findings.found} - earlier
        if self.findings.progress is Progress.DONE:  # a cycle may have got a second finding
            found |= earlier
        run, card = self.desk.open(self.key), self.desk.card(self.key)
        placed = Placed(self.findings)
        pieces: list[str] = []
        for cycle in sorted(each for each in found if each is not None)[:_MARKED]:
            for row in run.rows_of(cycle):
                pieces.append(self.desk.fragments.row(card, placed.row(row), known=True))
        return pieces

    @property
    def done(self) -> bool:
        """True if nothing more can come."""
        finished = {Progress.DONE, Progress.FAILED}
        checked = self.findings is not None and self.findings.progress in finished
        return self.state is RunState.ENDED and checked


async def events(request: Request) -> Response:
    """What happens in a run from now on: HTML that takes the place of what is on its page."""
    desk, key = desk_of(request), str(request.path_params["run"])
    await desk.soon(lambda: desk.card(key))
    asked = request.query_params.get("rows", "0")
    rows = int(asked) if asked.isdecimal() and len(asked) < 10 else 0
    shared = shared_of(desk)
    seat = shared.seat()
    if seat is None:
        told = f"{MOST} pages follow runs already, and no more are served. Close some of them."
        return PlainTextResponse(told, 503, headers={"Retry-After": str(_LATER)})
    if request.query_params.get("only") == "checks":
        stream = _checks(request, desk, key)
    else:
        stream = _stream(request, _Followed(desk, key, rows))
    return EventSourceResponse(_seated(stream, shared, seat), ping=15)


async def _seated(
    stream: AsyncGenerator[ServerSentEvent], shared: Shared, seat: Seat
) -> AsyncGenerator[ServerSentEvent]:
    """The stream, which gives its place back at its end."""
    try:
        async with aclosing(stream):
            async for event in stream:
                yield event
    finally:
        shared.leave(seat)


class _Patience:
    """How long a run that was readable may be none."""

    def __init__(self) -> None:
        self._since: float | None = None

    def renew(self) -> None:
        """It was readable."""
        self._since = None

    @property
    def over(self) -> bool:
        """True once it was unreadable for long, looked at again and again."""
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        return now - self._since >= _PATIENCE


async def _stream(request: Request, followed: _Followed) -> AsyncGenerator[ServerSentEvent]:
    """Ends when the run has, when the reader leaves, and when the application ends."""
    desk, told, patience = followed.desk, False, _Patience()
    while not desk.closing and not await request.is_disconnected():
        try:
            news = await desk.soon(followed.news)
        except CoagError as error:
            if patience.over:
                yield ServerSentEvent(str(error), event="trouble")
                return
            await asyncio.sleep(_LOOK)
            continue
        patience.renew()
        if news:
            yield ServerSentEvent(news, event="fragment")
        if followed.state is RunState.ENDED and not followed.done and not told:
            told = True
            yield ServerSentEvent("", event="checking")
        if followed.done:
            yield ServerSentEvent("", event="end")
            return
        await asyncio.sleep(_LOOK)


async def _checks(request: Request, desk: Desk, key: str) -> AsyncGenerator[ServerSentEvent]:
    """How far the checks of a run are, for the page of its findings.

    It is to be loaded anew when they found something else than was known.
    """
    before = shown = None
    patience = _Patience()
    while not desk.closing and not await request.is_disconnected():
        try:
            found = await desk.soon(lambda: desk.findings(key))
            card = await desk.soon(lambda: desk.card(key))
        except CoagError as error:
            if patience.over:
                yield ServerSentEvent(str(error), event="trouble")
                return
            await asyncio.sleep(_LOOK)
            continue
        patience.renew()
        before = before or found
        if found.progress in (Progress.DONE, Progress.FAILED):
            if found.found != before.found or not before.found:
                yield ServerSentEvent("", event="reload")
            else:
                news = desk.fragments.findings(card, found)
                yield ServerSentEvent(news, event="fragment")
                yield ServerSentEvent("", event="end")
            return
        if found != shown:
            shown = found
            yield ServerSentEvent(desk.fragments.findings(card, found), event="fragment")
        await asyncio.sleep(_LOOK)


# ---- The ASGI application of the inspector ----


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
            Route("/", runs),
            Route("/compare", compare),
            Route("/static/{name}", static),
            Route("/runs/{run}", run),
            Route("/runs/{run}/cycles/{number}", cycle),
            Route("/runs/{run}/cycles/{number}/why", why),
            Route("/runs/{run}/beliefs", beliefs),
            Route("/runs/{run}/awareness", awareness),
            Route("/runs/{run}/cycles/{number}/awareness", stood),
            Route("/runs/{run}/memory", memory),
            Route("/runs/{run}/procedures", procedures),
            Route("/runs/{run}/findings", findings),
            Route("/runs/{run}/records/{number}", record),
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
