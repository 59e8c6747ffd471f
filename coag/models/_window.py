"""How much a model reads and writes at once: as its client, its name or its server tells."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, cast

from autogen_core.models import ChatCompletionClient

from ._clients import config_of, innermost, is_ollama_like, is_openai_like

CONTEXT_WINDOW = "context_window"
"""The key of a `model_info` that tells the window; ours, AutoGen has none."""
SECONDS = 2.0
"""How long a server may take to tell its window."""
OLLAMA = 4_096
"""Ollama's own `num_ctx`; it cuts longer prompts without a word."""
_OPENAI = "api.openai.com"
_TOLD_AS = ("max_model_len", "max_context_length", "context_length", "context_window", "n_ctx")
"""What servers call it in their list of models: vLLM, LM Studio, OpenRouter, others."""


def window_of(client: ChatCompletionClient) -> int | None:
    """Tokens of the model's window as far as they are known without asking anybody.

    In this order: `model_info["context_window"]`, Ollama's `num_ctx`, AutoGen's own table of
    the models that it knows.
    """
    inner = innermost(client)
    told = cast("Mapping[str, Any]", client.model_info).get(CONTEXT_WINDOW)
    if _is_size(told):
        return cast("int", told)
    config = config_of(inner)
    options = config.get("options")
    if isinstance(options, Mapping) and _is_size(size := cast("Any", options).get("num_ctx")):
        return cast("int", size)
    if is_ollama_like(inner):
        return OLLAMA
    return _in_table(inner, config.get("model"))


def with_window(client: ChatCompletionClient, window: int) -> ChatCompletionClient:
    """The client, whose `model_info` tells its window from now on."""
    cast("dict[str, Any]", client.model_info)[CONTEXT_WINDOW] = window
    return client


def can_be_asked(client: ChatCompletionClient) -> bool:
    """Whether its server may tell the window: one that speaks OpenAI's API and is not OpenAI's."""
    return is_openai_like(client) and _OPENAI not in str(_api(client).base_url)


async def asked_window(client: ChatCompletionClient) -> int | None:
    """Tokens of the window as the server tells them; None where it does not, or not in time.

    Asks for the list of models, and llama.cpp's server for its properties.
    """
    try:
        async with asyncio.timeout(SECONDS):
            return await _listed(client) or await _of_llama_cpp(client)
    # Whatever the server or its client raise: asking is a courtesy, and the turn will tell.
    except Exception:
        return None


async def _listed(client: ChatCompletionClient) -> int | None:
    name = config_of(innermost(client)).get("model")
    api = _api(client).with_options(max_retries=0)
    models = [one.model_dump() async for one in api.models.list()]
    mine = [one for one in models if one.get("id") == name] or models[: len(models) == 1]
    sizes = [one.get(key) for one in mine for key in _TOLD_AS]
    return next((size for size in sizes if _is_size(size)), None)


async def _of_llama_cpp(client: ChatCompletionClient) -> int | None:
    api = _api(client)
    root = str(api.base_url).rstrip("/").removesuffix("/v1")
    told: Any = await api.with_options(base_url=root, max_retries=0).get("/props", cast_to=object)
    size: object = told["default_generation_settings"]["n_ctx"]
    return cast("int", size) if _is_size(size) else None


def _api(client: ChatCompletionClient) -> Any:
    """What speaks to the server in AutoGen's OpenAI client."""
    return cast("Any", innermost(client))._client


def _in_table(client: ChatCompletionClient, name: object) -> int | None:
    """What AutoGen's table of the client's own package says of a model; it has one for each."""
    for kind in type(client).__mro__:
        module = sys.modules.get(f"{kind.__module__.rpartition('.')[0]}._model_info")
        limit_of = getattr(module, "get_token_limit", None)
        if limit_of is not None and isinstance(name, str):
            try:
                size: object = limit_of(name)
            except (KeyError, ValueError):  # a model that is newer than AutoGen
                return None
            return cast("int", size) if _is_size(size) else None
    return None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
