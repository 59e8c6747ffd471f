"""Following a run while it is recorded, and activities, by server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from coag.errors import CoagError

from .activities import NO_ACTIVITIES
from .pages import Pages
from .run_cache import RunCache
from .views import CheckProgress, CycleRow, Findings

MOST = 64
"""Streams of events at a time."""
_LOOK = 0.1
"""Seconds between two looks at a trace."""
_REST = 2
"""How many times as long as a look took it waits for the next, at least."""
_SLOWLY = 0.5
"""The same for activities, of which all are read where one has changed."""
_AT_ONCE = 50
"""Rows that one event brings at most."""
_STRIP = 400
"""Cycles up to which the plot of what a run used is drawn again."""
_MARKED = 400
"""Cycles with findings that are sent again, at most."""
_PLOT = 20
"""Looks between two plots: two seconds."""
_PATIENCE = 5.0
"""Seconds for which a run may be unreadable before that is sent: a file may be half written."""
_LATER = 10
"""Seconds after which to ask again where all streams are taken."""
_FINISHED = (CheckProgress.DONE, CheckProgress.FAILED)
_T = TypeVar("_T")


class Followers:
    """The streams that are open."""

    def __init__(self, cache: RunCache, pages: Pages) -> None:
        self._cache = cache
        self._pages = pages
        self._open = 0

    async def events(self, request: Request) -> Response:
        """What happens in a run from now on: HTML that replaces elements of its page."""
        cache, key = self._cache, str(request.path_params["run"])
        await cache.soon(lambda: cache.library.card(key))
        rows = request.query_params.get("rows", "0")
        if request.query_params.get("only") == "checks":
            stream = self._checks(request, key)
        else:
            known = int(rows) if rows.isdecimal() and len(rows) < 10 else 0
            stream = self._run(request, _FollowedRun(cache, self._pages, key, known))
        return self._answer(stream)

    async def activities(self, request: Request) -> Response:
        """A page of the activities again, whenever one has changed."""
        page = request.query_params.get("page", "1")
        number = int(page) if page.isdecimal() and len(page) < 10 else 1
        if not self._cache.has_activities:
            raise HTTPException(404, NO_ACTIVITIES)
        return self._answer(self._activities(request, number))

    def _answer(self, stream: AsyncGenerator[ServerSentEvent]) -> Response:
        if self._open >= MOST:
            text = f"{MOST} pages are followed already, and no more are served. Close some of them."
            return PlainTextResponse(text, 503, headers={"Retry-After": str(_LATER)})
        # What has an encoding is not compressed: starlette before 0.46 would hold events back.
        headers = {"Content-Encoding": "identity"}
        return EventSourceResponse(self._counted(stream), headers=headers, ping=15)

    async def _counted(
        self, stream: AsyncGenerator[ServerSentEvent]
    ) -> AsyncGenerator[ServerSentEvent]:
        self._open += 1
        try:
            async with aclosing(stream):
                async for event in stream:
                    yield event
        except CoagError as error:
            yield ServerSentEvent(str(error), event="trouble")
        finally:
            self._open -= 1

    async def _looks(
        self, request: Request, look: Callable[[], _T], pause: float = _LOOK
    ) -> AsyncGenerator[_T]:
        """What a function gives, again and again; its error only if that lasts.

        Ends when the reader leaves, and when the application ends.
        """
        failed_at: float | None = None
        now = asyncio.get_running_loop().time
        while not self._cache.closing and not await request.is_disconnected():
            began = now()
            try:
                seen = await self._cache.soon(look)
            except CoagError:
                failed_at = began if failed_at is None else failed_at
                if now() - failed_at >= _PATIENCE:
                    raise
                await asyncio.sleep(pause)
            else:
                failed_at, took = None, now() - began
                yield seen
                await asyncio.sleep(max(pause, _REST * took))

    async def _run(self, request: Request, run: _FollowedRun) -> AsyncGenerator[ServerSentEvent]:
        """Ends when the run has ended and is checked."""
        checking = False
        async with aclosing(self._looks(request, run.news)) as looks:
            async for news in looks:
                if run.lost:
                    yield ServerSentEvent("", event="reload")
                    return
                if news:
                    yield ServerSentEvent(news, event="fragment")
                if run.is_open is False and not run.done and not checking:
                    checking = True
                    yield ServerSentEvent("", event="checking")
                if run.done:
                    yield ServerSentEvent("", event="end")
                    return

    async def _activities(self, request: Request, number: int) -> AsyncGenerator[ServerSentEvent]:
        last = None
        looks = self._looks(request, lambda: self._cache.activities(number), _SLOWLY)
        async with aclosing(looks):
            async for view in looks:
                if view != last:
                    last = view
                    news = self._pages.fragment("activities", view=view)
                    yield ServerSentEvent(news, event="fragment")

    async def _checks(self, request: Request, key: str) -> AsyncGenerator[ServerSentEvent]:
        """How far the checks of a run are; its page is loaded again when they found something.

        It was made before they were finished, perhaps right before.
        """
        cache = self._cache
        before = last = None
        async with aclosing(self._looks(request, lambda: cache.findings(key))) as looks:
            async for findings in looks:
                finished = findings.progress in _FINISHED
                other = before is None or findings.found != before.found or not findings.found
                before = before or findings
                if finished and other:
                    yield ServerSentEvent("", event="reload")
                    return
                if findings != last:
                    last, card = findings, cache.library.card(key)
                    news = self._pages.fragment("findings", card=card, findings=findings)
                    yield ServerSentEvent(news, event="fragment")
                if finished:
                    yield ServerSentEvent("", event="end")
                    return


class _FollowedRun:
    """What a page shows of a run, and what is new since; `rows` is how many it shows."""

    def __init__(self, cache: RunCache, pages: Pages, key: str, rows: int) -> None:
        self.is_open: bool | None = None
        """Whether the run has not ended; None before the first look."""
        self.lost = False
        """Whether rows that were shown are gone: the trace was cut, or is another one."""
        self._cache = cache
        self._pages = pages
        self._key = key
        self._rows = rows
        self._size = -1
        """Bytes of the trace at the last look."""
        self._last: CycleRow | None = None
        """The last row as it was sent."""
        self._findings: Findings | None = None
        self._looks = 0
        self._changed = False
        """True if rows were sent since the last plot."""

    @property
    def done(self) -> bool:
        """True if nothing more can come."""
        checked = self._findings is not None and self._findings.progress in _FINISHED
        return self.is_open is False and checked

    def news(self) -> str:
        """HTML of everything that is new; empty for nothing."""
        run = self._cache.open(self._key)
        card = self._cache.library.card(self._key)
        pieces: list[str] = []
        size = run.index.size
        if size != self._size or card.is_open is not self.is_open:
            self._size, self.is_open = size, card.is_open
            pieces += self._new_rows()
            self._changed = self._changed or bool(pieces)
            known = self._last.number if self._last else 0
            pieces.append(
                self._fragment("facts", card=replace(card, cycles=max(card.cycles or 0, known)))
            )
        self._looks += 1
        if self._changed and (self._looks % _PLOT == 0 or not card.is_open):
            self._changed = False
            if tools := run.tools():
                pieces.append(self._fragment("tools", tools=tools))
            if self._rows <= _STRIP:
                pieces.append(self._fragment("cost", rows=run.rows(0, self._rows)))
        return "".join([*pieces, *self._new_findings()])

    def _fragment(self, name: str, **values: object) -> str:
        card = self._cache.library.card(self._key)
        return self._pages.fragment(name, **{"card": card, **values})

    def _new_rows(self) -> list[str]:
        """The rows that are new, and the last one where it has grown."""
        first = max(self._rows - 1, 0)
        rows = self._cache.open(self._key).rows(first, _AT_ONCE)
        self._rows = first + len(rows)
        if len(rows) == _AT_ONCE:
            self._size = -1
        self.lost = not rows and self._last is not None
        new = [row for row in rows if row != self._last]
        self._last = rows[-1] if rows else None
        return [self._row(row) for row in new]

    def _row(self, row: CycleRow, **more: bool) -> str:
        placed = self._findings.placed_in(row) if self._findings else row
        return self._fragment("row", row=placed, **more)

    def _new_findings(self) -> list[str]:
        """A running one is not checked repeatedly: it is when it has ended."""
        before = self._findings
        if self.is_open or (before and before.progress is CheckProgress.DONE):
            return []
        findings = self._cache.findings(self._key)
        if findings == before:
            return []
        self._findings = findings
        cycles = sorted({one.cycle for one in findings.found if one.cycle is not None})
        run = self._cache.open(self._key)
        rows = [row for cycle in cycles[:_MARKED] for row in run.rows_of(cycle)]
        summary = self._fragment("findings", findings=findings)
        return [summary, *(self._row(row, again=True) for row in rows)]
