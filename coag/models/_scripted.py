"""A model that is a function of the request: for tests, for demos, for docs."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Self

from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from coag.errors import ConfigurationError
from coag.schema import Imported, provider_name

from ._requests import (
    Script,
    ScriptedReply,
    ScriptedRequest,
    as_result,
    prompt_tokens,
    tool_schema,
    wanted_schema,
    wants_json,
)

_CONTEXT_TOKENS = 128_000
"""The context size that a scripted model claims."""
_KEPT_REQUESTS = 1_000

_DEFAULT_INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=True,
    family="scripted",
    structured_output=True,
    multiple_system_messages=False,
)


class ScriptedModelConfig(BaseModel):
    """The declarative form of a scripted model."""

    script: Imported
    """The function that answers."""
    name: str = "scripted"
    """What the model is called in records."""
    model_info: ModelInfo | None = None
    """What it claims to be able to do; None for all but vision."""


class ScriptedModel(ChatCompletionClient, Component[ScriptedModelConfig]):
    """A `ChatCompletionClient` over a function of the request; no network, no tokenizer.

    It refuses what its `model_info` says it cannot do with a `ValueError`, as AutoGen's own
    clients do. Usage is estimated (`coag.schema.estimate_tokens`). Token limits are passed on
    in `ScriptedRequest.extra` and not enforced. Its component names the script by import, so
    that one with a script of a module can be dumped.

    Args:
        script: Answers each request.
        name: What the model is called in records.
        model_info: What it claims to be able to do; by default all but vision.
    """

    component_type = "model"
    component_config_schema = ScriptedModelConfig
    component_provider_override = "coag.models.ScriptedModel"

    def __init__(
        self, script: Script, *, name: str = "scripted", model_info: ModelInfo | None = None
    ) -> None:
        self.name = name
        self.requests: deque[ScriptedRequest] = deque(maxlen=_KEPT_REQUESTS)
        self.calls = 0
        self._script = script
        self._info = _DEFAULT_INFO if model_info is None else model_info
        self._usage = RequestUsage(prompt_tokens=0, completion_tokens=0)

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Asks the script."""
        schema, schema_name = wanted_schema(json_output, extra_create_args or {})
        request = ScriptedRequest(
            messages=tuple(messages),
            tools=tuple(tool_schema(tool) for tool in tools),
            tool_choice=tool_choice if isinstance(tool_choice, str) else tool_choice.name,
            json_output=schema is not None or wants_json(json_output, extra_create_args or {}),
            schema=schema,
            schema_name=schema_name,
            extra=dict(extra_create_args or {}),
            number=self.calls + 1,
        )
        self._refuse_what_it_cannot(request)
        self.calls += 1
        self.requests.append(request)
        result = as_result(await self._reply(request, cancellation_token), request)
        self._usage = RequestUsage(
            prompt_tokens=self._usage.prompt_tokens + result.usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens + result.usage.completion_tokens,
        )
        return result

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Asks the script; yields a text word by word, then the result."""
        result = await self.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args,
            cancellation_token=cancellation_token,
        )
        if isinstance(result.content, str):
            for chunk in re.findall(r"\S+\s*|\s+", result.content):
                yield chunk
        yield result

    async def close(self) -> None:
        """Nothing is held."""

    def actual_usage(self) -> RequestUsage:
        """Estimated tokens of all calls."""
        return self._usage

    def total_usage(self) -> RequestUsage:
        """Estimated tokens of all calls; nothing is cached, so the same as `actual_usage`."""
        return self._usage

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """About how many tokens messages and tools are."""
        schemas = tuple(tool_schema(tool) for tool in tools)
        return prompt_tokens(messages, schemas)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What is left of a context of 128,000 tokens."""
        return _CONTEXT_TOKENS - self.count_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The same as `model_info`: AutoGen's deprecated name, whose type it deprecated too."""
        return self._info

    @property
    def model_info(self) -> ModelInfo:
        """What the model claims to be able to do."""
        return self._info

    def dump_component(self) -> ComponentModel:
        """The component of this very class.

        Raises:
            ConfigurationError: The script cannot be imported.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> ScriptedModelConfig:
        try:
            script = Imported.of(self._script)
        except ConfigurationError as error:
            raise ConfigurationError(f"Scripted model {self.name!r}: {error}") from error
        info = None if self._info is _DEFAULT_INFO else self._info
        return ScriptedModelConfig(script=script, name=self.name, model_info=info)

    @classmethod
    def _from_config(cls, config: ScriptedModelConfig) -> Self:
        return cls(config.script.get(), name=config.name, model_info=config.model_info)

    async def _reply(
        self, request: ScriptedRequest, token: CancellationToken | None
    ) -> ScriptedReply:
        reply = self._script(request)
        if not inspect.isawaitable(reply):
            return reply
        future = asyncio.ensure_future(reply)
        if token is not None:
            token.link_future(future)
        return await future

    def _refuse_what_it_cannot(self, request: ScriptedRequest) -> None:
        wanted = {
            "function_calling": bool(request.tools),
            "structured_output": request.schema is not None,
            "json_output": request.json_output and request.schema is None,
        }
        for ability, needed in wanted.items():
            if needed and not self._info.get(ability):
                raise ValueError(f"Scripted model {self.name!r} does not support {ability}.")
