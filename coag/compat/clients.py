"""Parts of clients that stand before other clients."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient, LLMMessage, ModelInfo, RequestUsage
from autogen_core.tools import Tool, ToolSchema

from coag.models import message_text
from coag.schema import estimate_tokens

# ---- Work that an AutoGen token can cancel ----


ResultT = TypeVar("ResultT")


async def cancellable(
    work: Coroutine[Any, Any, ResultT], token: CancellationToken | None
) -> ResultT:
    """What the work brings; the token cancels it.

    Raises:
        CancelledError: The token was cancelled.
    """
    task = asyncio.ensure_future(work)
    if token is not None:
        token.link_future(task)
    return await task


# ---- A model client around another one ----


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


# ---- Counting tokens with or without a client that can ----


CONTEXT_TOKENS = 8_192
"""The context size that is assumed where neither client nor developer tells it."""
_LOG = logging.getLogger(__name__)


class TokenCounts:
    """The client's counts as long as it can count, estimates from then on.

    Args:
        client: Who counts. AutoGen's clients use tiktoken, which fetches its tables at first use.
        context_tokens: The model's context size; with it the client is never asked.
    """

    def __init__(self, client: ChatCompletionClient, context_tokens: int | None) -> None:
        self._client = client
        self._context_tokens = context_tokens
        self._asks = context_tokens is None

    def count(self, messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
        """About how many tokens messages and tools are."""
        counted = self._asked(lambda: self._client.count_tokens(messages, tools=tools))
        return estimated_tokens(messages, tools) if counted is None else counted

    def remaining(self, messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
        """About how many tokens are left of the context."""
        left = self._asked(lambda: self._client.remaining_tokens(messages, tools=tools))
        if left is not None:
            return left
        return (self._context_tokens or CONTEXT_TOKENS) - estimated_tokens(messages, tools)

    def _asked(self, counting: Callable[[], int]) -> int | None:
        if not self._asks:
            return None
        try:
            return counting()
        except Exception as error:  # tiktoken's, the network's and unknown models' are many
            self._asks = False
            _LOG.warning(
                "%s cannot count tokens (%s): they are estimated from now on.",
                type(self._client).__name__,
                type(error).__name__,
            )
            return None


def estimated_tokens(messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]) -> int:
    """About how many tokens messages and tools are."""
    offered = [tool.schema if isinstance(tool, Tool) else tool for tool in tools]
    said = sum(estimate_tokens(message_text(message)) for message in messages)
    return said + sum(estimate_tokens(str(schema)) for schema in offered)
