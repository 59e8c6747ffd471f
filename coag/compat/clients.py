"""A model client around another one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema

from coag.models import ModelClient, ModelRequest


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
