"""The plain agent: AutoGen's AssistantAgent, driven turn by turn and written down."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.memory import Memory
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
)
from autogen_core.tools import BaseTool, TextResultContent, Tool, ToolResult, ToolSchema, Workbench

from coag.compat import (
    ConstrainedWorkbench,
    ModelRequest,
    Recorder,
    RecordingClient,
    RecordingWorkbench,
    ReplayingClient,
    WrappedClient,
    status_of,
)
from coag.context import CoagContext
from coag.errors import ModelCallError, TraceError
from coag.models import has_own_limit, limit_arguments, limit_name_of, merged_system, reason_of
from coag.schema import Constraint, ReceiptStatus, parsed_arguments

from .recall import done


class OnePieceClient(WrappedClient):
    """Changes whole answers, so that a stream of it is one piece; subclasses define `answer`."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """The same as `answer`."""
        yield await self.answer(request)


_LINE = re.compile(r"(?im)^\W*action\W*:\W*(\w+)[ \t]*\(([^()\n]*)\)")
_OPENINGS = 50
"""Braces in a text at which JSON is looked for."""


class Spelled(NamedTuple):
    """A call in a text."""

    name: str
    arguments: str
    """As JSON."""
    before: str
    """The text up to the call."""


def spelled_call(text: str, names: Collection[str]) -> Spelled | None:
    """The first call of one of these tools that stands in a text; None if there is none."""
    return next(_in_json(text, names), None) or next(_in_lines(text, names), None)


def _in_json(text: str, names: Collection[str]) -> Iterator[Spelled]:
    decoder = json.JSONDecoder()
    for opening in list(re.finditer(r"\{", text))[:_OPENINGS]:
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        told = cast("dict[str, Any]", value)
        given = told.get("arguments", told.get("parameters", {}))
        if told.get("name") in names and isinstance(given, dict):
            yield Spelled(str(told["name"]), json.dumps(given), text[: opening.start()])


def _in_lines(text: str, names: Collection[str]) -> Iterator[Spelled]:
    for line in _LINE.finditer(text):
        given = _keywords(line[2])
        if line[1] in names and given is not None:
            yield Spelled(line[1], json.dumps(given), text[: line.start()])


def _keywords(text: str) -> dict[str, Any] | None:
    """`direction="east", far=True` as a dictionary; None if it is something else."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            return None
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


SPELLED = "spelled"
"""What the id of such a call begins with, and what a note on it is about."""


class SpellingClient(OnePieceClient):
    """Passes requests on; a tool call that the answer's text spells out becomes a call.

    Args:
        client: Who answers.
        ids: Gives the next id that begins with a word.
    """

    def __init__(self, client: ChatCompletionClient, ids: Callable[[str], str]) -> None:
        super().__init__(client)
        self._ids = ids

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the client."""
        return self._called(await request.send(self.wrapped), request.tools)

    def _called(self, result: CreateResult, tools: Sequence[Tool | ToolSchema]) -> CreateResult:
        names = [tool.name if isinstance(tool, Tool) else tool["name"] for tool in tools]
        spelled = spelled_call(result.content, names) if isinstance(result.content, str) else None
        if spelled is None:
            return result
        call = FunctionCall(id=self._ids(SPELLED), name=spelled.name, arguments=spelled.arguments)
        return result.model_copy(
            update={
                "content": [call],
                "thought": spelled.before.strip() or None,
                "finish_reason": "function_calls",
            }
        )


def was_spelled(call: FunctionCall) -> bool:
    """Whether a call was made of words; its id tells, also when it is replayed."""
    return call.id.startswith(f"{SPELLED}-")


MAX_TOKENS = 1_000
"""Longest completion of a turn, reasoning and tool call, for a client that has no limit itself."""


class OneActionClient(OnePieceClient):
    """Passes requests on and writes each down with its answer.

    Of several tool calls in one answer only the first is passed on: one action a turn, as for
    every agent of the case study; the trace says so. A call that the answer spells out in words
    becomes a call, see `SpellingClient`, and the trace says that too. System messages that a memory
    scatters over the dialogue are joined at its front, since many models refuse them elsewhere.

    Args:
        client: Who answers.
        recorder: Who writes.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(RecordingClient(SpellingClient(client, recorder.ids), recorder))
        self._recorder = recorder
        self._limit = _limit(client)

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the client.

        Raises:
            ModelCallError: The client could not be asked.
            TraceError: The request could not be written down.
        """
        asked = replace(
            request,
            messages=merged_system(request.messages),
            arguments={**self._limit, **request.arguments},
        )
        try:
            result = await asked.send(self.wrapped)
        except TraceError:
            raise
        except Exception as error:  # clients are an open interface: whatever one raises
            raise ModelCallError(self._recorder.model, reason_of(error)) from error
        return self._one_action(result)

    def _one_action(self, result: CreateResult) -> CreateResult:
        if isinstance(result.content, str):
            return result
        for call in filter(was_spelled, result.content):
            self._recorder.note(SPELLED, f"Called in words: {call.name} {call.arguments}")
        if len(result.content) <= 1:
            return result
        text = f"Of {len(result.content)} tool calls in one answer only the first is run."
        self._recorder.note("bound", text)
        return result.model_copy(update={"content": result.content[:1]})


def _limit(client: ChatCompletionClient) -> Mapping[str, Any]:
    """The limit of a completion as this client is told it; in a replay, as it was told then."""
    if isinstance(client, ReplayingClient):
        return client.arguments
    if has_own_limit(client):
        return {}
    return limit_arguments(client, limit_name_of(client), MAX_TOKENS)


@dataclass(frozen=True, slots=True)
class Guard:
    """What guards the tools of a plain agent."""

    context: Callable[[], CoagContext[Any]]
    """Makes the context that keeps the state by which rules judge."""
    constraints: Sequence[Constraint]
    """The rules from the beginning."""
    later: Mapping[str, Constraint] = field(default_factory=dict[str, Constraint])
    """Rules that come into force with a change of requirements, by its sentence."""


class GuardedWorkbench(ConstrainedWorkbench):
    """The tools behind the rules; knows which calls reached it.

    Args:
        inner: The tools, written down.
        guard: What guards them.
    """

    def __init__(self, inner: Workbench, guard: Guard) -> None:
        super().__init__(inner, constraints=list(guard.constraints), context=guard.context())
        self.judged: set[str] = set()
        """Ids of the model's calls that the rules were asked about."""

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """Calls a tool under guard, as `AssistantAgent` does."""
        if call_id is not None:
            self.judged.add(call_id)
        items = super().call_tool_stream(name, arguments, cancellation_token, call_id)
        async with aclosing(items):
            async for item in items:
                yield item


class WorldWorkbench(RecordingWorkbench):
    """Runs tools, each action named by its intent, whatever id the model gave to the call.

    Where only so many actions are left, what goes beyond is not run, and is no action.

    Args:
        tools: The tools, or a workbench.
        recorder: Who writes.
    """

    def __init__(self, tools: Sequence[BaseTool[Any, Any]] | Workbench, recorder: Recorder) -> None:
        super().__init__(tools, recorder, intent_ids=True, status_of=_status_of)
        self._fixed = not isinstance(tools, Workbench)
        self._listed: list[ToolSchema] | None = None
        self.ran: set[str] = set()
        """Ids of the model's calls that were run, as the model gave them."""
        self.spared: set[str] = set()
        """Ids of those that were not run because no action was left."""
        self.left: int | None = None
        """How many actions may still be run; None for no bound."""

    async def list_tools(self) -> list[ToolSchema]:
        """The tools; those that were given as such do not change, and are described once."""
        if self._listed is None or not self._fixed:
            self._listed = await super().list_tools()
        return self._listed

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """Runs a tool, as `AssistantAgent` does, if an action is left."""
        if not self._claimed(call_id):
            yield _none_left(name)
            return
        items = super().call_tool_stream(name, arguments, cancellation_token, call_id)
        async with aclosing(items):
            async for item in items:
                yield item

    def _claimed(self, call_id: str | None) -> bool:
        """Whether an action is left for this call, which takes it."""
        given = set[str]() if call_id is None else {call_id}
        if self.left == 0:
            self.spared |= given
            return False
        if self.left is not None:
            self.left -= 1
        self.ran |= given
        return True


def _status_of(result: ToolResult) -> ReceiptStatus:
    """The status; the world's client says in words that an outcome is not known."""
    unknown = "may or may not have happened" in result.to_text(replace_image="")
    return ReceiptStatus.UNKNOWN if unknown else status_of(result)


def _none_left(name: str) -> ToolResult:
    text = f"{name} was not run: no action is left. Nothing was done."
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)


_CHANGED = "The system prompt was changed: "


class PlainAgent:
    """AutoGen's `AssistantAgent` with its default context, and one action a turn if not told else.

    Args:
        name: The agent's name.
        client: Its model.
        tools: Its tools, or a workbench, such as one that replays a run.
        system_message: Its one prompt.
        recorder: Who writes.
        iterations: How often a turn may go from the model to the tools and back.
        guard: Rules for its tools; None for none.
        memory: AutoGen's memory, which gets what it does; whoever opened it closes it.
    """

    def __init__(
        self,
        name: str,
        client: ChatCompletionClient,
        *,
        tools: Sequence[BaseTool[Any, Any]] | Workbench,
        system_message: str,
        recorder: Recorder,
        iterations: int = 1,
        guard: Guard | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._name = name
        self._recorder = recorder
        self._client = OneActionClient(client, recorder)
        self._workbench = WorldWorkbench(tools, recorder)
        self._system_message = system_message
        self._iterations = iterations
        self._guard = guard
        self._guarded = None if guard is None else GuardedWorkbench(self._workbench, guard)
        self._memory = memory
        self.refused = 0
        """Calls of the latest turn that its guard refused."""
        self._agent = self._made()

    @property
    def recorder(self) -> Recorder:
        """Who writes this agent's trace."""
        return self._recorder

    async def say(self, text: str, *, allowance: int | None = None) -> list[str]:
        """Says something to it; gives the results of its actions, futile attempts included.

        Args:
            text: What is said.
            allowance: How many actions it may still take; None for no bound.

        Raises:
            ModelCallError: The model could not be asked.
            TraceError: The trace could not be written.
        """
        self._recorder.begin_turn()
        self._workbench.left, self.refused = allowance, 0
        try:
            results, answer = await self._turn(text)
        except ModelCallError as error:
            self._recorder.end_turn("error", str(error))
            raise
        if self._workbench.problem is not None:
            raise self._workbench.problem
        acted = bool(results or self.refused)
        self._recorder.end_turn("actions" if acted else "respond", answer)
        return results

    async def _turn(self, text: str) -> tuple[list[str], str]:
        """Lets the agent act; gives the results of its actions, and its answer."""
        results: list[str] = []
        answer = ""
        message = TextMessage(content=text, source="user")
        requests: dict[str, FunctionCall] = {}
        async for item in self._agent.on_messages_stream([message], CancellationToken()):
            if isinstance(item, ToolCallRequestEvent):
                requests |= {call.id: call for call in item.content}
            elif isinstance(item, ToolCallExecutionEvent):
                for result in item.content:
                    if await self._take(result, requests.get(result.call_id)):
                        results.append(result.content)
            elif isinstance(item, Response):
                answer = item.chat_message.to_model_text()
        return results, answer

    async def _take(self, result: FunctionExecutionResult, call: FunctionCall | None) -> bool:
        """Takes the result of a call; whether it was an action, or the futile attempt at one."""
        tools, guarded, call_id = self._workbench, self._guarded, result.call_id
        judged = guarded is not None and call_id in guarded.judged
        ran, spared = call_id in tools.ran, call_id in tools.spared
        for ids in (tools.ran, tools.spared, *([guarded.judged] if guarded else [])):
            ids.discard(call_id)
        if spared:
            return False
        if judged and not ran:
            self.refused += 1
            self._recorder.note("refused", result.content)
            return False
        name, written = (call.name, call.arguments) if call else ("", "")
        arguments = parsed_arguments(written)
        if not ran:
            self._record_unrun(name, arguments, result.content)
        if self._memory is not None:
            await self._memory.add(done(name, arguments, result.content, self._recorder.turn))
        return True

    async def change_prompt(self, addition: str) -> None:
        """Changes the requirements: a new agent with another prompt takes the dialogue over.

        Where the guard knows a rule for it, that is in force from now on.
        """
        state = await self._agent.save_state()
        self._system_message = f"{self._system_message}\n{addition}"
        await self._change_guard(addition)
        self._agent = self._made()
        await self._agent.load_state(state)
        self._recorder.note("prompt", f"{_CHANGED}{addition}")

    async def _change_guard(self, addition: str) -> None:
        guard, guarded = self._guard, self._guarded
        if guard is None or guarded is None or addition not in guard.later:
            return
        rules = (*guard.constraints, guard.later[addition])
        self._guard = replace(guard, constraints=rules)
        self._guarded = GuardedWorkbench(self._workbench, self._guard)
        await self._guarded.load_state(await guarded.save_state())

    async def repeat(self, about: str, text: str) -> bool:
        """Does once more, in a replay, what was noted between turns; False if it cannot."""
        if about != "prompt" or not text.startswith(_CHANGED):
            return False
        await self.change_prompt(text.removeprefix(_CHANGED))
        return True

    async def close(self) -> None:
        """Closes the model; the recorder stays open."""
        await self._client.close()

    def _made(self) -> AssistantAgent:
        return AssistantAgent(
            self._name,
            self._client,
            workbench=self._guarded or self._workbench,
            system_message=self._system_message,
            max_tool_iterations=self._iterations,
            reflect_on_tool_use=False,
            memory=None if self._memory is None else [self._memory],
        )

    def _record_unrun(self, name: str, arguments: dict[str, Any], content: str) -> None:
        """Writes down a call that AutoGen answered itself, such as that of an unknown tool."""
        attempt = self._recorder.begin(name, arguments)
        self._recorder.end(attempt, ReceiptStatus.FAILED, content)
        if self._workbench.left:
            self._workbench.left -= 1
