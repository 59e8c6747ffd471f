"""Operations of enhanced tools as an AutoGen workbench.

`EnhancedToolWorkbench` is for stock agents: operations, manuals, properties, signals, and a bounded
wait that costs no model call. A `SituatedAgent` needs no wait here, since its activities wait.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult, ToolSchema
from pydantic import BaseModel

from coag._util.json_schemas import value_fault
from coag.errors import CoagError, UnknownNameError
from coag.models import cancellable
from coag.schema import Reconciliation, UnsettledAction
from coag.situated import (
    READ_MANUAL,
    READERS,
    Acknowledgement,
    OnSignal,
    OperationDescription,
    ToolConnection,
    ToolDescription,
    call_name,
    parts_of,
)

from .tools import StatelessWorkbench, ToolEffects

MANUAL_FIRST = "Read its manual first."
"""Ends the description of an operation whose tool has a manual."""


def operation_schema(tool: ToolDescription, operation: OperationDescription) -> ToolSchema:
    """An operation as it is offered to a model."""
    text = operation.description or operation.behavior or tool.description
    hint = f" {MANUAL_FIRST}" if tool.has_manual else ""
    return ToolSchema(
        name=call_name(tool.id, operation.name),
        description=f"{tool.id}: {text}{hint}",
        parameters=operation.parameters,  # pyright: ignore[reportArgumentType] - JSON Schema
    )


def acknowledged(answer: Acknowledgement) -> tuple[str, bool]:
    """What an agent reads of an acknowledgement, and whether it is an error."""
    data = "" if answer.data is None else json.dumps(answer.data, ensure_ascii=False)
    text = " ".join(part for part in (answer.message, data) if part)
    return (text or ("Accepted." if answer.accepted else "Refused.")), not answer.accepted


class OperationsResult(ToolResult):
    """The result of an operation, and whether one that failed may have been started."""

    may_have_happened: bool = False


def as_result(name: str, text: str, *, is_error: bool = False, lost: bool = False) -> ToolResult:
    """A text as a tool's result."""
    content = [TextResultContent(content=text)]
    return OperationsResult(name=name, result=[*content], is_error=is_error, may_have_happened=lost)


class OperationsWorkbench(StatelessWorkbench):
    """Operations of the tools that a catalogue lists; what runs them is given.

    Args:
        catalogue: Gives the tools that there are now.
        invoke: Runs an operation: tool, operation, arguments, key.
        became_of: Finds out what became of a call: tool, key.
    """

    component_type = "workbench"

    def __init__(
        self,
        catalogue: Callable[[], Awaitable[Mapping[str, ToolDescription]]],
        invoke: Callable[[str, str, Mapping[str, Any], str], Awaitable[Acknowledgement]],
        became_of: Callable[[str, str], Awaitable[Reconciliation]],
    ) -> None:
        self._catalogue = catalogue
        self._invoke = invoke
        self._became_of = became_of
        self._listed: Mapping[str, OperationDescription] = {}

    async def list_tools(self) -> list[ToolSchema]:
        """The operations of all tools."""
        tools = (await self._catalogue()).values()
        pairs = [(tool, operation) for tool in tools for operation in tool.operations]
        self._listed = {call_name(tool.id, one.name): one for tool, one in pairs}
        return [operation_schema(tool, one) for tool, one in pairs]

    def effects(self, name: str) -> ToolEffects:
        """What an operation declares of its effects."""
        listed = self._listed.get(name)
        if listed is None:
            return ToolEffects()
        return ToolEffects(read_only=listed.read_only, critical=listed.critical)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Starts an operation; the result is its acknowledgement.

        `call_id` is the key by which the tool runs it at most once.
        """
        named = parts_of(name)
        if named is None:
            return as_result(name, f"There is no operation {name!r}.", is_error=True)
        tool, operation = named
        key = call_id or uuid.uuid4().hex
        invoked = self._invoke(tool, operation, arguments or {}, key)
        try:
            text, is_error = acknowledged(await cancellable(invoked, cancellation_token))
        except CoagError as error:  # the agent reads what went wrong
            lost = bool(getattr(error, "may_have_happened", False))
            return as_result(name, str(error), is_error=True, lost=lost)
        return as_result(name, text, is_error=is_error)

    async def reconcile(self, action: UnsettledAction) -> Reconciliation:
        """What became of an operation of unknown outcome, as far as its tool knows."""
        named = parts_of(action.action)
        return await self._became_of(named[0], action.intent_id) if named else "unknown"


# ---- For stock agents ----

WAIT = "wait_for_signal"
READ_SIGNALS = "read_signals"
MOST_SECONDS = 30.0
"""The longest that one wait of a stock agent may take."""
_LOOK_SECONDS = 1.0
"""How often a wait reads the log where no hint comes."""


class _Named(BaseModel):
    tool: str


class _After(_Named):
    after: str | None = None


class _Waiting(_After):
    signal: str
    timeout_seconds: float = MOST_SECONDS


_READERS: Mapping[str, tuple[str, type[_Named]]] = {
    **{name: (text, _Named) for name, text in READERS.items()},
    READ_SIGNALS: ("The signals that a tool has emitted, after a cursor.", _After),
    WAIT: (
        f"Waits until a tool emits a signal, for at most {MOST_SECONDS:g} seconds. Signals since "
        "your last operation of this tool count, or since you read its properties where you have "
        "used none, or those after the cursor that you give.",
        _Waiting,
    ),
}


class EnhancedToolWorkbench(OperationsWorkbench):
    """Enhanced tools for a stock agent: operations, reading, and a bounded wait.

    Args:
        connections: Where the tools are; the workbench closes them when it is stopped.
    """

    def __init__(self, connections: Sequence[ToolConnection]) -> None:
        super().__init__(self._all_tools, self._run, self._asked)
        self._connections = tuple(connections)
        self._homes: dict[str, ToolConnection] = {}
        self._known: Mapping[str, ToolDescription] = {}
        """The tools as they were listed last."""
        self._acknowledged: dict[str, str] = {}
        """The cursor of the last acknowledgement of each tool, or of the signal of a later wait."""
        self._read_at: dict[str, str] = {}
        """The cursor of the last reading of each tool: a signal after it is news."""
        self._news = asyncio.Event()
        for connection in self._connections:
            connection.on_hint(lambda tool: self._news.set())

    async def _all_tools(self) -> Mapping[str, ToolDescription]:
        found: dict[str, ToolDescription] = {}
        for connection in self._connections:
            for tool in await connection.catalogue():
                home = self._homes.setdefault(tool.id, connection)
                if home is connection:  # the first server that has a tool keeps its name
                    found[tool.id] = tool
        for connection in self._connections:
            mine = {tool for tool, home in self._homes.items() if home is connection}
            await connection.focus(mine & set(found))
        self._known = found
        return found

    async def _home(self, tool: str) -> ToolConnection:
        if tool not in self._homes:
            await self._all_tools()
        if tool not in self._homes:
            raise CoagError(f"There is no tool {tool!r}. There are: {', '.join(self._homes)}.")
        return self._homes[tool]

    async def _run(
        self, tool: str, operation: str, arguments: Mapping[str, Any], key: str
    ) -> Acknowledgement:
        answer = await (await self._home(tool)).invoke(tool, operation, arguments, key)
        self._acknowledged[tool] = answer.cursor
        return answer

    async def _asked(self, tool: str, key: str) -> Reconciliation:
        return await (await self._home(tool)).became_of(tool, key)

    async def list_tools(self) -> list[ToolSchema]:
        """The operations of all tools, and the ways to read and to wait."""
        readers = [
            ToolSchema(name=name, description=text, parameters=kind.model_json_schema())  # pyright: ignore[reportArgumentType] - JSON Schema
            for name, (text, kind) in _READERS.items()
        ]
        return [*readers, *await super().list_tools()]

    def effects(self, name: str) -> ToolEffects:
        """Reading and waiting change nothing."""
        return ToolEffects(read_only=True) if name in _READERS else super().effects(name)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Runs an operation, or reads, or waits.

        A model's ids of its calls come again, so that they are no keys: each call has its own.
        """
        del call_id
        if name not in _READERS:
            return await super().call_tool(name, arguments, cancellation_token)
        kind = _READERS[name][1]
        if fault := value_fault(dict(arguments or {}), json.dumps(kind.model_json_schema())):
            return as_result(name, f"{name}: {fault}", is_error=True)
        reading = self._read(name, kind.model_validate(arguments or {}))
        try:
            return as_result(name, await cancellable(reading, cancellation_token))
        except (CoagError, ValueError) as error:  # the agent reads what went wrong
            return as_result(name, str(error), is_error=True)

    async def _read(self, name: str, given: _Named) -> str:
        home = await self._home(given.tool)
        if isinstance(given, _Waiting):
            return await self._wait(home, given)
        if isinstance(given, _After):
            page = await home.read_signals(given.tool, given.after)
            return page.model_dump_json(by_alias=True)
        if name == READ_MANUAL:
            return await home.manual(given.tool)
        reading = await home.read_properties(given.tool)
        self._read_at[given.tool] = reading.cursor
        return reading.model_dump_json(by_alias=True)

    async def _wait(self, home: ToolConnection, given: _Waiting) -> str:
        """The first such signal after the cursor, or that there was none in time.

        Without a cursor: after the last acknowledgement that this workbench had of the tool, or
        the signal that ended a wait since, else after the last reading.
        """
        await self._check_signal(given.tool, given.signal)
        cursor = given.after or self._acknowledged.get(given.tool) or self._read_at.get(given.tool)
        if cursor is None:
            cursor = self._read_at[given.tool] = (await home.read_properties(given.tool)).cursor
        condition = OnSignal(tool=given.tool, name=given.signal)
        seconds = min(max(given.timeout_seconds, 0.0), MOST_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._news.clear()
                    found, cursor = await self._look(home, condition, cursor)
                    if found is not None:
                        self._acknowledged[given.tool] = cursor
                        return found
                    try:
                        await asyncio.wait_for(self._news.wait(), _LOOK_SECONDS)
                    except TimeoutError:
                        continue  # a hint may have been lost: the log is read all the same
        except TimeoutError:
            return (
                f"No signal {given.signal!r} of {given.tool!r} within {seconds:g} s. Wait again "
                f"with after={cursor!r}."
            )

    async def _check_signal(self, tool: str, signal: str) -> None:
        if signal not in self._signals_of(tool):
            await self._all_tools()
            if signal not in (declared := self._signals_of(tool)):
                raise UnknownNameError(f"signal of tool {tool!r}", signal, declared)

    def _signals_of(self, tool: str) -> list[str]:
        known = self._known.get(tool)
        return [one.name for one in known.signals] if known else []

    async def _look(
        self, home: ToolConnection, condition: OnSignal, cursor: str
    ) -> tuple[str | None, str]:
        page = await home.read_signals(condition.tool, cursor)
        if page.truncated:
            text = "Signals may be missing: the tool was restarted. Read its properties."
            return text, page.cursor
        for record in page.events:
            if condition.met_by(record):
                return record.model_dump_json(by_alias=True), record.cursor
        return None, page.cursor

    async def stop(self) -> None:
        """Closes the connections."""
        for connection in self._connections:
            await connection.close()
