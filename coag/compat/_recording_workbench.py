"""Tools that are written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

from autogen_core import CancellationToken, ComponentModel
from autogen_core.tools import (
    StaticStreamWorkbench,
    TextResultContent,
    ToolResult,
    ToolSchema,
    Workbench,
)

from coag.errors import ConfigurationError, TraceError
from coag.models import reason_of
from coag.schema import ReceiptStatus, Returned, let_others_run

from ._announced import Attempt, in_form
from ._recorder import Recorder
from ._results import read_result
from ._returned import returned_of, status_of, text_of
from ._streams import streams
from ._tool_runner import Tool, as_tool


class RecordingWorkbench(StaticStreamWorkbench):
    """Passes calls and results on as they are, each between its intent and its receipt.

    What is written is enough for `ReplayingWorkbench` to offer the same tools and to give the same
    results: their parts, images included, their errors, their class, and what was shown before.
    A call whose intent cannot be written is not run; since stock agents hang where a workbench
    raises, it ends in an error as its result, and `problem` keeps the reason.

    Dumped as a component it is the workbench within: a run is no part of a description.

    Args:
        inner: A workbench, or tools and functions.
        recorder: Who writes. Several workbenches may share it if their tools have different names.
        intent_ids: Give tools the intent's id as their call id: those of models may repeat.
        status_of: Tells from a result what its receipt says of the call.

    Raises:
        ConfigurationError: Something is no tool.
    """

    # It is a StaticStreamWorkbench because AssistantAgent streams the events of no other.

    def __init__(
        self,
        inner: Workbench | Sequence[Tool],
        recorder: Recorder,
        *,
        intent_ids: bool = False,
        status_of: Callable[[ToolResult], ReceiptStatus] = status_of,
    ) -> None:
        super().__init__([])
        within = inner if isinstance(inner, Workbench) else None
        self._inner = within or StaticStreamWorkbench([as_tool(tool) for tool in _tools(inner)])
        self._recorder = recorder
        self._intent_ids = intent_ids
        self._status_of = status_of
        self.problem: TraceError | None = None
        """Why the trace could not be written; nothing is run any more then."""

    @property
    def wrapped(self) -> Workbench:
        """The workbench within."""
        return self._inner

    async def list_tools(self) -> list[ToolSchema]:
        """The tools of the workbench; written down when they have changed."""
        schemas = await self._inner.list_tools()
        try:
            recorder = self._recorder
            recorder.tools.take(self, schemas, recorder.clock.now(), recorder.turn)
        except TraceError as error:
            self.problem = error
        return schemas

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Calls the tool, and writes down what it comes to."""
        attempt = self._begin(name, arguments, call_id)
        if attempt is None:
            return _not_run(name)
        with self._failing(attempt):
            result = await self._inner.call_tool(
                name, arguments, cancellation_token, self._call_id(attempt, call_id)
            )
        self._end(attempt, result)
        return result

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """As `call_tool`; what the tool shows while it runs is passed on, and the result last."""
        inner = self._inner
        if not streams(inner, name):
            yield await self.call_tool(name, arguments, cancellation_token, call_id)
            return
        attempt = self._begin(name, arguments, call_id)
        if attempt is None:
            yield _not_run(name)
            return
        shown: list[object] = []
        result: ToolResult | None = None
        own_id = self._call_id(attempt, call_id)
        items = inner.call_tool_stream(name, arguments, cancellation_token, own_id)
        with self._failing(attempt, shown):
            async with aclosing(items):
                async for item in items:
                    if isinstance(item, ToolResult):
                        result = item
                    else:
                        shown.append(item)
                        yield item
                        await let_others_run(len(shown))
            if result is None:
                raise RuntimeError(f"The stream of tool {name!r} ended without a result.")
        self._end(attempt, result, shown)
        yield result

    async def start(self) -> None:
        """Starts the workbench."""
        await self._inner.start()

    async def stop(self) -> None:
        """Stops the workbench; the recorder stays open."""
        await self._inner.stop()

    async def reset(self) -> None:
        """Resets the workbench."""
        await self._inner.reset()

    async def save_state(self) -> Mapping[str, Any]:
        """The workbench's state."""
        return await self._inner.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Gives the workbench a state."""
        await self._inner.load_state(state)

    def dump_component(self) -> ComponentModel:
        """The workbench within."""
        return self._inner.dump_component()

    def _call_id(self, attempt: Attempt, call_id: str | None) -> str | None:
        return attempt.intent_id if self._intent_ids else call_id

    def _begin(
        self, name: str, arguments: Mapping[str, Any] | None, call_id: str | None
    ) -> Attempt | None:
        """The call with its intent written, by us or by who announced it; None if it cannot be."""
        given = in_form(arguments)
        try:
            announced = self._recorder.announced.claim(call_id, name, given)
            return announced or self._recorder.begin(name, given)
        except TraceError as error:
            self.problem = error
            return None

    @contextmanager
    def _failing(self, attempt: Attempt, shown: Sequence[object] = ()) -> Generator[None]:
        """Writes a call down that raises; what it raises goes on its way."""
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            text = f"{attempt.intent.action} was cancelled; it may have acted."
            self._write(attempt, ReceiptStatus.CANCELLED, text)
            raise
        except Exception as error:  # workbenches are an open interface: whatever one raises
            unknown = bool(getattr(error, "may_have_happened", False))
            status = ReceiptStatus.UNKNOWN if unknown else ReceiptStatus.FAILED
            reason = reason_of(error)
            self._write(attempt, status, reason, Returned(is_error=True, raised=reason))
            raise

    def _end(self, attempt: Attempt, result: ToolResult, shown: Sequence[object] = ()) -> None:
        status = self._status_of(result)
        returned = returned_of(result, attempt.intent.action, status, shown)
        self._write(attempt, status, text_of(result), returned, is_error=result.is_error)

    def _write(
        self,
        attempt: Attempt,
        status: ReceiptStatus,
        text: str,
        returned: Returned | None = None,
        *,
        is_error: bool = True,
    ) -> None:
        failure = read_result(text, is_error=is_error).failure
        try:
            self._recorder.end(attempt, status, text, failure, returned)
        except TraceError as error:
            self.problem = error


def _tools(inner: Workbench | Sequence[Tool]) -> Sequence[Tool]:
    if isinstance(inner, Workbench):
        return ()
    if not isinstance(inner, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - by users
        raise ConfigurationError(
            f"RecordingWorkbench takes a workbench or a list of tools, not {inner!r}: write "
            "RecordingWorkbench([tool], recorder)."
        )
    return inner


def _not_run(name: str) -> ToolResult:
    text = f"{name} was not run: its intent could not be written."
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)
