"""The plain agent: AutoGen's AssistantAgent, driven turn by turn and written down."""

from __future__ import annotations

import ast
import json
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from autogen_core.models import ChatCompletionClient, CreateResult, FunctionExecutionResult
from autogen_core.tools import BaseTool, TextResultContent, Tool, ToolResult, Workbench

from coag.compat import (
    ConstrainedWorkbench,
    Recorder,
    RecordingClient,
    RecordingWorkbench,
    ReplayingClient,
    status_of,
)
from coag.context import CoagContext
from coag.errors import ModelCallError, TraceError
from coag.models import (
    ModelRequest,
    WrappedClient,
    has_own_limit,
    limit_arguments,
    limit_name_of,
    merged_system,
    reason_of,
)
from coag.schema import Constraint, ReceiptStatus, parsed_arguments
from coag.store import WordLlamaEmbedder

# ---- the model: one action a turn, also where it is written in words ----

_LINE = re.compile(r"(?im)^\W*action\W*:\W*(\w+)[ \t]*\(([^()\n]*)\)")
_OPENINGS = 50
"""Braces in a text at which JSON is looked for."""
SPELLED = "spelled"
"""What the id of a call that was made of words begins with, and what a note on it is about."""
MAX_TOKENS = 1_000
"""Longest completion of a turn, reasoning and tool call, for a client that has no limit itself."""


def spelled_call(text: str, names: Collection[str]) -> tuple[str, str, str] | None:
    """The first call of one of these tools in a text: name, JSON, the text before."""
    return next(_in_json(text, names), None) or next(_in_lines(text, names), None)


def _in_json(text: str, names: Collection[str]) -> Iterator[tuple[str, str, str]]:
    decoder = json.JSONDecoder()
    for opening in list(re.finditer(r"\{", text))[:_OPENINGS]:
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        call = cast("dict[str, Any]", value)
        arguments = call.get("arguments", call.get("parameters", {}))
        if call.get("name") in names and isinstance(arguments, dict):
            yield str(call["name"]), json.dumps(arguments), text[: opening.start()]


def _in_lines(text: str, names: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Lines such as `Action: move_agent(direction="east")`."""
    for line in _LINE.finditer(text):
        try:
            call = cast("ast.Call", ast.parse(f"f({line[2]})", mode="eval").body)
            arguments = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        if line[1] in names and not call.args:
            yield line[1], json.dumps(arguments), text[: line.start()]


class _OnePieceClient(WrappedClient):
    """Changes whole answers, so that a stream of it is one piece."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        yield await self.answer(request)


class _SpellingClient(_OnePieceClient):
    """Passes requests on; a tool call that the answer's text spells out becomes a call."""

    def __init__(self, client: ChatCompletionClient, ids: Callable[[str], str]) -> None:
        super().__init__(client)
        self._ids = ids

    async def answer(self, request: ModelRequest) -> CreateResult:
        result = await request.send(self.wrapped)
        names = [one.name if isinstance(one, Tool) else one["name"] for one in request.tools]
        text = result.content
        spelled = spelled_call(text, names) if isinstance(text, str) else None
        if spelled is None:
            return result
        name, arguments, before = spelled
        return result.model_copy(
            update={
                "content": [FunctionCall(id=self._ids(SPELLED), name=name, arguments=arguments)],
                "thought": before.strip() or None,
                "finish_reason": "function_calls",
            }
        )


class OneActionClient(_OnePieceClient):
    """Passes requests on and writes each down with its answer.

    Of several tool calls in one answer only the first is passed on: one action a turn, as for
    every agent of the case study; the trace says so. A call that the answer spells out in words
    becomes a call, and the trace says that too. System messages that a memory scatters over the
    dialogue are joined at its front, since many models refuse them elsewhere.
    """

    def __init__(self, client: ChatCompletionClient, recorder: Recorder) -> None:
        super().__init__(RecordingClient(_SpellingClient(client, recorder.ids), recorder))
        self._recorder = recorder
        self._limit: Mapping[str, Any] = {}
        if isinstance(client, ReplayingClient):
            self._limit = client.arguments  # as in the recorded run
        elif not has_own_limit(client):
            self._limit = limit_arguments(client, limit_name_of(client), MAX_TOKENS)

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the client.

        Raises:
            ModelCallError: The client could not be asked.
            TraceError: The request could not be written down.
        """
        request = replace(
            request,
            messages=merged_system(request.messages),
            arguments={**self._limit, **request.arguments},
        )
        try:
            result = await request.send(self.wrapped)
        except TraceError:
            raise
        except Exception as error:  # clients are an open interface: whatever one raises
            raise ModelCallError(self._recorder.model, reason_of(error)) from error
        calls = result.content
        if isinstance(calls, str):
            return result
        for call in calls:
            if call.id.startswith(f"{SPELLED}-"):  # so also in a replay
                self._recorder.note(SPELLED, f"Called in words: {call.name} {call.arguments}")
        if len(calls) <= 1:
            return result
        text = f"Of {len(calls)} tool calls in one answer only the first is run."
        self._recorder.note("bound", text)
        return result.model_copy(update={"content": calls[:1]})


# ---- the tools: written down, bounded, guarded ----

Fate = Literal["refused", "ran", "spared"]
"""What became of a call: a rule refused it, it was run, or no action was left for it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What guards the tools of a plain agent."""

    context: Callable[[], CoagContext[Any]]
    """Makes the context that keeps the state by which rules judge."""
    constraints: Sequence[Constraint]
    """The rules from the beginning."""
    later: Mapping[str, Constraint] = field(default_factory=dict[str, Constraint])
    """Rules that come into force with a change of requirements, by its sentence."""


class WorldWorkbench(RecordingWorkbench):
    """Runs tools, each action named by its intent, whatever id the model gave to the call.

    Where only so many actions are left, what goes beyond is not run, and is no action.
    """

    def __init__(self, tools: Sequence[BaseTool[Any, Any]] | Workbench, recorder: Recorder) -> None:
        super().__init__(tools, recorder, intent_ids=True, status_of=_status_of)
        self.fates: dict[str, Fate] = {}
        """What became of the model's calls, by their ids."""
        self.left: int | None = None
        """How many actions may still be run; None for no bound."""

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """Runs a tool, as `AssistantAgent` does, if an action is left."""
        spared = self.left == 0
        if call_id is not None:
            self.fates[call_id] = "spared" if spared else "ran"
        if spared:
            text = f"{name} was not run: no action is left. Nothing was done."
            yield ToolResult(name=name, result=[TextResultContent(content=text)], is_error=True)
            return
        if self.left is not None:
            self.left -= 1
        items = super().call_tool_stream(name, arguments, cancellation_token, call_id)
        async with aclosing(items):
            async for item in items:
                yield item


class _GuardedWorkbench(ConstrainedWorkbench):
    """The tools behind the rules: a call that does not come through them was refused."""

    def __init__(self, inner: WorldWorkbench, guard: Guard) -> None:
        super().__init__(inner, constraints=list(guard.constraints), context=guard.context())
        self._fates = inner.fates

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        if call_id is not None:
            self._fates[call_id] = "refused"
        items = super().call_tool_stream(name, arguments, cancellation_token, call_id)
        async with aclosing(items):
            async for item in items:
                yield item


def _status_of(result: ToolResult) -> ReceiptStatus:
    """The status; the world's client says in words that an outcome is not known."""
    unknown = "may or may not have happened" in result.to_text(replace_image="")
    return ReceiptStatus.UNKNOWN if unknown else status_of(result)


# ---- the agent ----

_CHANGED = "The system prompt was changed: "


class PlainAgent:
    """AutoGen's `AssistantAgent` with its default context, and one action a turn by default.

    Args:
        name: The agent's name.
        client: Its model.
        tools: Its tools, or a workbench, such as one that replays a run.
        system_message: Its one prompt.
        recorder: Who writes.
        iterations: How often a turn may go from the model to the tools and back.
        guard: Rules for its tools; None for none.
        memory: AutoGen's memory, which gets what it does; the caller closes it.
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
        self.recorder = recorder
        self.refused = 0
        """Calls of the latest turn that its guard refused."""
        self._name = name
        self._client = OneActionClient(client, recorder)
        self._workbench = WorldWorkbench(tools, recorder)
        self._system_message = system_message
        self._iterations = iterations
        self._guard = guard
        self._guarded = None if guard is None else _GuardedWorkbench(self._workbench, guard)
        self._memory = memory
        self._agent = self._made()

    async def say(self, text: str, *, allowance: int | None = None) -> list[str]:
        """Says something to it; gives the results of its actions, futile attempts included.

        Raises:
            ModelCallError: The model could not be asked.
            TraceError: The trace could not be written.
        """
        self.recorder.begin_turn()
        self._workbench.left, self.refused = allowance, 0
        try:
            results, answer = await self._turn(text)
        except ModelCallError as error:
            self.recorder.end_turn("error", str(error))
            raise
        if self._workbench.problem is not None:
            raise self._workbench.problem
        acted = bool(results or self.refused)
        self.recorder.end_turn("actions" if acted else "respond", answer)
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
        fate = self._workbench.fates.pop(result.call_id, None)
        if fate == "refused":
            self.refused += 1
            self.recorder.note("refused", result.content)
        if fate in ("refused", "spared"):
            return False
        name, arguments = (call.name, parsed_arguments(call.arguments)) if call else ("", {})
        if fate is None:  # a call that AutoGen answered itself, such as that of an unknown tool
            attempt = self.recorder.begin(name, arguments)
            self.recorder.end(attempt, ReceiptStatus.FAILED, result.content)
            if self._workbench.left:
                self._workbench.left -= 1
        if self._memory is not None:
            await self._memory.add(done(name, arguments, result.content, self.recorder.turn))
        return True

    async def change_prompt(self, addition: str) -> None:
        """Changes the requirements: a new agent with another prompt takes the dialogue over.

        Where the guard knows a rule for it, that is in force from now on.
        """
        state = await self._agent.save_state()
        self._system_message = f"{self._system_message}\n{addition}"
        guard, guarded = self._guard, self._guarded
        if guard is not None and guarded is not None and addition in guard.later:
            rules = (*guard.constraints, guard.later[addition])
            self._guard = replace(guard, constraints=rules)
            self._guarded = _GuardedWorkbench(self._workbench, self._guard)
            await self._guarded.load_state(await guarded.save_state())
        self._agent = self._made()
        await self._agent.load_state(state)
        self.recorder.note("prompt", f"{_CHANGED}{addition}")

    async def repeat(self, about: str, text: str) -> bool:
        """Repeats, in a replay, a change noted between turns; False if it cannot."""
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


# ---- AutoGen's own long-term memory, as AutoGen's documentation uses it ----

RECALLED, LEAST_SCORE = 3, 0.3
"""Records that are recalled a turn, and the score from which on one is."""
_TINY = 1e-9


class _Words:
    """Our default embedder as an embedding function of Chroma.

    Its vectors have length 1: only then are the scores that AutoGen computes cosines.
    """

    def __call__(self, input: Sequence[str]) -> Any:
        import numpy as np

        rows = WordLlamaEmbedder().embed(list(input))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list(rows / np.maximum(lengths, _TINY))

    def embed_query(self, input: Sequence[str]) -> Any:
        return self(input)

    @staticmethod
    def name() -> str:
        return "coag-wordllama"

    @staticmethod
    def build_from_config(config: Mapping[str, Any]) -> _Words:
        del config
        return _Words()

    def get_config(self) -> dict[str, Any]:
        return {}

    def default_space(self) -> str:
        return "l2"

    def supported_spaces(self) -> list[str]:
        return ["l2"]

    def is_legacy(self) -> bool:
        return False


def open_recall(folder: Path | None = None) -> Memory:
    """AutoGen's Chroma memory; the caller closes it.

    It finds what is like the last message and puts it into the dialogue as one more system message
    a turn; what is known to go wrong with it is left as it is. Ours is the embedding function,
    since the default one downloads a model at its first use, and the client, since its own can
    neither stay in this process (as without a folder) nor switch telemetry off.
    """
    import chromadb
    from autogen_ext.memory.chromadb import (
        ChromaDBVectorMemory,
        CustomEmbeddingFunctionConfig,
        PersistentChromaDBVectorMemoryConfig,
    )
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if folder is None:
        client: Any = chromadb.EphemeralClient(settings)
    else:
        client = chromadb.PersistentClient(str(folder), settings)

    class Recall(ChromaDBVectorMemory):
        async def close(self) -> None:
            if folder is None and self._client is not None and self._collection is not None:
                client.delete_collection(self.collection_name)
            await super().close()

    config = PersistentChromaDBVectorMemoryConfig(
        collection_name="robot" if folder else f"robot-{uuid.uuid4().hex}",
        persistence_path=str(folder or ""),
        k=RECALLED,
        score_threshold=LEAST_SCORE,
        embedding_function_config=CustomEmbeddingFunctionConfig(function=_Words),
    )
    memory: Any = Recall(config)
    memory._client = client  # AutoGen takes no client
    return cast("Memory", memory)


def done(action: str, arguments: Mapping[str, Any], result: str, turn: int) -> MemoryContent:
    """What was done and what came of it, as it is put into the memory."""
    listed = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return MemoryContent(
        content=f"{action}({listed}) gave: {result}",
        mime_type=MemoryMimeType.TEXT,
        metadata={"turn": turn},
    )
