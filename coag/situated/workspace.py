"""Tools at one place and in one time: added and removed at run time, and called only through it.

All methods are called on one event loop. Subscribers learn that something is new, never what:
they read it.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import json
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from coag._util.timeouts import describe_error, end_task, is_cancelled
from coag.errors import ConfigurationError, StateError, UnknownNameError
from coag.schema import Reconciliation, SystemClock, content_id

from .calls import KEEP, KEYS, PAGE, CallBook, SignalLog, calling, current_call
from .connection import Hint, ToolConnectionError
from .operations import (
    DeclaredOperation,
    OperationFailedError,
    OperationRefusedError,
    as_json,
    split_conditions,
)
from .records import (
    Acknowledgement,
    CallStatus,
    PropertyReading,
    SignalPage,
    SignalRecord,
    ToolDescription,
)
from .tool import EnhancedTool, ToolPlace


class ToolClock(Protocol):
    """Tells tools the time, and lets them wait."""

    def now(self) -> datetime:
        """The time of day, in UTC and aware of it."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class ScaledClock(SystemClock):
    """The machine's time of day, with waits that pass so many times faster (`speed`, above 0)."""

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"A clock's speed is above 0 (got {speed!r}).")
        self._speed = speed

    async def sleep(self, seconds: float) -> None:
        """Waits `seconds` divided by the speed."""
        await asyncio.sleep(seconds / self._speed)


class VirtualClock:
    """A clock that changes only by `advance`: waits end in order, always at the same moment."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._seconds = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._numbers = itertools.count()

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        """Waits until the clock has been moved on by so much."""
        woken = asyncio.Event()
        place = (self._seconds + max(0.0, seconds), next(self._numbers), woken)
        heapq.heappush(self._sleepers, place)
        try:
            await woken.wait()
        finally:
            if not woken.is_set():  # cancelled
                self._sleepers.remove(place)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Advances the clock; each task that sleeps until then wakes at its own moment.

        Other tasks run before, between and after the wakings for a few turns of the event loop:
        enough for one that was woken to sleep again, so that a loop of short sleeps passes whole.
        """
        end = self._seconds + seconds
        await _let_others_run()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._seconds, _, woken = heapq.heappop(self._sleepers)
            woken.set()
            await _let_others_run()
        self._seconds = end


async def _let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


T = TypeVar("T")
_LOG = logging.getLogger(__name__)

ACKNOWLEDGE_SECONDS = 30.0
"""Within which an operation has to be acknowledged by default."""


class Workspace:
    """Holds tools, runs their operations, and keeps their signals (A&A: a workspace of artifacts).

    It is used on one event loop. A tool that it does not have is an `UnknownNameError`.

    Args:
        clock: The time in which the tools live; the machine's by default.
        keep_signals: How many signals of each tool are kept.
        keep_keys: How many calls of each tool are remembered by their keys.
        acknowledge_seconds: How long an operation may take, in the machine's time; what takes
            longer belongs into an internal operation.
    """

    def __init__(
        self,
        *,
        clock: ToolClock | None = None,
        keep_signals: int = KEEP,
        keep_keys: int = KEYS,
        acknowledge_seconds: float = ACKNOWLEDGE_SECONDS,
    ) -> None:
        self.clock: ToolClock = clock or ScaledClock()
        self._keep_signals = keep_signals
        self._keep_keys = keep_keys
        self._seconds = acknowledge_seconds
        self._tools: dict[str, _HostedTool] = {}
        self._subscribers: dict[object, Hint] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    # ---- Tools come and go ----

    def add(self, tool: EnhancedTool, epoch: str | None = None) -> None:
        """Adds a tool; subscribers get a hint that the catalogue changed.

        Args:
            tool: The tool.
            epoch: The name of the tool's life, for one that keeps its state over restarts of its
                process and says the same again; None for a new one, as for a tool that begins.

        Raises:
            ConfigurationError: There is a tool with this id, it is in a workspace, or it does
                not say what it is for.
            StateError: The workspace is closed.
        """
        if self._closed:
            raise StateError(f"The workspace is closed: tool {tool.id!r} cannot be added.")
        if tool.id in self._tools:
            raise ConfigurationError(
                f"The workspace has a tool {tool.id!r} already: give another id, or remove it."
            )
        if tool.state.host is not None:
            raise ConfigurationError(f"Tool {tool.id!r} is in a workspace already.")
        tool.describe()  # raises before anything is changed
        log = SignalLog(tool.id, epoch or secrets.token_hex(4), self._keep_signals)
        hosted = _HostedTool(tool, self, log, CallBook(self._keep_keys), self._seconds)
        self._tools[tool.id] = hosted
        tool.state.host = hosted
        tool.added()
        self.tell(None)

    def remove(self, tool: str) -> None:
        """Removes a tool and ends what it runs; calls that have begun are finished."""
        hosted = self._hosted(tool)
        del self._tools[tool]
        if hosted.tasks:
            leaving = asyncio.ensure_future(hosted.end())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        hosted.tool.state.host = None
        self.tell(None)

    def tool(self, tool: str) -> EnhancedTool:
        """A tool itself, e.g. to look at it in a test."""
        return self._hosted(tool).tool

    async def close(self) -> None:
        """Lets calls that have begun end, then removes all tools; nothing new can begin."""
        self._closed = True
        hosted = list(self._tools.values())
        await asyncio.gather(*(one.calls.close(self._seconds) for one in hosted))
        for tool in list(self._tools):
            self.remove(tool)
        await asyncio.gather(*self._leaving)

    # ---- What is read ----

    def catalogue(self) -> tuple[ToolDescription, ...]:
        """The tools that there are now, in the order in which they were added."""
        return tuple(hosted.tool.describe() for hosted in self._tools.values())

    def manual(self, tool: str) -> str:
        """The manual of a tool, Markdown."""
        return self._hosted(tool).tool.manual()

    def properties(self, tool: str) -> PropertyReading:
        """The observable properties of a tool now."""
        hosted = self._hosted(tool)
        state = hosted.tool.state
        return PropertyReading(
            tool=tool,
            epoch=hosted.log.epoch,
            rev=state.rev,
            properties=state.as_json(),
            cursor=hosted.log.end,
        )

    def signals(self, tool: str, after: str | None = None, limit: int = PAGE) -> SignalPage:
        """The signals of a tool after a cursor, the oldest first; see `SignalLog.after`."""
        return self._hosted(tool).log.after(after, limit)

    # ---- What is done ----

    async def invoke(
        self, tool: str, operation: str, arguments: Mapping[str, Any], key: str | None = None
    ) -> Acknowledgement:
        """Starts an operation, at most once for one key; operations of a tool run one at a time.

        A call that is refused - wrong arguments, a precondition that does not hold - is
        acknowledged as not accepted.

        Args:
            tool: The tool's id.
            operation: The operation's name.
            arguments: Its arguments, JSON.
            key: Names the call; a repeated one gets the answer of the first. None for a call
                that is not remembered.

        Raises:
            OperationFailedError: The operation raised, or was not acknowledged in time.
            StateError: The workspace is closed.
        """
        if self._closed:
            raise StateError(f"The workspace is closed: {operation!r} cannot be started.")
        hosted = self._hosted(tool)
        declared = hosted.tool.declared.operations
        if operation not in declared:
            raise UnknownNameError(f"operation of tool {tool!r}", operation, declared)
        what = content_id(operation, json.dumps(arguments, sort_keys=True, default=repr))
        try:
            return await hosted.calls.once(
                key, what, lambda: hosted.run(declared[operation], arguments, key)
            )
        except OperationRefusedError as refused:
            return hosted.refusal(f"{operation} is refused: {refused}")
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            problem = "it was cancelled, by itself or because the workspace was closed"
            raise OperationFailedError(tool, operation, problem) from error

    def became_of(self, tool: str, key: str) -> CallStatus:
        """What became of the call with a key."""
        hosted = self._hosted(tool)
        kept = None if hosted.calls.knows(key) else hosted.tool.became_of(key)
        return CallStatus(status=kept or hosted.calls.became_of(key))

    # ---- Subscribers ----

    def subscribe(self, hint: Hint) -> Callable[[], None]:
        """Has a function called when something may be new; returns what ends that.

        It is called with the id of a tool whose properties or signals may be new, or with None
        when tools were added or removed. It must return at once, and may be called very often.
        """
        token = object()
        self._subscribers[token] = hint

        def unsubscribe() -> None:
            self._subscribers.pop(token, None)

        return unsubscribe

    def tell(self, tool: str | None) -> None:
        """Tells all subscribers that a tool may have something new; None for the catalogue."""
        for hint in list(self._subscribers.values()):
            try:
                hint(tool)
            except Exception:  # foreign code: the others get the hint all the same
                _LOG.exception("A subscriber of the workspace raised on a hint for %r.", tool)

    def _hosted(self, tool: str) -> _HostedTool:
        if tool not in self._tools:
            raise UnknownNameError("tool", tool, self._tools)
        return self._tools[tool]


class _HostedTool:
    """One tool in a workspace: its log, its calls, and what it runs."""

    def __init__(
        self,
        tool: EnhancedTool,
        workspace: Workspace,
        log: SignalLog,
        calls: CallBook,
        seconds: float,
    ) -> None:
        self.tool = tool
        self.place: ToolPlace = workspace
        self.log = log
        self.calls = calls
        self.tasks: set[asyncio.Task[None]] = set()
        self._workspace = workspace
        self._seconds = seconds
        self._one_at_a_time = asyncio.Lock()

    def now(self) -> datetime:
        return self._workspace.clock.now()

    async def sleep(self, seconds: float) -> None:
        await self._workspace.clock.sleep(seconds)

    def changed(self) -> None:
        self._workspace.tell(self.tool.id)

    def emitted(self, name: str, data: Mapping[str, Any]) -> SignalRecord:
        record = self.log.append(
            name, data, rev=self.tool.state.rev, timestamp=self.now(), cause=current_call().key
        )
        self._workspace.tell(self.tool.id)
        return record

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"{self.tool.id}.{name}")
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("Internal operation %s raised.", task.get_name(), exc_info=error)

    async def end(self) -> None:
        await asyncio.gather(*(end_task(task) for task in list(self.tasks)))

    async def run(
        self, declared: DeclaredOperation, given: Mapping[str, Any], key: str | None
    ) -> Acknowledgement:
        """Runs an operation if nothing speaks against it."""
        with calling(current_call()._replace(key=key)):
            async with self._one_at_a_time:
                return await self._run(declared, given)

    async def _run(self, declared: DeclaredOperation, given: Mapping[str, Any]) -> Acknowledgement:
        try:
            arguments = self._checked(declared, given)
            cursor = self.log.end
            answer = await self._answer(declared, arguments)
        except OperationRefusedError as refused:
            return self.refusal(f"{declared.says.name} is refused: {refused}")
        return Acknowledgement(
            accepted=True,
            message=answer if isinstance(answer, str) else "",
            data=None if isinstance(answer, str) else answer,
            epoch=self.log.epoch,
            rev=self.tool.state.rev,
            cursor=cursor,
        )

    def _checked(self, declared: DeclaredOperation, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, if the call is to be run; else `OperationRefusedError`."""
        state = self.tool.state
        try:
            if self.tool.compare_and_set:
                given, conditions = split_conditions(given)
                if reason := conditions.refusal(state.rev, state.as_json()):
                    raise OperationRefusedError(reason)
            arguments = declared.parameters.values(given)
        except ValueError as error:
            raise OperationRefusedError(f"wrong arguments: {error}") from error
        try:
            holds = declared.check is None or declared.check(self.tool)
        except Exception as error:  # foreign code may raise anything
            problem = f"its check raised {describe_error(error)}"
            raise OperationFailedError(self.tool.id, declared.says.name, problem) from error
        if not holds:
            raise OperationRefusedError(
                f"its precondition does not hold: {declared.says.preconditions}"
            )
        return arguments

    async def _answer(self, declared: DeclaredOperation, arguments: Mapping[str, Any]) -> Any:
        """What the operation returns, as JSON.

        Raises:
            OperationRefusedError: The operation refused.
            OperationFailedError: It raised, was late, or returned what is not JSON.
        """
        deadline = asyncio.timeout(self._seconds)
        try:
            async with deadline:
                answer = declared.run(self.tool, **arguments)
                return as_json(await answer if inspect.isawaitable(answer) else answer)
        except OperationRefusedError:
            raise
        except Exception as error:  # foreign code may raise anything
            problem = describe_error(error)
            if deadline.expired():
                problem = (
                    f"it was not acknowledged within {self._seconds:g} s; what takes longer "
                    "belongs into an internal operation"
                )
            raise OperationFailedError(self.tool.id, declared.says.name, problem) from error

    def refusal(self, message: str) -> Acknowledgement:
        return Acknowledgement(
            accepted=False,
            message=message,
            epoch=self.log.epoch,
            rev=self.tool.state.rev,
            cursor=self.log.end,
        )


class InProcessConnection:
    """A `ToolConnection` to a workspace in this process, for tests and small programs."""

    def __init__(self, workspace: Workspace, name: str = "here") -> None:
        self.name = name
        self._workspace = workspace
        self._focus: AbstractSet[str] = frozenset()
        self._hint: Hint | None = None
        self._unsubscribe = workspace.subscribe(self._told)

    async def catalogue(self) -> Sequence[ToolDescription]:
        """The tools that there are now."""
        return self._workspace.catalogue()

    async def manual(self, tool: str) -> str:
        """The manual of a tool (Markdown)."""
        return self._read(lambda: self._workspace.manual(tool))

    async def read_properties(self, tool: str) -> PropertyReading:
        """The observable properties of a tool now."""
        return self._read(lambda: self._workspace.properties(tool))

    async def read_signals(self, tool: str, after: str | None, limit: int = PAGE) -> SignalPage:
        """The signals after a cursor, the oldest first."""
        return self._read(lambda: self._workspace.signals(tool, after, limit))

    async def focus(self, tools: AbstractSet[str]) -> None:
        """From now on hints are wanted for these tools, and for no others."""
        self._focus = frozenset(tools)

    async def invoke(
        self, tool: str, operation: str, arguments: Mapping[str, Any], key: str
    ) -> Acknowledgement:
        """Starts an operation, at most once for one key."""
        try:
            return await self._workspace.invoke(tool, operation, arguments, key)
        except OperationFailedError as error:
            raise ToolConnectionError(self.name, str(error), may_have_happened=True) from error
        except (UnknownNameError, StateError) as error:
            raise ToolConnectionError(self.name, str(error)) from error

    async def became_of(self, tool: str, key: str) -> Reconciliation:
        """What became of a call with this key, as far as the tool knows."""
        return self._read(lambda: self._workspace.became_of(tool, key)).status

    def on_hint(self, hint: Hint) -> None:
        """Sets who is called when something may be new."""
        self._hint = hint

    async def close(self) -> None:
        """Ends the hints; the workspace stays."""
        self._unsubscribe()

    def _told(self, tool: str | None) -> None:
        if self._hint is not None and (tool is None or tool in self._focus):
            self._hint(tool)

    def _read(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except (UnknownNameError, ValueError) as error:
            raise ToolConnectionError(self.name, str(error)) from error
