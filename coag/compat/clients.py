"""AutoGen's model client interface, implemented once.

AutoGen's `ChatCompletionClient` has nine methods, two of them with six parameters each. A client
of ours that records, replays, repairs or stands in derives from `ModelClient` (no client within)
or `WrappedClient` (one within) and defines `answer` and `stream`, which take one `ModelRequest`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from autogen_core import CancellationToken
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.models import message_text
from coag.schema import TokenUsage, estimate_tokens

ResultT = TypeVar("ResultT")
ToolChoice = Tool | Literal["auto", "required", "none"]
"""Which tool an answer is to call."""
CONTEXT_TOKENS = 8_192
"""The context size that is assumed where neither the client nor the developer states it."""
_LOG = logging.getLogger(__name__)


async def cancellable(
    work: Coroutine[Any, Any, ResultT], token: CancellationToken | None
) -> ResultT:
    """Awaits the work, which the token can cancel.

    Raises:
        CancelledError: The token was cancelled.
    """
    task = asyncio.ensure_future(work)
    if token is not None:
        token.link_future(task)
    return await task


# ---- One request, as a value ----


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
        return [tool.schema if isinstance(tool, Tool) else tool for tool in self.tools]

    async def send(self, client: ChatCompletionClient) -> CreateResult:
        """Asks a client for a whole answer."""
        return await client.create(self.messages, **self._options())

    def send_stream(self, client: ChatCompletionClient) -> AsyncGenerator[str | CreateResult, None]:
        """Asks a client for a stream."""
        return client.create_stream(self.messages, **self._options())

    def _options(self) -> dict[str, Any]:
        return {
            "tools": self.tools,
            "tool_choice": self.tool_choice,
            "json_output": self.json_output,
            "extra_create_args": self.arguments,
            "cancellation_token": self.token,
        }


# ---- The bases ----


class ModelClient(ChatCompletionClient):
    """A client that answers by itself; subclasses define `answer` and `model_info`.

    `used` is what the answers so far took; subclasses count it. Tokens are estimated.
    """

    component_type = "model"

    def __init__(self) -> None:
        self.used: TokenUsage = TokenUsage()

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The whole answer to a request."""
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """The pieces of an answer and the result last; by default the result alone."""
        yield await self.answer(request)

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
        """The answer to a request; see `answer`."""
        return await self.answer(
            ModelRequest(
                messages=messages,
                tools=tools,
                tool_choice=tool_choice,
                json_output=json_output,
                arguments=extra_create_args or {},
                token=cancellation_token,
            )
        )

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
        """The answer in pieces, the result last; see `stream`."""
        request = ModelRequest(
            messages=messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            arguments=extra_create_args or {},
            token=cancellation_token,
            is_stream=True,
        )
        async with aclosing(self.stream(request)) as parts:
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
        return CONTEXT_TOKENS - self.count_tokens(messages, tools=tools)

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


def request_usage(usage: TokenUsage) -> RequestUsage:
    """Our usage as AutoGen's."""
    return RequestUsage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
    )


# ---- Counting tokens with or without a client that can ----


def estimated_tokens(messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
    """About how many tokens messages and tools take."""
    offered = [tool.schema if isinstance(tool, Tool) else tool for tool in tools]
    texts = sum(estimate_tokens(message_text(message)) for message in messages)
    return texts + sum(estimate_tokens(str(schema)) for schema in offered)


class TokenCounts:
    """The client's counts as long as it can count, estimates after that.

    Args:
        client: Who counts. AutoGen's clients use tiktoken, which downloads its tables at first use.
        context_tokens: The model's context size; with it the client is never asked.
    """

    def __init__(self, client: ChatCompletionClient, context_tokens: int | None) -> None:
        self._client = client
        self._context_tokens = context_tokens
        self._client_counts = context_tokens is None

    def count(self, messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
        """About how many tokens messages and tools take."""
        counted = self._by_client(lambda: self._client.count_tokens(messages, tools=tools))
        return estimated_tokens(messages, tools) if counted is None else counted

    def remaining(self, messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
        """About how many tokens are left of the context."""
        remaining = self._by_client(lambda: self._client.remaining_tokens(messages, tools=tools))
        if remaining is not None:
            return remaining
        return (self._context_tokens or CONTEXT_TOKENS) - estimated_tokens(messages, tools)

    def _by_client(self, count: Callable[[], int]) -> int | None:
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
