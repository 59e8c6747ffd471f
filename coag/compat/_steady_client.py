"""A model client that any agent can rely on, around one that it cannot."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self

from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel, Field, RootModel

from coag.errors import ModelCallError
from coag.models import Asker, AskSettings, CallContext, is_openai_like, is_refusal
from coag.schema import ModelCall, TokenUsage

from ._answer_repair import ToolChoice
from ._cancellable import cancellable
from ._exchange import Asking, Exchange
from ._legal_dialogue import legal_dialogue
from ._token_counts import TokenCounts
from ._wrapping_client import WrappingClient

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
