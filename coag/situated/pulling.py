"""Reading the tools of one server, and delivering what is new to those who perceive them.

A hint only marks a tool. One task for each server reads marked tools, and those not read for a
while: properties first, then the signals after the cursor. So a lost hint costs time only, and a
server that hangs delays no other one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import Field

from coag.schema import Clock, Percept, PerceptKind, Value

from .activities import OnSignal
from .catalogue import safe_text
from .connection import ToolConnection, ToolConnectionError, ask
from .percepts import (
    as_new,
    cut_reading,
    epoch_of,
    gap_percept,
    number_of,
    property_percept,
    signal_percept,
)
from .records import (
    DELEGATED,
    FLOOD,
    Cursor,
    PropertyReading,
    SignalPage,
    SignalRecord,
    ToolDescription,
    is_flood,
)
from .store import ActivityStore
from .store_inboxes import Delivery

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


@dataclass(slots=True, eq=False)
class WatchedTool:
    """A tool in focus: who perceives it, what was read of it, and when it is read again."""

    id: str
    focus: dict[str, frozenset[str] | None] = field(
        default_factory=dict[str, frozenset[str] | None]
    )
    """This worker's activities that perceive it, and which of its signals: None for all."""
    reading: PropertyReading | None = None
    """The newest one that was delivered."""
    delivered: asyncio.Event = field(default_factory=asyncio.Event)
    unperceived: dict[str, int] = field(default_factory=dict[str, int])
    """At most so many of its signals wait in the inbox of each activity."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is read."""
    cursor: str | None = None
    """How far its signals were read here."""
    marked: bool = False
    """Whether it is to be read soon."""
    next_reading: float = 0.0
    pause: float = 0.0
    failures: int = 0
    failing_since: float | None = None
    reported: bool = False
    """Whether activities got the percept that it cannot be reached."""
    told_changed: bool = False
    """Whether they got the one that it is in quarantine."""

    async def at_least(self, epoch: str, rev: int, seconds: float) -> None:
        """Waits until a reading at least as new was delivered, but not longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not as_new(self.reading, epoch, rev):
                    self.delivered.clear()
                    await self.delivered.wait()


# ---- What was read, in the inboxes of those who perceive the tool ----


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxWriter:
    """Delivers readings, gaps and signals, in this order, with the cursor in one transaction."""

    store: ActivityStore
    clock: Clock
    describe: Callable[[str], ToolDescription | None]
    """Gives what a tool declares."""
    arrived: Callable[[Sequence[str]], None]
    """Called with the activities that something was delivered to."""
    limit: int
    """Signals of one tool that wait in an inbox at most; see `unperceived_limit`."""
    unbounded: AbstractSet[str]
    """Inboxes without that limit."""

    def deliver(
        self,
        tool: WatchedTool,
        reading: PropertyReading,
        page: SignalPage,
        *,
        after: str,
        again: bool = False,
    ) -> bool | None:
        """Delivers a reading where it is new or wanted again, then gap and signals, or nothing.

        They go to all activities that perceive the tool, whichever worker pursues them. The page
        begins behind the cursor `after`; the properties are at least as new as its signals.

        Returns:
            Whether anything was delivered; None if another worker has read on since.
        """
        is_known = as_new(tool.reading, reading.epoch, reading.rev)
        if is_known and not (page.events or page.truncated or again):
            tool.delivered.set()
            return False
        with self.store.together():
            if not self.store.advance(tool.id, after, page.cursor):
                return None
            deliveries = self._deliveries(tool, reading, page, after=after, again=again)
            self.store.deliver(tool.id, None, deliveries)
        if not is_known:
            tool.reading = cut_reading(reading)[0]
        tool.delivered.set()
        if deliveries:
            self.arrived(list(dict.fromkeys(one.activity for one in deliveries)))
        return bool(deliveries)

    def _deliveries(
        self,
        tool: WatchedTool,
        reading: PropertyReading,
        page: SignalPage,
        *,
        after: str,
        again: bool,
    ) -> list[Delivery]:
        now, known = self.clock.now(), self.describe(tool.id)
        first: list[Delivery] = []
        if again or not as_new(tool.reading, reading.epoch, reading.rev):
            stamp = self._next_number(f"{tool.id}/{reading.epoch}/again-") if again else None
            shown, left = cut_reading(reading)
            first.append(Delivery("", property_percept(shown, left, now, stamp), replaces=True))
        if page.truncated:
            first.append(Delivery("", self._log_gap(tool.id, reading.epoch, page, after)))
        events = sorted(page.events, key=lambda one: number_of(one.cursor))
        signals = [(one.name, signal_percept(tool.id, one, known, now)) for one in events]
        deliveries: list[Delivery] = []
        for activity, wanted in self.store.perceivers(tool.id).items() if first or signals else ():
            chosen = [one for name, one in signals if wanted is None or name in wanted]
            deliveries += [one._replace(activity=activity) for one in first]
            deliveries += [Delivery(activity, one) for one in self._within(activity, tool, chosen)]
        return deliveries

    def tell(self, tool: WatchedTool, reason: str, text: str) -> None:
        """Delivers a gap to all activities of this worker that perceive a tool."""
        shown = safe_text(text, 500)
        place = f"{reason}-{self._next_number(f'{tool.id}/{reason}-')}"
        percept = gap_percept(tool.id, place, self.clock.now(), reason, shown)
        activities = list(tool.focus)
        self.store.deliver(tool.id, None, [Delivery(one, percept) for one in activities])
        self.arrived(activities)

    def _within(self, activity: str, tool: WatchedTool, signals: list[Percept]) -> list[Percept]:
        """The signals that an inbox has room for; a gap for the others, once."""
        if activity in self.unbounded:
            return signals
        unperceived = tool.unperceived
        unperceived[activity] = unperceived.get(activity, 0) + len(signals)
        if unperceived[activity] <= self.limit:
            return signals
        entries = self.store.inbox(activity)
        inbox = [one.percept for one in entries if one.percept.source == tool.id]
        count = sum(one.kind is PerceptKind.SIGNAL for one in inbox)
        room = max(0, self.limit - count)
        kept, left = signals[:room], signals[room:]
        unperceived[activity] = count + len(kept)
        if not left:
            return kept
        wait = self.store.wait_of(activity)
        waited = [one for one in left if wait and _meets(one, tool.id, wait.condition)]
        flooded = any(map(is_flood, inbox))
        return [*kept, *([] if flooded else [self._flood_gap(tool.id, left[0])]), *waited[:1]]

    def _log_gap(self, tool: str, epoch: str, page: SignalPage, after: str) -> Percept:
        restarted = epoch_of(after) != epoch_of(page.cursor)
        number = number_of(page.events[0].cursor if page.events else page.cursor)
        if restarted:
            text = f"{tool} was restarted and may have lost its state; signals may be missing."
        else:
            text = f"The log of {tool} no longer keeps all signals that came; some are missing."
        return gap_percept(
            tool,
            f"{epoch}/gap-{number}",
            self.clock.now(),
            "restarted" if restarted else "truncated",
            f"{text} Its properties are as they were read just now.",
        )

    def _flood_gap(self, tool: str, first: Percept) -> Percept:
        return gap_percept(
            tool,
            f"{FLOOD}-{self._next_number(f'{tool}/{FLOOD}-')}",
            self.clock.now(),
            FLOOD,
            f"{tool} has emitted more than {self.limit} signals that were not perceived yet; "
            "those that came then were left out. Its properties say how things stand.",
            first=first.id,
        )

    def _next_number(self, stream: str) -> int:
        """A number for a percept whose id begins so; it grows, also where the clock goes back."""
        now = int(self.clock.now().timestamp() * 1000)
        return max(self.store.highest(stream) + 1, now)


def _meets(percept: Percept, tool: str, condition: object) -> bool:
    """Whether a signal is what an activity waits for."""
    if not isinstance(condition, OnSignal) or condition.tool != tool or percept.is_error:
        return False
    return condition.met_by(SignalRecord.model_validate(percept.data))


# ---- Reading ----


class ServerPuller:
    """Reads the tools of one server that are in focus, and has what it read delivered.

    Pauses are measured on the event loop, not on a clock that jumps.
    """

    def __init__(
        self,
        connection: ToolConnection,
        inboxes: InboxWriter,
        settings: ToolPerceptionSettings,
    ) -> None:
        self.connection = connection
        self.tools: dict[str, WatchedTool] = {}
        """Those of this server that somebody perceives."""
        self.focusing = asyncio.Lock()
        """Held while a tool of this server comes into focus."""
        self._store = inboxes.store
        self._inboxes = inboxes
        self._settings = settings
        self._wake = asyncio.Event()
        self._subscribed = True
        """False if its server does not know of all tools in focus."""

    # ---- What is to be read ----

    def mark(self, tool: str) -> None:
        """Has a tool read soon, if it is in focus; called for a hint, it only notes that."""
        if (watched := self.tools.get(tool)) is not None:
            watched.marked = True
            self.expect(watched)

    def mark_all(self) -> None:
        """Has all tools in focus read soon."""
        for tool in self.tools:
            self.mark(tool)

    def expect(self, tool: WatchedTool) -> None:
        """Has a tool read often again, also without hints, e.g. because something waits for it."""
        settings = self._settings
        pause = settings.retry_seconds if tool.failures else settings.reconcile_seconds
        soon = asyncio.get_running_loop().time() + pause
        tool.pause = settings.reconcile_seconds
        tool.next_reading = min(tool.next_reading, soon)
        self._wake.set()

    def adopt(self, tool: WatchedTool) -> None:
        """Begins to read a tool; its server gets the new list soon."""
        if tool.id not in self.tools:
            self.tools[tool.id] = tool
            self._subscribed = False
        self.mark(tool.id)

    async def subscribe(self) -> None:
        """Says which tools are in focus; `ToolConnectionError` where the server does not answer."""
        tools = frozenset(self.tools)
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
                tool.marked = False
                await self._try(tool)
            await self._rest()

    async def _rest(self) -> None:
        """Waits until something is marked, or due."""
        if self._due():
            await asyncio.sleep(0)
            return
        next_ones = [tool.next_reading for tool in self.tools.values()]
        now = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(next_ones) - now) if next_ones else None):
                await self._wake.wait()

    def _due(self) -> list[WatchedTool]:
        """Tools that are due, and marked ones whose last reading did not fail."""
        now = asyncio.get_running_loop().time()
        return [
            tool
            for _, tool in sorted(self.tools.items())
            if tool.next_reading <= now or (tool.marked and not tool.failures)
        ]

    async def _try(self, tool: WatchedTool) -> None:
        """Reads a tool; one that cannot be read is tried again later."""
        settings, now = self._settings, asyncio.get_running_loop().time
        try:
            new = await self.pull(tool)
        except ToolConnectionError as error:
            tool.failing_since = tool.failing_since or now()
            pause = settings.retry_seconds * 2 ** min(tool.failures, 20)
            tool.failures += 1
            tool.next_reading = now() + min(pause, settings.reconcile_limit)
            if not tool.reported and now() - tool.failing_since >= settings.unreachable_after:
                text = f"{tool.id} cannot be reached; what is known of it may be out of date."
                self._inboxes.tell(tool, "unreachable", f"{text} {error}")
                tool.reported = True
            return
        longer = min(2 * tool.pause, settings.reconcile_limit)
        tool.pause = settings.reconcile_seconds if new or not tool.pause else longer
        tool.next_reading = now() + tool.pause

    async def pull(self, tool: WatchedTool) -> bool:
        """Reads a tool once and delivers what is new; whether anything was.

        Where nobody has read its signals, they count from now on; those of a delegated goal from
        the first one, which may be there.

        Raises:
            ToolConnectionError: It cannot be read; what was delivered before stays.
        """
        deliver = self._inboxes.deliver
        async with tool.lock:
            reading = await self._read(tool.id)
            cursor = self._store.cursor(tool.id)
            if cursor is None:
                known = self._inboxes.describe(tool.id)
                from_start = known is not None and known.category == DELEGATED
                cursor = str(Cursor(reading.epoch, 0)) if from_start else reading.cursor
                if not self._store.advance(tool.id, None, cursor):
                    return self._again(tool)
            if tool.cursor not in (None, cursor):  # another worker has read on
                self._inboxes.arrived(self._store.arrivals())
            page = SignalPage(cursor=cursor)
            new = deliver(tool, reading, page, after=cursor, again=tool.reported)
            tool.failures, tool.failing_since, tool.reported = 0, None, False
            tool.cursor = cursor
            if cursor == reading.cursor:
                return bool(new)
            for _ in range(_PAGES):
                page = await self._signals(tool.id, cursor)
                if page.events or page.truncated:
                    reading = await self._as_new_as(tool.id, reading, page)
                    delivered = deliver(tool, reading, page, after=cursor)
                    if delivered is None:
                        return self._again(tool)
                    new = delivered or new
                    tool.cursor = page.cursor
                if page.cursor == cursor or _reaches(page.cursor, reading.cursor):
                    return bool(new)
                cursor = page.cursor
            return self._again(tool)

    def _again(self, tool: WatchedTool) -> bool:
        """Has a tool read again: there is more, or another worker has read it meanwhile."""
        tool.marked = True
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
