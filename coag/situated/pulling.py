"""Reading the tools of one server: properties first, then the signals after the cursor.

A hint only marks a tool. One task for each server reads marked tools, and those not read for a
while. So a lost hint costs time only, and a server that hangs delays no other one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import Field

from coag.schema import Value

from .connection import ToolConnection, ToolConnectionError, ask
from .percepts import InboxWriter, as_new, epoch_of, number_of
from .records import Cursor, PropertyReading, SignalPage
from .store import ActivityStore

_PAGES = 20
"""Pages that are read of one tool before the others have their turn."""
_READINGS = 3
"""How often properties are read again to be as new as the signals."""


class ToolPerceptionSettings(Value):
    """How tools are read."""

    reconcile_seconds: float = Field(default=2.0, gt=0)
    """A tool in focus is read after so long without a hint; the time doubles while nothing is
    new, up to `reconcile_limit`."""
    reconcile_limit: float = Field(default=30.0, gt=0)
    retry_seconds: float = Field(default=0.2, gt=0)
    """The first pause after a failed reading; it doubles, up to `reconcile_limit`."""
    unreachable_after: float = Field(default=10.0, ge=0)
    """Seconds of failed readings after which activities get a percept of it."""
    own_write_seconds: float = Field(default=5.0, ge=0)
    """How long an operation's answer waits for the properties that it has changed."""
    catalogue_seconds: float = Field(default=60.0, ge=0)
    """A catalogue that is older is read again when it is asked for."""
    page: int = Field(default=500, ge=1)
    """Signals that are read and delivered at once."""
    unperceived_limit: int = Field(default=100, ge=1)
    """Signals of one tool that wait in an inbox. Beyond that, only those that the activity waits
    for are delivered; a gap represents the others."""


@dataclass(slots=True)
class _Schedule:
    """When one tool is read."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_reading: float = 0.0
    pause: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    cursor: str | None = None
    """How far its signals were read here."""
    reported: bool = False
    """Whether activities got the percept that it cannot be reached."""


class ServerPuller:
    """Reads the tools of one server that are in focus, and has what it read delivered.

    Pauses are measured on the event loop, not on a clock that jumps.
    """

    def __init__(
        self,
        connection: ToolConnection,
        store: ActivityStore,
        inboxes: InboxWriter,
        settings: ToolPerceptionSettings,
    ) -> None:
        self.connection = connection
        self.focused: set[str] = set()
        """Tools of this server that somebody perceives."""
        self.focusing = asyncio.Lock()
        """Held while a tool of this server comes into focus."""
        self._store = store
        self._inboxes = inboxes
        self._settings = settings
        self._dirty: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._subscribed = True
        """False if its server does not know of all tools in focus."""
        self._schedules: defaultdict[str, _Schedule] = defaultdict(_Schedule)

    # ---- What is to be read ----

    def mark(self, tool: str) -> None:
        """Has a tool read soon; called for a hint, it only notes that."""
        if tool in self.focused:
            self._dirty[tool] = None
            self.expect(tool)

    def mark_all(self) -> None:
        """Has all tools in focus read soon."""
        for tool in self.focused:
            self.mark(tool)

    def expect(self, tool: str) -> None:
        """Has a tool read often again, also without hints, e.g. because something waits for it."""
        state, settings = self._schedules[tool], self._settings
        pause = settings.retry_seconds if state.failures else settings.reconcile_seconds
        soon = asyncio.get_running_loop().time() + pause
        state.pause = settings.reconcile_seconds
        state.next_reading = min(state.next_reading, soon)
        self._wake.set()

    def adopt(self, tool: str) -> None:
        """Begins to read a tool; its server gets the new list soon."""
        if tool not in self.focused:
            self.focused.add(tool)
            self._subscribed = False
        self.mark(tool)

    def leave(self, tool: str) -> None:
        """Ends the reading of a tool that nobody perceives any more."""
        self.focused.discard(tool)
        self._schedules.pop(tool, None)
        self._dirty.pop(tool, None)

    async def subscribe(self) -> None:
        """Says which tools are in focus; `ToolConnectionError` where the server does not answer."""
        tools = frozenset(self.focused)
        await ask(self.connection.name, lambda: self.connection.focus(tools))

    async def run(self) -> None:
        """Reads what is marked or due, until it is cancelled."""
        while True:
            self._wake.clear()
            if not self._subscribed:
                self._subscribed = True
                with suppress(ToolConnectionError):  # sent again when it is connected again
                    await self.subscribe()
            for tool in self._due():
                self._dirty.pop(tool, None)
                await self._try(tool)
            await self._rest()

    async def _rest(self) -> None:
        """Waits until something is marked, or due."""
        if self._due():
            await asyncio.sleep(0)
            return
        next_ones = [self._schedules[tool].next_reading for tool in self.focused]
        now = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(next_ones) - now) if next_ones else None):
                await self._wake.wait()

    def _due(self) -> list[str]:
        """Tools that are due, and marked ones whose last reading did not fail."""
        now = asyncio.get_running_loop().time()
        states = ((tool, self._schedules[tool]) for tool in sorted(self.focused))
        return [
            tool
            for tool, state in states
            if state.next_reading <= now or (tool in self._dirty and not state.failures)
        ]

    async def _try(self, tool: str) -> None:
        """Reads a tool; one that cannot be read is tried again later."""
        state, settings = self._schedules[tool], self._settings
        now = asyncio.get_running_loop().time
        try:
            new = await self.pull(tool)
        except ToolConnectionError as error:
            state.failing_since = state.failing_since or now()
            pause = settings.retry_seconds * 2 ** min(state.failures, 20)
            state.failures += 1
            state.next_reading = now() + min(pause, settings.reconcile_limit)
            if not state.reported and now() - state.failing_since >= settings.unreachable_after:
                text = f"{tool} cannot be reached; what is known of it may be out of date. {error}"
                self._inboxes.tell(tool, "unreachable", text)
                state.reported = True
            return
        longer = min(2 * state.pause, settings.reconcile_limit)
        state.pause = settings.reconcile_seconds if new or not state.pause else longer
        state.next_reading = now() + state.pause

    # ---- Reading ----

    async def pull(self, tool: str) -> bool:
        """Reads a tool once and delivers what is new; whether anything was.

        Where nobody has read its signals, they count from now on; those of a delegated goal from
        the first one, which may be there.

        Raises:
            ToolConnectionError: It cannot be read; what was delivered before stays.
        """
        state, deliver = self._schedules[tool], self._inboxes.deliver
        async with state.lock:
            reading = await self._read(tool)
            cursor = self._store.cursor(tool)
            if cursor is None:
                from_start = self._inboxes.counts_from_start(tool)
                cursor = str(Cursor(reading.epoch, 0)) if from_start else reading.cursor
                if not self._store.advance(tool, None, cursor):
                    return self._again(tool)
            if state.cursor not in (None, cursor):
                self._inboxes.look()  # another worker has read on
            page = SignalPage(cursor=cursor)
            new = deliver(tool, reading, page, after=cursor, again=state.reported)
            state.failures, state.failing_since, state.reported = 0, None, False
            state.cursor = cursor
            if cursor == reading.cursor:
                return bool(new)
            for _ in range(_PAGES):
                page = await self._signals(tool, cursor)
                if page.events or page.truncated:
                    reading = await self._as_new_as(tool, reading, page)
                    delivered = deliver(tool, reading, page, after=cursor)
                    if delivered is None:
                        return self._again(tool)
                    new = delivered or new
                    state.cursor = page.cursor
                if page.cursor == cursor or _reaches(page.cursor, reading.cursor):
                    return bool(new)
                cursor = page.cursor
            return self._again(tool)

    def _again(self, tool: str) -> bool:
        """Has a tool read again: there is more, or another worker has read it meanwhile."""
        self._dirty[tool] = None
        self._wake.set()
        return True

    async def _as_new_as(
        self, tool: str, reading: PropertyReading, page: SignalPage
    ) -> PropertyReading:
        """A reading at least as new as the signals of a page, as far as the server gives one."""
        rev = max((one.rev for one in page.events), default=0)
        epoch = epoch_of(page.cursor) or reading.epoch
        for _ in range(_READINGS):
            if as_new(reading, epoch, rev):
                break
            reading = await self._read(tool)
        return reading

    async def _read(self, tool: str) -> PropertyReading:
        name = self.connection.name
        reading = await ask(name, lambda: self.connection.read_properties(tool))
        return reading if reading.tool == tool else reading.model_copy(update={"tool": tool})

    async def _signals(self, tool: str, after: str) -> SignalPage:
        limit, name = self._settings.page, self.connection.name
        return await ask(name, lambda: self.connection.read_signals(tool, after, limit))


def _reaches(cursor: str, end: str) -> bool:
    """Whether a place in a log is the given one or behind it."""
    if cursor == end or (epoch := epoch_of(cursor)) is None:
        return cursor == end
    return epoch == epoch_of(end) and number_of(cursor) >= number_of(end)
