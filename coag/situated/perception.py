"""What an agent perceives of its tools: one for each agent, over all its servers.

A tool is *in focus* of the activities that perceive it. A tool in focus is read when its server
hints at something new, and every few seconds anyway; what is new goes into the inboxes of those
activities. Ids of tools are unique within an agent: a second server with the same id is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Clock, Reconciliation, SystemClock

from .calls import CallOrigin, calling
from .catalogue import ToolCatalogue, ToolRefusedError
from .connection import ToolConnection, ToolConnectionError, ask
from .percepts import property_percept
from .pulling import InboxWriter, ServerPuller, ToolPerceptionSettings, WatchedTool
from .records import Acknowledgement, PropertyReading
from .store import ActivityStore
from .store_inboxes import Delivery


class ToolPerception(ToolCatalogue):
    """Tools as an agent perceives and uses them (thesis, 5.1.2 and 5.4.3: focus).

    Args:
        connections: The servers; the tools of the first ones win where ids are the same.
        store: Focus, cursors, inboxes and pins. Of workers that share it, each delivers to all.
        arrived: Called with the ids of the activities that something has arrived for.
        clock: Gives the time of percepts.
        failed: Called with the error by which reading has ended: nothing is perceived any more.
        settings: How tools are read.
        unbounded: Inboxes into which all signals go, however many they are.

    Raises:
        ConfigurationError: Two servers have the same name.
    """

    def __init__(
        self,
        connections: Iterable[ToolConnection],
        store: ActivityStore,
        *,
        arrived: Callable[[Sequence[str]], None],
        failed: Callable[[Exception], None] = lambda _: None,
        clock: Clock | None = None,
        settings: ToolPerceptionSettings | None = None,
        unbounded: AbstractSet[str] = frozenset(),
    ) -> None:
        self.settings = settings or ToolPerceptionSettings()
        self._store = store
        connections = tuple(connections)
        servers = {one.name: one for one in connections}
        super().__init__(servers, store, max_age=self.settings.catalogue_seconds)
        perceived = store.focuses(set() if store.shared else None)
        self._watched = {tool: WatchedTool(tool, focus) for tool, focus in perceived.items()}
        self._clock = clock or SystemClock()
        self._inboxes = InboxWriter(
            store=store,
            clock=self._clock,
            describe=self.known,
            arrived=arrived,
            limit=self.settings.unperceived_limit,
            unbounded=unbounded,
        )
        self._servers: dict[str, ServerPuller] = {}
        for connection in connections:
            self._take_in(connection)
        self._acknowledged: dict[tuple[str, str], str] = {}
        self._failed = failed
        self._tasks: list[asyncio.Task[None]] = []

    def _take_in(self, connection: ToolConnection) -> None:
        name = connection.name
        if name in self._servers:
            raise ConfigurationError(f"Two servers are called {name!r}: give each its own name.")
        puller = ServerPuller(connection, self._inboxes, self.settings)
        self._servers[name] = puller
        connection.on_hint(lambda tool: self._hinted(puller, tool))

    # ---- Start and stop ----

    async def start(self) -> None:
        """Reads the catalogue, and again the tools that are in focus."""
        await self.refresh()
        self._tell_changed()
        for tool, watched in self._watched.items():
            if (server := self._server(tool)) is not None:
                server.tools[tool] = watched
        for server in self._servers.values():
            await self._subscribe(server)
            server.mark_all()
            self._begin(server.run())
        self._begin(self._keep_up())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._failed(error)

    async def stop(self) -> None:
        """Ends the reading and the connections; focus and inboxes stay as they are.

        A store that had failed, so that reading had ended before, raises here.
        """
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for server in self._servers.values():
            await server.connection.close()
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def approve(self, tool: str) -> None:
        """Accepts what a tool says of itself now; for a person who has read it."""
        await super().approve(tool)
        if tool in self._watched:
            self._watched[tool].told_changed = False

    # ---- Focus ----

    async def focus(
        self, activity_id: str, tool: str, signals: Iterable[str] | None = None
    ) -> PropertyReading:
        """Has an activity perceive a tool from now on, and gives its properties now.

        Of its signals it wants those that are named, all for None; those that it had before go.
        Raises as `check`; where the server does not answer, the focus stays as it was.
        """
        server = self._servers[await self.check(tool)]
        wanted = None if signals is None else frozenset(signals)
        async with server.focusing:
            watched = self._watched.get(tool) or WatchedTool(tool)
            before = activity_id in watched.focus
            self._store.focus(activity_id, tool, wanted)
            watched.focus[activity_id] = wanted
            self._watched[tool] = server.tools[tool] = watched
            try:
                await server.subscribe()
                await server.pull(watched)
            except BaseException:
                if not before:
                    self._leave(activity_id, watched)
                raise
            if (reading := self.reading(tool)) is None:
                raise ToolRefusedError(tool, "it left the focus while it was read.")
            first = property_percept(reading, (), self._clock.now())
            self._store.deliver(tool, None, [Delivery(activity_id, first, replaces=True)])
        return reading

    async def unfocus(self, activity_id: str, tool: str) -> None:
        """Ends that an activity perceives a tool; nothing happens if it does not."""
        watched = self._watched.get(tool)
        if watched is not None and activity_id in watched.focus:
            self._leave(activity_id, watched)
            if (server := self._server(tool)) is not None:
                await self._subscribe(server)

    def adopt(self, activity_ids: Sequence[str]) -> None:
        """Perceives for activities that another worker has pursued."""
        for tool, wanted in self._store.focuses(set(activity_ids)).items():
            watched = self._watched.setdefault(tool, WatchedTool(tool))
            watched.focus.update(wanted)
            if (server := self._server(tool)) is not None:
                server.adopt(watched)

    def focused(self, activity_id: str) -> Mapping[str, frozenset[str] | None]:
        """The tools that an activity perceives, and which of their signals: None for all."""
        tools = self._watched.values()
        return {one.id: one.focus[activity_id] for one in tools if activity_id in one.focus}

    async def release(self, activity_id: str) -> None:
        """Lets go of an activity that has ended."""
        for tool in self.focused(activity_id):
            await self.unfocus(activity_id, tool)
        for known in [one for one in self._acknowledged if one[0] == activity_id]:
            del self._acknowledged[known]

    def expect(self, tool: str) -> None:
        """Has a tool read often, also without hints: something begins to wait for it."""
        if (server := self._server(tool)) is not None and tool in server.tools:
            server.expect(server.tools[tool])

    def reading(self, tool: str) -> PropertyReading | None:
        """The newest properties of a tool in focus that were delivered."""
        return self._watched[tool].reading if tool in self._watched else None

    # ---- Acting ----

    async def invoke(
        self, activity_id: str, tool: str, operation: str, arguments: Mapping[str, Any], key: str
    ) -> Acknowledgement:
        """Starts an operation for an activity, at most once for one key, the id of the intent.

        Where the tool is in focus, the properties that the operation has changed are delivered
        before the answer is given, or `own_write_seconds` have passed. The activity's waits then
        count from the acknowledgement. Raises as `check`, and `UnknownNameError` for an operation
        that there is not; a `ToolConnectionError` says whether it may have been started.
        """
        server = self._servers[await self.check(tool)]
        declared = [one.name for one in (await self.described(tool)).operations]
        if operation not in declared:
            raise UnknownNameError(f"operation of tool {tool!r}", operation, declared)
        activity = self._store.get(activity_id)
        self._store.hold()
        with calling(CallOrigin(lineage=activity.as_caller if activity else ())):
            done = await ask(
                server.connection.name,
                lambda: server.connection.invoke(tool, operation, arguments, key),
                may_have_happened=True,
            )
        if done.accepted:
            self._acknowledged[activity_id, tool] = done.cursor
        if done.accepted and tool in server.tools:
            server.mark(tool)
            seconds = self.settings.own_write_seconds
            await server.tools[tool].at_least(done.epoch, done.rev, seconds)
        return done

    def acknowledged(self, activity_id: str, tool: str) -> str | None:
        """The cursor of the last operation that was accepted for an activity."""
        return self._acknowledged.get((activity_id, tool))

    async def became_of(self, tool: str, key: str) -> Reconciliation:
        """What became of a call with this key; raises as `check`."""
        server = self._server(tool) or self._servers[await self.check(tool)]
        name = server.connection.name
        return await ask(name, lambda: server.connection.became_of(tool, key))

    # ---- Inside ----

    def _hinted(self, server: ServerPuller, tool: str | None) -> None:
        if tool is not None:
            server.mark(tool)
            return
        self.stale.set()
        server.mark_all()

    def _leave(self, activity_id: str, watched: WatchedTool) -> None:
        watched.focus.pop(activity_id, None)
        watched.unperceived.pop(activity_id, None)
        if not watched.focus:
            self._watched.pop(watched.id, None)
            if (server := self._server(watched.id)) is not None:
                server.tools.pop(watched.id, None)
        self._store.unfocus(activity_id, watched.id)

    async def _subscribe(self, server: ServerPuller) -> None:
        # A server that does not answer gets the list again when it is connected again.
        with suppress(ToolConnectionError):
            await server.subscribe()

    def _server(self, tool: str) -> ServerPuller | None:
        name = self.server(tool)
        return None if name is None else self._servers[name]

    async def _keep_up(self) -> None:
        """Reads catalogue and manuals again when a server says that they may have changed."""
        limit = self.settings.reconcile_limit
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit if self.incomplete else None):
                    await self.stale.wait()
            await self.refresh()
            self._tell_changed()

    def _tell_changed(self) -> None:
        """Tells the activities that perceive a tool that it is in quarantine, once."""
        for tool, watched in self._watched.items():
            if (what := self.changed(tool)) is not None and not watched.told_changed:
                watched.told_changed = True
                text = f"The {what} of {tool} changed. It is not used until a person approves."
                self._inboxes.tell(watched, "changed", text)
