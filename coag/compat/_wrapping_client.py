"""A model client around another one."""

from __future__ import annotations

from collections.abc import Sequence

from autogen_core.models import ChatCompletionClient, LLMMessage, ModelInfo, RequestUsage
from autogen_core.tools import Tool, ToolSchema


class WrappingClient(ChatCompletionClient):
    """Passes on everything but the requests themselves, which are its heirs' to define.

    Args:
        client: The client within.
    """

    component_type = "model"

    def __init__(self, client: ChatCompletionClient) -> None:
        self._client = client

    @property
    def wrapped(self) -> ChatCompletionClient:
        """The client within."""
        return self._client

    async def close(self) -> None:
        """Closes the client within."""
        await self._client.close()

    def actual_usage(self) -> RequestUsage:
        """The client's."""
        return self._client.actual_usage()

    def total_usage(self) -> RequestUsage:
        """The client's."""
        return self._client.total_usage()

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """The client's count."""
        return self._client.count_tokens(messages, tools=tools)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What the client has left."""
        return self._client.remaining_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same as `model_info`: AutoGen's deprecated name, whose type it deprecated too."""
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        """The client's."""
        return self._client.model_info
