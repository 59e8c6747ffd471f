"""What sort of client one has: how it is told a schema, a token limit, and what it is called.

Clients are recognised by the names of their classes, so that no provider's package is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast, runtime_checkable

from autogen_core.models import ChatCompletionClient, ModelFamily
from pydantic import BaseModel

from coag.errors import ConfigurationError
from coag.schema import Rung

from ._schema import response_format
from ._scripted import ScriptedModel

NUM_PREDICT = "options.num_predict"
"""Ollama's name for the completion limit: an entry of its `options`."""
COMPLETION_TOKENS = "max_completion_tokens"
"""OpenAI's own name for it; its reasoning models refuse the older one."""
MAX_TOKENS = "max_tokens"
"""The name that OpenAI-compatible servers and Anthropic know."""
OPENAI_FAMILY = "openai"
"""Our family for names at OpenAI that AutoGen 0.7.5 does not know yet."""

_OPENAI_LIKE = "BaseOpenAIChatCompletionClient"
_OLLAMA_LIKE = "BaseOllamaChatCompletionClient"
_ANTHROPIC_LIKE = "BaseAnthropicChatCompletionClient"


@runtime_checkable
class WrapsClient(Protocol):
    """A client around another one, to which requests go in the end."""

    @property
    def wrapped(self) -> ChatCompletionClient:
        """The client within."""
        ...


def innermost(client: ChatCompletionClient) -> ChatCompletionClient:
    """The client that speaks to the server, whatever is wrapped around it."""
    while (within := _wrapped(client)) is not None:
        client = within
    return client


def _wrapped(client: ChatCompletionClient) -> ChatCompletionClient | None:
    """What a `WrapsClient` wraps. Every call asks, and checking a protocol would be slow."""
    found = getattr(client, "wrapped", None)  # a mock has whatever it is asked for
    return found if isinstance(found, ChatCompletionClient) else None


def rungs_of(client: ChatCompletionClient) -> tuple[Rung, ...]:
    """The rungs that the client says it can do, from the strictest; the prompt is always one."""
    info = client.model_info
    rungs: list[Rung] = []
    if info.get("structured_output", False):
        rungs.append(Rung.JSON_SCHEMA)
    if info.get("json_output", False):
        rungs.append(Rung.JSON_MODE)
    return (*rungs, Rung.PROMPT)


def form_arguments(
    client: ChatCompletionClient, rung: Rung, output_type: type[BaseModel]
) -> tuple[bool | type[BaseModel] | None, dict[str, Any]]:
    """The `json_output` and the extra arguments that ask this client for the rung's form.

    OpenAI-like clients get the schema as a `response_format`: with `json_output=Model` they
    raise on a bad answer and lose its text and its usage.
    """
    if rung is Rung.JSON_MODE:
        return True, {}
    if rung is not Rung.JSON_SCHEMA:
        return None, {}
    if is_openai_like(client) or isinstance(innermost(client), ScriptedModel):
        return None, {"response_format": response_format(output_type)}
    return output_type, {}


def is_openai_like(client: ChatCompletionClient) -> bool:
    """True for AutoGen's OpenAI client and those that are built on it."""
    return _is(client, _OPENAI_LIKE)


def is_ollama_like(client: ChatCompletionClient) -> bool:
    """True for AutoGen's Ollama client and those that are built on it."""
    return _is(client, _OLLAMA_LIKE)


def limit_name_of(client: ChatCompletionClient) -> str | None:
    """The client's name for the completion limit; None if its kind is not known."""
    if is_openai_like(client):
        family = client.model_info["family"]
        own = family == OPENAI_FAMILY or ModelFamily.is_openai(family)
        return COMPLETION_TOKENS if own else MAX_TOKENS
    if is_ollama_like(client):
        return NUM_PREDICT
    if _is(client, _ANTHROPIC_LIKE) or isinstance(innermost(client), ScriptedModel):
        return MAX_TOKENS
    return None


def limit_arguments(
    client: ChatCompletionClient, name: str | None, max_tokens: int | None
) -> dict[str, Any]:
    """The extra arguments that limit a completion; none without a limit or a name for it."""
    if max_tokens is None or name is None:
        return {}
    outer, _, inner = name.partition(".")
    if not inner:
        return {outer: max_tokens}
    return {outer: {**_standing_options(client, outer), inner: max_tokens}}


def has_own_limit(client: ChatCompletionClient) -> bool:
    """Whether the client was made with a limit of its completions."""
    outer, _, inner = (limit_name_of(client) or "").partition(".")
    told = config_of(innermost(client))
    return (inner in _standing_options(client, outer)) if inner else told.get(outer) is not None


def model_name_of(client: ChatCompletionClient) -> str:
    """What the model is called: by the client's own component, else by the client's class."""
    client = innermost(client)
    if isinstance(client, ScriptedModel):
        return client.name
    name = config_of(client).get("model")
    return name if isinstance(name, str) else type(client).__name__


def _standing_options(client: ChatCompletionClient, name: str) -> dict[str, Any]:
    """What the client was made with under this name: a call's argument would replace it whole."""
    options = config_of(innermost(client)).get(name)
    return dict(cast("Mapping[str, Any]", options)) if isinstance(options, Mapping) else {}


def config_of(client: ChatCompletionClient) -> Mapping[str, Any]:
    """What the client's component says it was made with; empty if it is no such component."""
    try:
        return client.dump_component().config
    except (NotImplementedError, AttributeError, TypeError, ValueError, ConfigurationError):
        return {}


def _is(client: ChatCompletionClient, class_name: str) -> bool:
    return any(base.__name__ == class_name for base in type(innermost(client)).__mro__)
