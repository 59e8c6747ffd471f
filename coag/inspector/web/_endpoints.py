"""What the application shows, one function an address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from coag.errors import UnknownNameError
from coag.inspector import tracks
from coag.inspector.drawing import belief_svgs, cost_svg, why_svg
from coag.inspector.pages import MEDIA_TYPES, Place, Target, WebAddresses, static_text

from ._awareness import awareness_page, told_card
from ._desk import Desk

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
