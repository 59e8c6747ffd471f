"""`ResilientClient`: typed answers, repaired calls and complete usage from any client."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self, TypeVar

from autogen_core import Component, ComponentModel
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel, Field, RootModel

from coag._util.timeouts import in_time, let_others_run, next_in_time
from coag.errors import ConfigurationError, ModelCallError
from coag.models import (
    ANSWER_CHARACTERS,
    EMPTY_PIECES,
    AskSettings,
    CallContext,
    CallRecord,
    ModelRequest,
    Parsed,
    StructuredModel,
    WrappedClient,
    cancellable,
    capture_usage,
    continued,
    correction,
    estimated_tokens,
    is_openai_like,
    is_refusal,
    limit_arguments,
    parse_answer,
    reason_of,
    request_usage,
    token_usage,
    usage_of,
)
from coag.schema import ModelCall, TokenUsage

from .call_repair import fault_of, legal_dialogue, repair_answer, with_pieces
from .constrained_client import ConstrainedClient

# ---- One request, sent to the client within as often as it takes ----


ResultT = TypeVar("ResultT")
_LOG = logging.getLogger(__name__)

_IN_FORM = "Give that answer again in the form that is asked for."


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What one request to a `ResilientClient` took."""

    calls: tuple[ModelCall, ...]
    """Every request to the client within, failed ones included, in order."""
    faults: tuple[str, ...] = ()
    """What was wrong with the answers and was repaired, asked for again, or passed on."""

    @property
    def usage(self) -> TokenUsage:
        """What all of it used together, cached tokens where the server counts them."""
        return usage_of(self.calls)


@dataclass(slots=True, kw_only=True)
class _Attempts:
    """The requests to the client within that serve one request to us."""

    asker: StructuredModel
    settings: AskSettings
    request: ModelRequest
    """The request, its dialogue in legal form."""
    on_call: Callable[[ModelCall], None]
    """Gets each request to the client within, when it has ended."""
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    faults: list[str] = field(default_factory=list[str])

    @property
    def exchange(self) -> Exchange:
        """What it took so far."""
        return Exchange(calls=tuple(self.calls), faults=tuple(self.faults))

    async def structured(self, output_type: type[BaseModel]) -> CreateResult:
        """JSON of a type; or tool calls, where tools are offered and the model calls some."""
        dialogue = self.request.messages
        if self._may_call:
            first = await self.plain()
            if not isinstance(first.content, str):
                return first
            truncated = first.finish_reason == "length"
            parsed = parse_answer(first.content, output_type, truncated=truncated)
            if isinstance(parsed, Parsed):
                return first.model_copy(update={"content": parsed.text})
            if first.content.strip():
                answered = AssistantMessage(content=first.content, source="assistant")
                dialogue = [*dialogue, answered, UserMessage(content=_IN_FORM, source="user")]
        answer = await self.asker.ask(
            (), output_type, context=self._context, settings=self.settings, dialogue=dialogue
        )
        if answer.repaired:
            self.faults.append(f"{output_type.__name__}: the JSON had to be repaired")
        return CreateResult(
            finish_reason="stop",
            content=answer.text,
            usage=request_usage(usage_of(self.calls)),
            cached=False,
            thought=answer.thought,
        )

    async def plain(self) -> CreateResult:
        """Text or tool calls."""
        problem: str | None = None
        for attempt in count(1):
            call, request = self._begin(attempt, problem, {})
            with capture_usage() as captured, self._recorded(call, captured.usage):
                result = await in_time(
                    self.settings.timeout, lambda r=request: r.send(self.asker.client)
                )
                usage = captured.usage(result.usage)
            problem = self._judge(call, result, usage)
            if problem is None or attempt > self.settings.reasks:
                return self._final(result)
        raise AssertionError("unreachable: the last attempt returns")

    async def stream(self, extra: Mapping[str, Any]) -> AsyncGenerator[str | CreateResult]:
        """The pieces of a text as they come, the whole answer last."""
        problem: str | None = None
        for attempt in range(1, self.settings.reasks + 2):
            call, request = self._begin(attempt, problem, extra)
            pieces, bounds = list[str](), _StreamBounds(self.settings.timeout)
            result: CreateResult | None = None
            with self._recorded(call, lambda: TokenUsage(calls=1)):
                async with aclosing(request.send_stream(self.asker.client)) as parts:
                    while True:
                        part = await next_in_time(
                            self.settings.timeout, lambda parts=parts: anext(parts, None)
                        )
                        if part is None:
                            break
                        if isinstance(part, CreateResult):
                            result = part
                            continue
                        await bounds.take(part)
                        pieces.append(part)
                        yield part
                if result is None:
                    raise ModelCallError(self.asker.name, "the stream ended without a result")
                result, faults = with_pieces(result, pieces)
                self.faults.extend(faults)
            used = token_usage(result.usage, calls=1)  # streams: cached tokens are not counted
            problem = self._judge(call, result, used)
            if problem is None or attempt > self.settings.reasks:
                yield self._final(result)
                return

    @property
    def _may_call(self) -> bool:
        return bool(self.request.tools) and self.request.tool_choice != "none"

    @property
    def _context(self) -> CallContext:
        def note(call: ModelCall) -> None:
            self.calls.append(call)
            self.on_call(call)

        return CallContext(on_call=note)

    def _begin(
        self, attempt: int, problem: str | None, extra: Mapping[str, Any]
    ) -> tuple[CallRecord, ModelRequest]:
        messages = list(self.request.messages)
        if problem is not None:
            again = UserMessage(content=correction(problem, None), source="user")
            messages = continued(messages, [again])
        asker, settings = self.asker, self.settings
        limit = limit_arguments(asker.client, asker.limit_name, settings.max_tokens)
        request = replace(
            self.request,
            messages=messages,
            json_output=None,
            arguments={**extra, **limit, **settings.extra},
        )
        call = CallRecord.of(
            messages, request.tools, model=asker.name, context=self._context, attempt=attempt
        )
        return call, request

    @contextmanager
    def _recorded(self, call: CallRecord, usage: Callable[[], TokenUsage]) -> Generator[None]:
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            call.failed("cancelled", usage())
            raise
        except ModelCallError as error:
            call.failed(error, usage())
            raise
        except Exception as error:
            # The one broad guard: clients are an open interface and may raise anything.
            call.failed(error, usage())
            raise ModelCallError(self.asker.name, reason_of(error)) from error

    def _judge(self, call: CallRecord, result: CreateResult, usage: TokenUsage) -> str | None:
        """Records the answer; returns what is wrong with it, if asking again may help."""
        problem = fault_of(result, may_call=self._may_call)
        if problem is not None:
            self.faults.append(problem)
        call.answered(result, usage, error=problem)
        return problem

    def _final(self, result: CreateResult) -> CreateResult:
        repaired, faults = repair_answer(result, self.request)
        self.faults.extend(faults)
        return repaired.model_copy(update={"usage": request_usage(usage_of(self.calls))})


class _StreamBounds:
    """Ends a stream that says too much, or nothing for longer than a call may take."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._pieces = self._characters = self._empty = 0
        self._last_text = time.monotonic()

    async def take(self, piece: str) -> None:
        """Counts a piece, and lets others run after some."""
        self._pieces += 1
        self._characters += len(piece)
        self._empty += not piece
        if self._characters > ANSWER_CHARACTERS:
            raise ValueError(f"the stream has more than {ANSWER_CHARACTERS:,} characters")
        if self._empty > EMPTY_PIECES:
            raise ValueError(f"the stream has more than {EMPTY_PIECES:,} empty pieces")
        now = time.monotonic()
        if not piece and self._seconds is not None and now - self._last_text > self._seconds:
            raise TimeoutError(f"nothing but empty pieces for {self._seconds:g} s")
        self._last_text = now if piece else self._last_text
        await let_others_run(self._pieces)


# ---- The client ----


_STREAM_USAGE = {"stream_options": {"include_usage": True}}


class JsonObject(RootModel[dict[str, Any]]):
    """Any JSON object: what `json_output=True` asks for."""


class ResilientClientConfig(BaseModel):
    """The declarative form of a `ResilientClient`: its arguments."""

    client: ComponentModel
    max_tokens: int | None = None
    timeout: float = Field(default=600.0, gt=0)
    reasks: int = Field(default=1, ge=0)
    context_tokens: int | None = None


class ResilientClient(WrappedClient, Component[ResilientClientConfig]):
    """Whatever model and server are within, answers come in the form that was asked for.

    Use it in place of the client:
    `AssistantAgent("a", model_client=ResilientClient(client), output_content_type=Report)`.

    - `json_output=Model` or `True` is asked for in the strictest output mode that the server
      supports (see `coag.models`), parsed strictly, repaired or asked for again: the content is
      valid JSON. Tools and a schema are never sent together: with both, tools are offered first,
      and an answer in text is asked for in its form in a second call.
    - Answers are repaired: arguments of tool calls, empty and doubled call ids, text that a client
      loses from a stream. An empty answer is asked for again. A call in a text stays a text: the
      model may quote a file that holds it.
    - Dialogues are made legal: one system message where the client takes one only, a result
      for each call, arguments that are JSON objects.
    - Usage counts every request, failed and repeated ones too. `last` describes the last request,
      cached tokens included.

    Args:
        client: Any AutoGen chat completion client.
        max_tokens: Longest completion, in tokens; None leaves it to the client.
        timeout: Seconds until one request (of a stream: one part) is given up.
        reasks: How many times an unusable answer is asked for again.
        context_tokens: The model's context size, in tokens. With it, tokens are estimated and
            the client is never asked to count; AutoGen's clients do so by way of the network.

    Raises:
        ValueError: A bound is out of its range.
        ConfigurationError: The client is a `ConstrainedClient`, which belongs around this one.
    """

    component_config_schema = ResilientClientConfig
    component_provider_override = "coag.compat.ResilientClient"

    def __init__(
        self,
        client: ChatCompletionClient,
        *,
        max_tokens: int | None = None,
        timeout: float = 600.0,
        reasks: int = 1,
        context_tokens: int | None = None,
    ) -> None:
        if isinstance(client, ConstrainedClient):
            why = "what a ResilientClient asks for would count there as the user's words"
            give = "Give ConstrainedClient(ResilientClient(client), workbench)"
            raise ConfigurationError(f"{give}, not the reverse: {why}.")
        super().__init__(client)
        self._settings = AskSettings(max_tokens=max_tokens, timeout=timeout, reasks=reasks)
        self._timeout = timeout
        self._context_tokens = context_tokens
        self._asker = StructuredModel(client)
        self._client_counts = context_tokens is None
        self._stream_extra: Mapping[str, Any] = _STREAM_USAGE if is_openai_like(client) else {}
        self.last: Exchange | None = None
        """The last request that ended, however it ended."""

    @property
    def usage(self) -> TokenUsage:
        """What all requests used together, with the tokens that servers took from a cache."""
        return self.used

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks for an answer: text or tool calls, or JSON where `json_output` says so.

        Raises:
            ModelAnswerError: No JSON of the wanted form came, not even after the error was
                described to the model.
            ModelCallError: The client could not be asked; its error is the cause.
        """
        attempts = self._attempts(request)
        output_type = _output_type(request)
        answer = attempts.plain() if output_type is None else attempts.structured(output_type)
        try:
            return await cancellable(answer, request.token)
        finally:
            self.last = attempts.exchange

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Passes on the pieces of a text as they come; JSON comes in one piece, once it is valid.

        Raises:
            ModelAnswerError: As `answer`.
            ModelCallError: As `answer`; also if the stream ends without a result.
        """
        if _output_type(request) is not None:
            result = await self.answer(request)
            if isinstance(result.content, str):
                yield result.content
            yield result
            return
        attempts = self._attempts(request)
        try:
            async with aclosing(self._parts(attempts)) as parts:
                async for part in parts:
                    yield part
        finally:
            self.last = attempts.exchange

    def actual_usage(self) -> RequestUsage:
        """The same as `total_usage`: an answer from a cache counts as any other."""
        return self.total_usage()

    def total_usage(self) -> RequestUsage:
        """Tokens of all requests made here, as far as the client or its server counts them."""
        return request_usage(self.used)

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """The client's count, or an estimate where it cannot count (a logged warning says so)."""
        counted = self._by_client(lambda: self._client.count_tokens(messages, tools=tools))
        return estimated_tokens(messages, tools) if counted is None else counted

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """The client's number, or an estimate: `context_tokens` less `count_tokens`.

        Without `context_tokens` and a client that knows, a context of 8,192 tokens is assumed.
        """
        left = self._by_client(lambda: self._client.remaining_tokens(messages, tools=tools))
        window = self._context_tokens or self.context_tokens
        return window - estimated_tokens(messages, tools) if left is None else left

    def _by_client(self, count: Callable[[], int]) -> int | None:
        """The client's count; None from where on it could not count, or is not to be asked."""
        if not self._client_counts:
            return None
        try:
            return count()
        except Exception as error:  # tiktoken, the network and unknown models raise many kinds
            self._client_counts = False
            _LOG.warning(
                "%s cannot count tokens (%s): they are estimated from now on.",
                type(self._client).__name__,
                type(error).__name__,
            )
            return None

    @property
    def model_info(self) -> ModelInfo:
        """The client's, with what is added here: JSON, schemas, several system messages."""
        return {
            **super().model_info,
            "json_output": True,
            "structured_output": True,
            "multiple_system_messages": True,
        }

    def _to_config(self) -> ResilientClientConfig:
        return ResilientClientConfig(
            client=self._client.dump_component(),
            max_tokens=self._settings.max_tokens,
            timeout=self._timeout,
            reasks=self._settings.reasks,
            context_tokens=self._context_tokens,
        )

    @classmethod
    def _from_config(cls, config: ResilientClientConfig) -> Self:
        client = ChatCompletionClient.load_component(config.client)
        return cls(client, **config.model_dump(exclude={"client"}))

    def _attempts(self, request: ModelRequest) -> _Attempts:
        one_system = not self._client.model_info.get("multiple_system_messages")
        return _Attempts(
            asker=self._asker,
            settings=replace(self._settings, extra=dict(request.arguments)),
            request=replace(
                request, messages=legal_dialogue(request.messages, one_system=one_system)
            ),
            on_call=self._count,
        )

    async def _parts(self, attempts: _Attempts) -> AsyncGenerator[str | CreateResult]:
        """The stream; once more without asking for its usage, if the server refuses that."""
        started = False
        try:
            async with aclosing(attempts.stream(self._stream_extra)) as parts:
                async for part in parts:
                    started = True
                    yield part
        except ModelCallError as error:
            if started or not self._stream_extra or not is_refusal(error):
                raise
            self._stream_extra = {}
            attempts.faults.append("the server refuses to count a stream's usage")
            async with aclosing(attempts.stream({})) as parts:
                async for part in parts:
                    yield part

    def _count(self, call: ModelCall) -> None:
        self.used += call.usage


def _output_type(request: ModelRequest) -> type[BaseModel] | None:
    if isinstance(request.json_output, type):
        return request.json_output
    return JsonObject if request.json_output else None
