"""Following a run while it is recorded, by server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from coag.errors import CoagError
from coag.inspector.drawing import cost_svg
from coag.inspector.tracks import Placed
from coag.inspector.views import CycleRow, Findings, Progress, RunState

from ._desk import Desk
from ._endpoints import desk_of
from ._shared import MOST, Seat, Shared, shared_of

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
