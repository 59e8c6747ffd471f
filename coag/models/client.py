"""AutoGen's model client interface, implemented once.

AutoGen's `ChatCompletionClient` has nine methods, two of them with six parameters each. A client
of ours derives from `ModelClient`, or `WrappedClient` around another one, and defines `answer`
and `stream`, which take a `ModelRequest`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, Unpack

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.schema import TokenUsage, estimate_tokens

ResultT = TypeVar("ResultT")
ToolChoice = Tool | Literal["auto", "required", "none"]


async def cancellable(work: Awaitable[ResultT], token: CancellationToken | None) -> ResultT:
    """Awaits the work, which the token can cancel."""
    task = asyncio.ensure_future(work)
    if token is not None:
        token.link_future(task)
    return await task


def message_text(message: LLMMessage) -> str:
    """The text of one message; tool calls and results as text, images left out."""
    if isinstance(message, FunctionExecutionResultMessage):
        return "\n".join(result.content for result in message.content)
    if isinstance(message.content, str):
        return message.content
    return "\n".join(
        part if isinstance(part, str) else f"{part.name}({part.arguments})"
        for part in message.content
        if isinstance(part, str | FunctionCall)
    )


def tool_schema(tool: Tool | ToolSchema) -> ToolSchema:
    """The tool's description as models see it."""
    return tool if isinstance(tool, dict) else tool.schema


def estimated_tokens(messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
    """About how many tokens messages and tools take."""
    texts = sum(estimate_tokens(message_text(message)) for message in messages)
    return texts + sum(estimate_tokens(json.dumps(tool_schema(tool))) for tool in tools)


def request_usage(usage: TokenUsage) -> RequestUsage:
    """Our usage as AutoGen's."""
    return RequestUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
    )


def token_usage(usage: RequestUsage, *, calls: int = 0) -> TokenUsage:
    """AutoGen's usage as ours, of so many calls."""
    return TokenUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, calls=calls
    )


def capable_info(family: str) -> ModelInfo:
    """The abilities assumed of a model that AutoGen does not know: all but vision."""
    return ModelInfo(
        vision=False,
        function_calling=True,
        json_output=True,
        family=family,
        structured_output=True,
        multiple_system_messages=False,
    )


class RequestOptions(TypedDict, total=False):
    """The keyword arguments of AutoGen's `create` and `create_stream`."""

    tools: Sequence[Tool | ToolSchema]
    tool_choice: ToolChoice
    json_output: bool | type[BaseModel] | None
    extra_create_args: Mapping[str, Any]
    cancellation_token: CancellationToken | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a client is asked: the arguments of `create` and `create_stream`."""

    messages: Sequence[LLMMessage]
    tools: Sequence[Tool | ToolSchema] = ()
    tool_choice: ToolChoice = "auto"
    json_output: bool | type[BaseModel] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """AutoGen's `extra_create_args`."""
    token: CancellationToken | None = None
    is_stream: bool = False

    @property
    def expected(self) -> str | None:
        """Name of the answer's type, where one is asked for."""
        return self.json_output.__name__ if isinstance(self.json_output, type) else None

    @property
    def schemas(self) -> list[ToolSchema]:
        """Schemas of the offered tools."""
        return [tool_schema(tool) for tool in self.tools]

    async def send(self, client: ChatCompletionClient) -> CreateResult:
        """Asks a client for a whole answer."""
        return await client.create(self.messages, **self._options())

    def send_stream(self, client: ChatCompletionClient) -> AsyncGenerator[str | CreateResult, None]:
        """Asks a client for a stream."""
        return client.create_stream(self.messages, **self._options())

    def _options(self) -> RequestOptions:
        return {
            "tools": self.tools,
            "tool_choice": self.tool_choice,
            "json_output": self.json_output,
            "extra_create_args": self.arguments,
            "cancellation_token": self.token,
        }


class ModelClient(ChatCompletionClient):
    """A client that answers by itself; subclasses define `answer` and `model_info`.

    `used` is what the answers so far took; subclasses count it. Tokens are estimated.
    """

    component_type = "model"
    context_tokens: ClassVar[int] = 8_192
    """The context size that is assumed where nobody states it."""

    def __init__(self) -> None:
        self.used: TokenUsage = TokenUsage()

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The whole answer to a request."""
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """The pieces of an answer and the result last; by default the result alone."""
        yield await self.answer(request)

    async def create(
        self, messages: Sequence[LLMMessage], **options: Unpack[RequestOptions]
    ) -> CreateResult:
        """The answer to a request; see `answer`."""
        return await self.answer(_request(messages, options))

    async def create_stream(
        self, messages: Sequence[LLMMessage], **options: Unpack[RequestOptions]
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The answer in pieces, the result last; see `stream`."""
        async with aclosing(self.stream(_request(messages, options, is_stream=True))) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        """Holds nothing that must be closed."""

    def actual_usage(self) -> RequestUsage:
        """The same as `total_usage`: an answer from a cache counts as any other."""
        return self.total_usage()

    def total_usage(self) -> RequestUsage:
        """Tokens of all answers so far."""
        return request_usage(self.used)

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """About how many tokens messages and tools take."""
        return estimated_tokens(messages, tools)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """About how many tokens are left of the context."""
        return self.context_tokens - self.count_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same as `model_info`: AutoGen's deprecated name, whose type it deprecated too."""
        return self.model_info


class WrappedClient(ModelClient):
    """A client around another one; by default it passes everything on.

    Args:
        client: The client within.
    """

    def __init__(self, client: ChatCompletionClient) -> None:
        super().__init__()
        self._client = client

    @property
    def wrapped(self) -> ChatCompletionClient:
        """The client within."""
        return self._client

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The answer of the client within."""
        return await request.send(self._client)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """The stream of the client within."""
        async with aclosing(request.send_stream(self._client)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        """Closes the client within."""
        await self._client.close()

    def actual_usage(self) -> RequestUsage:
        """Usage by the count of the client within."""
        return self._client.actual_usage()

    def total_usage(self) -> RequestUsage:
        """Usage by the count of the client within."""
        return self._client.total_usage()

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """Tokens by the count of the client within."""
        return self._client.count_tokens(messages, tools=tools)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """Tokens left by the count of the client within."""
        return self._client.remaining_tokens(messages, tools=tools)

    @property
    def model_info(self) -> ModelInfo:
        """What the client within states."""
        return self._client.model_info


def _request(
    messages: Sequence[LLMMessage], options: RequestOptions, *, is_stream: bool = False
) -> ModelRequest:
    return ModelRequest(
        messages=messages,
        tools=options.get("tools", ()),
        tool_choice=options.get("tool_choice", "auto"),
        json_output=options.get("json_output"),
        arguments=options.get("extra_create_args") or {},
        token=options.get("cancellation_token"),
        is_stream=is_stream,
    )
