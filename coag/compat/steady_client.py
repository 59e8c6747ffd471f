"""`SteadyClient`: typed answers, repaired calls and complete usage from any client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from autogen_core import CancellationToken, Component, ComponentModel
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

from coag.errors import ModelCallError
from coag.models import (
    ANSWER_CHARACTERS,
    EMPTY_PIECES,
    Asker,
    AskSettings,
    CallContext,
    Parsed,
    UnformedCall,
    continued,
    correction,
    is_openai_like,
    is_refusal,
    limit_arguments,
    listening,
    parse_answer,
    reason_of,
    usage_of,
)
from coag.schema import ModelCall, TokenUsage, let_others_run

from .clients import TokenCounts, WrappingClient, cancellable
from .repair import ToolChoice, fault_of, legal_dialogue, mend_answer, with_pieces

# ---- One request to a `SteadyClient`, asked of the client within as often as it takes ----


ResultT = TypeVar("ResultT")

_IN_FORM = "Give that answer again in the form that is asked for."


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What one request to a `SteadyClient` took."""

    calls: tuple[ModelCall, ...]
    """Every request to the client within, failed ones included, in order."""
    faults: tuple[str, ...] = ()
    """What was wrong with the answers and was mended, asked for again, or passed on."""

    @property
    def usage(self) -> TokenUsage:
        """What all of it used together, cached tokens where the server tells them."""
        return usage_of(self.calls)


@dataclass(slots=True, kw_only=True)
class Asking:
    """One request on its way."""

    asker: Asker
    settings: AskSettings
    dialogue: Sequence[LLMMessage]
    """What is sent, in legal form."""
    tools: Sequence[Tool | ToolSchema]
    tool_choice: ToolChoice
    token: CancellationToken | None
    context: CallContext
    """Names and dates the requests to the client within, and is told of them."""
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    faults: list[str] = field(default_factory=list[str])

    @property
    def exchange(self) -> Exchange:
        """What it took so far."""
        return Exchange(calls=tuple(self.calls), faults=tuple(self.faults))

    async def formed(self, output_type: type[BaseModel]) -> CreateResult:
        """JSON of a type; or tool calls, where tools are offered and the model calls some."""
        dialogue = self.dialogue
        if self._may_call:
            first = await self.unformed()
            if not isinstance(first.content, str):
                return first
            truncated = first.finish_reason == "length"
            found = parse_answer(first.content, output_type, truncated=truncated)
            if isinstance(found, Parsed):
                return first.model_copy(update={"content": found.text})
            if first.content.strip():
                said = AssistantMessage(content=first.content, source="assistant")
                asked = UserMessage(content=_IN_FORM, source="user")
                dialogue = [*self.dialogue, said, asked]
        answer = await self.asker.ask(
            (),
            output_type,
            context=self._noting,
            settings=self.settings,
            dialogue=dialogue,
        )
        if answer.repaired:
            self.faults.append(f"{output_type.__name__}: the JSON had to be repaired")
        return CreateResult(
            finish_reason="stop",
            content=answer.text,
            usage=self._usage,
            cached=False,
            thought=answer.thought,
        )

    async def unformed(self) -> CreateResult:
        """Text or tool calls."""
        problem: str | None = None
        for attempt in range(1, self.settings.reasks + 2):
            call, messages = self._begin(attempt, problem)
            with listening() as heard, self._told(call, heard.usage):
                result = await within(self.settings.timeout, lambda m=messages: self._create(m))
                usage = heard.usage(result.usage)
            problem = self._take(call, result, usage)
            if problem is None or attempt > self.settings.reasks:
                return self._final(result)
        raise AssertionError("unreachable: the last attempt returns")

    async def streamed(self, extra: Mapping[str, Any]) -> AsyncGenerator[str | CreateResult]:
        """The pieces of a text as they come, and the whole answer at last.

        Args:
            extra: Further arguments of the client's call, for streams only.
        """
        problem: str | None = None
        for attempt in range(1, self.settings.reasks + 2):
            call, messages = self._begin(attempt, problem)
            pieces, bounds = list[str](), _StreamBounds(self.settings.timeout)
            result: CreateResult | None = None
            with self._told(call, lambda: TokenUsage(calls=1)):
                parts = self._stream(messages, extra)
                try:
                    while (part := await self._next(parts)) is not None:
                        if isinstance(part, CreateResult):
                            result = part
                            continue
                        await bounds.take(part)
                        pieces.append(part)
                        yield part
                finally:
                    await parts.aclose()
                if result is None:
                    raise ModelCallError(self.asker.name, "the stream ended without a result")
                result, lost = with_pieces(result, pieces)
                self.faults.extend(lost)
            problem = self._take(call, result, _usage_of(result))
            if problem is None or attempt > self.settings.reasks:
                yield self._final(result)
                return

    @property
    def _may_call(self) -> bool:
        return bool(self.tools) and self.tool_choice != "none"

    @property
    def _noting(self) -> CallContext:
        return replace(self.context, on_call=self._note)

    @property
    def _usage(self) -> RequestUsage:
        used = usage_of(self.calls)
        return RequestUsage(
            prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens
        )

    def _note(self, call: ModelCall) -> None:
        self.calls.append(call)
        self.context.on_call(call)

    def _begin(self, attempt: int, problem: str | None) -> tuple[UnformedCall, list[LLMMessage]]:
        """The record of a request that goes out now, and what it says."""
        messages = list(self.dialogue)
        if problem is not None:
            again = UserMessage(content=correction(problem, None), source="user")
            messages = continued(messages, [again])
        call = UnformedCall(
            messages,
            self.tools,
            model=self.asker.name,
            context=self._noting,
            attempt=attempt,
        )
        return call, messages

    @contextmanager
    def _told(self, call: UnformedCall, usage: Callable[[], TokenUsage]) -> Generator[None]:
        """Writes down a request that fails, and raises our error for it."""
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            call.failed("cancelled", usage())
            raise
        except ModelCallError as error:
            call.failed(error, usage())
            raise
        except Exception as error:
            # The one broad guard: clients are an open interface, whatever one raises.
            call.failed(error, usage())
            raise ModelCallError(self.asker.name, reason_of(error)) from error

    async def _create(self, messages: Sequence[LLMMessage]) -> CreateResult:
        return await self.asker.client.create(
            messages,
            tools=self.tools,
            tool_choice=self.tool_choice,
            extra_create_args=self._extra,
            cancellation_token=self.token,
        )

    def _stream(
        self, messages: Sequence[LLMMessage], extra: Mapping[str, Any]
    ) -> AsyncGenerator[str | CreateResult, None]:
        return self.asker.client.create_stream(
            messages,
            tools=self.tools,
            tool_choice=self.tool_choice,
            extra_create_args={**extra, **self._extra},
            cancellation_token=self.token,
        )

    @property
    def _extra(self) -> dict[str, Any]:
        limit = limit_arguments(self.asker.client, self.asker.limit_name, self.settings.max_tokens)
        return {**limit, **self.settings.extra}

    async def _next(self, parts: AsyncGenerator[str | CreateResult]) -> str | CreateResult | None:
        """The next part of a stream, None at its end; each within the time of a call."""
        part = await within(self.settings.timeout, lambda: anext(parts, None))
        return part

    def _take(self, call: UnformedCall, result: CreateResult, usage: TokenUsage) -> str | None:
        """Writes the answer down; gives what is wrong with it, if asking again may help."""
        problem = fault_of(result, may_call=self._may_call)
        if problem is not None:
            self.faults.append(problem)
        call.answered(result, usage, error=problem)
        return problem

    def _final(self, result: CreateResult) -> CreateResult:
        """The answer as the agent gets it, and what all requests used."""
        mended, faults = mend_answer(
            result,
            tools=self.tools,
            tool_choice=self.tool_choice,
            dialogue=self.dialogue,
        )
        self.faults.extend(faults)
        return mended.model_copy(update={"usage": self._usage})


class _StreamBounds:
    """Ends a stream that says too much, or nothing for longer than a call may take."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._pieces = self._characters = self._empty = 0
        self._said = time.monotonic()

    async def take(self, piece: str) -> None:
        """Counts a piece, and lets others run after some.

        Raises:
            TimeoutError: Only empty pieces have come for longer than a call may take.
            ValueError: There are too many pieces, or too many characters in them.
        """
        self._pieces += 1
        self._characters += len(piece)
        self._empty += not piece
        if self._characters > ANSWER_CHARACTERS:
            raise ValueError(f"the stream has more than {ANSWER_CHARACTERS:,} characters")
        if self._empty > EMPTY_PIECES:
            raise ValueError(f"the stream has more than {EMPTY_PIECES:,} empty pieces")
        now = time.monotonic()
        if not piece and self._seconds is not None and now - self._said > self._seconds:
            raise TimeoutError(f"nothing but empty pieces for {self._seconds:g} s")
        self._said = now if piece else self._said
        await let_others_run(self._pieces)


async def within(seconds: float | None, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """What the call gives, if it does so in time.

    Raises:
        TimeoutError: It did not; the message says how long it had.
    """
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await call()
    except TimeoutError:
        if not deadline.expired():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def _usage_of(result: CreateResult) -> TokenUsage:
    """A stream's usage: its clients do not tell cached tokens."""
    return TokenUsage(
        prompt_tokens=result.usage.prompt_tokens,
        completion_tokens=result.usage.completion_tokens,
        calls=1,
    )


# ---- A model client that any agent can rely on, around one that it cannot ----


_TOLD_USAGE = {"stream_options": {"include_usage": True}}


class JsonObject(RootModel[dict[str, Any]]):
    """Any JSON object: what `json_output=True` asks for."""


class SteadyClientConfig(BaseModel):
    """How a `SteadyClient` was made."""

    client: ComponentModel
    """The client within, as a component."""
    max_tokens: int | None = None
    """Longest completion, in tokens."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds until one request is given up."""
    reasks: int = Field(default=1, ge=0)
    """How many times an unusable answer is asked for again."""
    context_tokens: int | None = None
    """The model's context size, in tokens, where the client is not to be asked for it."""


class SteadyClient(WrappingClient, Component[SteadyClientConfig]):
    """Whatever model and server are within, answers come in the form that was asked for.

    `AssistantAgent("a", model_client=SteadyClient(client), output_content_type=Report)`: that is
    all. The name says what it adds: nothing to what the model can do, but the agent no longer
    notices how the model and its server falter.

    - `json_output=Model` or `True` is asked for on the strictest rung that holds (see
      `coag.models`), parsed strictly, repaired or asked for again: the content is valid JSON.
      Tools and a schema are never sent together: with both, tools are offered first, and an
      answer in text is asked for in its form in a second call.
    - Answers are repaired: arguments of tool calls, empty and doubled call ids, text that a client
      loses from a stream. An empty answer is asked for again. A call in a text stays a text: the
      model may quote a file that holds it.
    - Dialogues are made legal: one system message where the client takes one only, a result
      for each call, arguments that are JSON objects.
    - Usage counts every request, failed and repeated ones too. `last` tells of the last request,
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
    """

    component_config_schema = SteadyClientConfig
    component_provider_override = "coag.compat.SteadyClient"

    def __init__(
        self,
        client: ChatCompletionClient,
        *,
        max_tokens: int | None = None,
        timeout: float = 600.0,
        reasks: int = 1,
        context_tokens: int | None = None,
    ) -> None:
        super().__init__(client)
        self._settings = AskSettings(max_tokens=max_tokens, timeout=timeout, reasks=reasks)
        self._config = {
            "max_tokens": max_tokens,
            "timeout": timeout,
            "reasks": reasks,
            "context_tokens": context_tokens,
        }
        self._asker = Asker(client)
        self._tokens = TokenCounts(client, context_tokens)
        self._stream_extra: Mapping[str, Any] = _TOLD_USAGE if is_openai_like(client) else {}
        self._usage = TokenUsage()
        self._context = CallContext(on_call=self._count)
        self.last: Exchange | None = None
        """The last request that came to an end, whatever its end."""

    @property
    def usage(self) -> TokenUsage:
        """What all requests used together, with the tokens that servers took from a cache."""
        return self._usage

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Asks for an answer: text or tool calls, or JSON where `json_output` says so.

        Raises:
            ModelAnswerError: There came no JSON of the wanted form, even after the error was told.
            ModelCallError: The client could not be asked; its error is the cause.
        """
        asking = self._asking(messages, tools, tool_choice, extra_create_args, cancellation_token)
        output_type = _output_type(json_output)
        answer = asking.unformed() if output_type is None else asking.formed(output_type)
        try:
            return await cancellable(answer, cancellation_token)
        finally:
            self.last = asking.exchange

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Passes on the pieces of a text as they come; JSON comes in one piece, once it is valid.

        Raises:
            ModelAnswerError: As `create`.
            ModelCallError: As `create`; also if the stream ends without a result.
        """
        if _output_type(json_output) is not None:
            result = await self.create(
                messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                extra_create_args=extra_create_args,
                cancellation_token=cancellation_token,
            )
            if isinstance(result.content, str):
                yield result.content
            yield result
            return
        asking = self._asking(messages, tools, tool_choice, extra_create_args, cancellation_token)
        try:
            async with aclosing(self._parts(asking)) as parts:
                async for part in parts:
                    yield part
        finally:
            self.last = asking.exchange

    def actual_usage(self) -> RequestUsage:
        """The same as `total_usage`: an answer out of a cache counts as any other."""
        return self.total_usage()

    def total_usage(self) -> RequestUsage:
        """Tokens of all requests made here, as far as the client or its server told them."""
        return RequestUsage(
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
        )

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """The client's count, or an estimate where it cannot count (a logged warning says so)."""
        return self._tokens.count(messages, tools)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What the client has left, or an estimate: `context_tokens` less `count_tokens`.

        Without `context_tokens` and a client that knows, a context of 8,192 tokens is assumed.
        """
        return self._tokens.remaining(messages, tools)

    @property
    def model_info(self) -> ModelInfo:
        """The client's, with what is made up for here: JSON, schemas, several system messages."""
        return {
            **super().model_info,
            "json_output": True,
            "structured_output": True,
            "multiple_system_messages": True,
        }

    def _to_config(self) -> SteadyClientConfig:
        return SteadyClientConfig.model_validate(
            {**self._config, "client": self._client.dump_component()}
        )

    @classmethod
    def _from_config(cls, config: SteadyClientConfig) -> Self:
        return cls(
            ChatCompletionClient.load_component(config.client),
            max_tokens=config.max_tokens,
            timeout=config.timeout,
            reasks=config.reasks,
            context_tokens=config.context_tokens,
        )

    def _asking(
        self,
        messages: Sequence[LLMMessage],
        tools: Sequence[Tool | ToolSchema],
        tool_choice: ToolChoice,
        extra: Mapping[str, Any] | None,
        token: CancellationToken | None,
    ) -> Asking:
        one_system = not self._client.model_info.get("multiple_system_messages")
        return Asking(
            asker=self._asker,
            settings=AskSettings(
                max_tokens=self._settings.max_tokens,
                timeout=self._settings.timeout,
                reasks=self._settings.reasks,
                extra=dict(extra or {}),
            ),
            dialogue=legal_dialogue(messages, one_system=one_system),
            tools=tools,
            tool_choice=tool_choice,
            token=token,
            context=self._context,
        )

    async def _parts(self, asking: Asking) -> AsyncGenerator[str | CreateResult]:
        """The stream; once more without asking for its usage, if the server refuses that."""
        begun = False
        try:
            async with aclosing(asking.streamed(self._stream_extra)) as parts:
                async for part in parts:
                    begun = True
                    yield part
        except ModelCallError as error:
            if begun or not self._stream_extra or not is_refusal(error):
                raise
            self._stream_extra = {}
            asking.faults.append("the server refuses to tell a stream's usage")
            async with aclosing(asking.streamed({})) as parts:
                async for part in parts:
                    yield part

    def _count(self, call: ModelCall) -> None:
        self._usage += call.usage


def _output_type(json_output: bool | type[BaseModel] | None) -> type[BaseModel] | None:
    if isinstance(json_output, type):
        return json_output
    return JsonObject if json_output else None
