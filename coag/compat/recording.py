"""The parts of a stock agent that write their run down."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, cast

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    TextMessage,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import CancellationToken, ComponentModel
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo
from autogen_core.tools import (
    StaticStreamWorkbench,
    TextResultContent,
    ToolResult,
    ToolSchema,
    Workbench,
)

from coag._util.timeouts import let_others_run
from coag.errors import CoagError, ConfigurationError, TraceError
from coag.models import (
    CallRecord,
    ModelRequest,
    WrappedClient,
    capture_usage,
    model_name_of,
    reason_of,
    token_usage,
)
from coag.schema import (
    Percept,
    PerceptKind,
    ReceiptStatus,
    Returned,
    TokenUsage,
    TraceRecord,
    TurnStart,
    parsed_arguments,
)

from .exchanges import asked_of, given_of, given_up, returned_of, status_of, text_of
from .recorder import Recorder, ToolAttempt, in_form
from .tool_runner import read_result, streams
from .tools import Tool, as_tool

# ---- A model client that is written down ----


_ONE_CALL = TokenUsage(calls=1)
"""The usage of a request of whose tokens nothing is known."""


class RecordingClient(WrappedClient):
    """Passes requests and answers on as they are, and writes each request down.

    What is written is enough for `ReplayingClient` to give the same answers, pieces of streams
    included.

    Dumped as a component it is the client within: a run is no part of a description.

    Args:
        client: Who answers.
        recorder: Who writes. What it raises, a request raises.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(client)
        self._recorder = recorder
        self._model = recorder.model or model_name_of(client)
        self._known_info: ModelInfo | None = None

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the client; raises what it raises.

        Raises:
            TraceError: The request could not be written down.
        """
        call = self._begin(request)
        with capture_usage() as captured, _failing(call, captured.usage):
            result = await request.send(self._client)
            usage = captured.usage(result.usage)
        call.answered(result, usage, details=given_of(result, None))
        return result

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Streams from the client; the request is written down when the result comes.

        Raises:
            TraceError: The request could not be written down.
        """
        call = self._begin(request)
        result: CreateResult | None = None
        pieces: list[str] = []
        with _failing(call, lambda: _ONE_CALL, pieces):
            async with aclosing(request.send_stream(self._client)) as parts:
                async for part in parts:
                    if isinstance(part, CreateResult):
                        result = part
                    else:
                        pieces.append(part)
                        yield part
                        await let_others_run(len(pieces))
        if result is None:
            reason = "the stream ended without a result"
            call.failed(reason, _ONE_CALL, given_up(None, pieces))
            return
        usage = token_usage(result.usage, calls=1)
        call.answered(result, usage, details=given_of(result, pieces))
        yield result

    def dump_component(self) -> ComponentModel:
        """The client within."""
        return self._client.dump_component()

    def _begin(self, request: ModelRequest) -> CallRecord:
        info = self._client.model_info
        news = None if info == self._known_info else info
        self._known_info = info
        return CallRecord.of(
            request.messages,
            request.tools,
            model=self._model,
            context=self._recorder.context,
            expected=request.expected,
            details=asked_of(request, news),
        )


@contextmanager
def _failing(
    call: CallRecord, usage: Callable[[], TokenUsage], pieces: Sequence[str] | None = None
) -> Generator[None]:
    """Records a request that fails; the error is raised again."""
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit) as error:
        call.failed("cancelled", usage(), given_up(error, pieces))
        raise
    except Exception as error:  # clients are an open interface: whatever one raises
        call.failed(error, usage(), given_up(error, pieces))
        raise


# ---- Tools that are written down ----


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
        if not isinstance(inner, Workbench | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - by users
            takes = f"RecordingWorkbench takes a workbench or a list of tools, not {inner!r}"
            raise ConfigurationError(f"{takes}: write RecordingWorkbench([tool], recorder).")
        self._inner: Workbench = (
            inner
            if isinstance(inner, Workbench)
            else StaticStreamWorkbench([as_tool(tool) for tool in inner])
        )
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
        """Calls the tool, and records the result."""
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
        before: list[object] = []
        result: ToolResult | None = None
        own_id = self._call_id(attempt, call_id)
        items = inner.call_tool_stream(name, arguments, cancellation_token, own_id)
        with self._failing(attempt, before):
            async with aclosing(items):
                async for item in items:
                    if isinstance(item, ToolResult):
                        result = item
                    else:
                        before.append(item)
                        yield item
                        await let_others_run(len(before))
            if result is None:
                raise RuntimeError(f"The stream of tool {name!r} ended without a result.")
        self._end(attempt, result, before)
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

    def _call_id(self, attempt: ToolAttempt, call_id: str | None) -> str | None:
        return attempt.intent.id if self._intent_ids else call_id

    def _begin(
        self, name: str, arguments: Mapping[str, Any] | None, call_id: str | None
    ) -> ToolAttempt | None:
        """The call with its intent written, by us or by who announced it; None if it cannot be."""
        clean = in_form(arguments)
        try:
            announced = self._recorder.announced.claim(call_id, name, clean)
            return announced or self._recorder.begin(name, clean)
        except TraceError as error:
            self.problem = error
            return None

    @contextmanager
    def _failing(self, attempt: ToolAttempt, before: Sequence[object] = ()) -> Generator[None]:
        """Records a call that raises; the error is raised again."""
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

    def _end(self, attempt: ToolAttempt, result: ToolResult, before: Sequence[object] = ()) -> None:
        status = self._status_of(result)
        returned = returned_of(result, attempt.intent.action, status, before)
        self._write(attempt, status, text_of(result), returned, is_error=result.is_error)

    def _write(
        self,
        attempt: ToolAttempt,
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


def _not_run(name: str) -> ToolResult:
    text = f"{name} was not run: its intent could not be written."
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)


# ---- Any chat agent, written down ----


BROKEN_OFF = "The turn ended while this ran. It may or may not have had its effect."
"""The receipt of a call whose result never came."""


class RecordedAgent(BaseChatAgent):
    """A chat agent as it is, with each of its turns in a trace.

    What the agent is sent is written as percepts. A tool call is written as intent when the
    agent announces it (`ToolCallRequestEvent`), which `AssistantAgent` does before it runs any
    call of an answer; the result it announces is the receipt. Where an intent cannot be written,
    the turn ends there and nothing is run. All other events are notes; pieces of streams are
    left out. Model calls are written by a `RecordingClient`, if the agent was made with one:
    `record` does both at once. Calls of a `RecordingWorkbench` with the same recorder are written
    once, with all that the workbench knows of their results.

    Args:
        agent: The agent; it is closed with this one.
        recorder: Who writes; closed with this agent.
    """

    def __init__(self, agent: ChatAgent, recorder: Recorder) -> None:
        super().__init__(agent.name, agent.description)
        self.agent = agent
        self.recorder = recorder

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The agent's."""
        return self.agent.produced_message_types

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Takes a turn.

        Raises:
            TraceError: The turn could not be written down; it ended there.
        """
        response: Response | None = None
        async for item in self.on_messages_stream(messages, cancellation_token):
            if isinstance(item, Response):
                response = item
        if response is None:
            raise RuntimeError(f"Agent {self.name!r} ended its turn without a response.")
        return response

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """Takes a turn, and passes its events on once they are written down.

        Raises:
            TraceError: The turn could not be written down; it ended there.
        """
        self.recorder.begin_turn()
        for message in messages:
            self.recorder.message(message.source, message.to_model_text())
        turn = _Turn(self.name, self.recorder)
        items = self.agent.on_messages_stream(messages, cancellation_token)
        try:
            async for item in items:
                turn.take(item)
                yield item
        except (asyncio.CancelledError, GeneratorExit):
            turn.fail("cancelled", ReceiptStatus.CANCELLED)
            raise
        except Exception as error:  # an agent may raise anything; it is raised again
            turn.fail("error", ReceiptStatus.UNKNOWN, error)
            raise
        finally:
            await items.aclose()
            turn.end()

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Resets the agent and notes it in the trace; the run continues."""
        await self.agent.on_reset(cancellation_token)
        self.recorder.note("reset", f"Agent {self.name} was reset.")

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        """Pauses the agent."""
        await self.agent.on_pause(cancellation_token)

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        """Resumes the agent."""
        await self.agent.on_resume(cancellation_token)

    async def save_state(self) -> Mapping[str, Any]:
        """The agent's state."""
        return await self.agent.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Gives the agent a state."""
        await self.agent.load_state(state)

    async def close(self) -> None:
        """Closes the agent and ends the run's log; the model client stays open."""
        await self.agent.close()
        self.recorder.close()

    def dump_component(self) -> ComponentModel:
        """The agent within: a run is no part of a description."""
        return cast("BaseChatAgent", self.agent).dump_component()


def record(
    make: Callable[..., ChatAgent],
    name: str,
    model_client: ChatCompletionClient,
    *,
    logs: Path | str | None = None,
    recorder: Recorder | None = None,
    **arguments: Any,
) -> RecordedAgent:
    """Makes an agent whose run is written down: `record(AssistantAgent, "a", client, tools=...)`.

    Args:
        make: The agent's class, or a function that makes one from a name and a model client.
        name: The agent's name.
        model_client: Its model.
        logs: The folder of all runs, which gets the run's folder; None keeps the trace in RAM.
        recorder: Who writes, in the place of one for `logs`; e.g. one that a `RecordingWorkbench`
            among the arguments shares, or one with a recipe. It is closed with the agent.
        arguments: The agent's further arguments.

    Raises:
        TraceError: The folder cannot be written to.
        ConfigurationError: Both `logs` and `recorder` are given.
    """
    if recorder is not None and logs is not None:
        raise ConfigurationError(
            "record() takes either logs= or recorder=: a recorder has its own folder of logs."
        )
    recorder = recorder or Recorder(logs, agent=name, model=model_name_of(model_client))
    try:
        agent = make(name, RecordingClient(model_client, recorder), **arguments)
    except BaseException:
        recorder.close()
        raise
    return RecordedAgent(agent, recorder)


class _Turn:
    """What a turn has brought so far."""

    def __init__(self, agent: str, recorder: Recorder) -> None:
        self._agent = agent
        self._recorder = recorder
        self._open: dict[str, deque[ToolAttempt]] = defaultdict(deque)
        self._unended = ReceiptStatus.UNKNOWN
        self._reason, self._response = "ended", ""
        self._error: Exception | None = None

    def take(self, item: BaseAgentEvent | BaseChatMessage | Response) -> None:
        """Writes an event down; that of an agent within this one is a note."""
        own = isinstance(item, Response) or item.source == self._agent
        match item:
            case Response():
                handed = isinstance(item.chat_message, HandoffMessage)
                self._reason = "handoff" if handed else "respond"
                self._response = item.chat_message.to_model_text()
            case ToolCallRequestEvent() if own:
                for call in item.content:
                    attempt = self._recorder.begin(call.name, parsed_arguments(call.arguments))
                    self._open[call.id].append(attempt)
                    self._recorder.announced.announce(call.id, attempt)
            case ToolCallExecutionEvent() if own:
                for result in item.content:
                    self._end(result.call_id, result.content, result.is_error is True)
            case ModelClientStreamingChunkEvent():
                pass
            case _:
                self._recorder.note(type(item).__name__, f"{item.source}: {item.to_text()}")

    def fail(self, reason: str, unended: ReceiptStatus, error: Exception | None = None) -> None:
        """Sets why the turn is interrupted, and what that means for calls that run."""
        self._reason, self._unended, self._error = reason, unended, error
        self._response = "" if error is None else reason_of(error)

    def end(self) -> None:
        """Writes down what is left open, and the turn's end."""
        for call_id, attempts in self._open.items():
            for attempt in attempts:
                if self._recorder.announced.settle(call_id, attempt):
                    self._recorder.end(attempt, self._unended, BROKEN_OFF)
        self._recorder.end_turn(self._reason, self._response, self._error)

    def _end(self, call_id: str, content: str, is_error: bool) -> None:
        attempts = self._open.get(call_id)
        if not attempts:
            self._recorder.note("result", f"A result that belongs to no call: {content}")
            return
        attempt = attempts.popleft()
        if not self._recorder.announced.settle(call_id, attempt):
            return  # a recording workbench has run it and recorded its end
        read = read_result(content, is_error=is_error)
        status = ReceiptStatus.FAILED if read.is_error else ReceiptStatus.DONE
        returned = None if read.is_error == is_error else Returned(is_error=is_error)
        self._recorder.end(attempt, status, content, read.failure, returned)


# ---- A chat agent that takes the turns of its recorded run again ----


class StockRun:
    """Gives an agent, made over doubles, in each turn the messages that the recorded one got."""

    def __init__(
        self,
        agent: ChatAgent,
        recorder: Recorder,
        records: Callable[[], Iterable[TraceRecord]],
    ) -> None:
        self._agent = agent if isinstance(agent, RecordedAgent) else RecordedAgent(agent, recorder)
        self._recorder = recorder
        self._records = records

    async def say(self, text: str) -> object:
        """Takes the next turn with its recorded messages, or with this text if it had none.

        What an agent raises that is no `CoagError` is not passed on: the end of its turn names it.
        """
        turn = self._recorder.turn + 1
        messages = list(_messages(self._records(), turn))
        messages = messages or [TextMessage(content=text, source="user")]
        try:
            return await self._agent.on_messages(messages, CancellationToken())
        except CoagError:
            raise
        except Exception:  # an agent may raise anything; the end of its turn was compared
            if self._recorder.turn < turn:
                raise
            return None

    async def repeat(self, about: str, text: str) -> bool:
        """Resets the agent where it was reset; knows nothing else that is noted between turns."""
        del text
        if about != "reset":
            return False
        await self._agent.on_reset(CancellationToken())
        return True


def stock_run(
    made: object, recorder: Recorder, records: Callable[[], Iterable[TraceRecord]]
) -> StockRun | None:
    """A chat agent as what can be driven through its recorded turns; None for anything else."""
    return StockRun(made, recorder, records) if isinstance(made, ChatAgent) else None


def _messages(records: Iterable[TraceRecord], turn: int) -> Iterator[TextMessage]:
    begun = False
    for record in records:
        if isinstance(record, TurnStart):
            begun = record.turn == turn
        elif begun and isinstance(record, Percept) and record.kind is PerceptKind.MESSAGE:
            yield TextMessage(content=record.content, source=record.source)
        elif begun:
            return
