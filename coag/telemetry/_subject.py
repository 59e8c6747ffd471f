"""Whose run it is, for what names spans."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from coag.tracing import RunKind

from ._names import OTHER

_PROVIDERS = {
    "AzureOpenAI": "azure.ai.openai",
    "OpenAI": "openai",
    "Anthropic": "anthropic",
    "Ollama": "ollama",
    "ScriptedModel": "scripted",
}
"""Who serves the model, by how the class of AutoGen's client begins."""
_SCHEMES = ("openai", "anthropic", "ollama", "scripted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose run it is."""

    agent: str
    """The agent's name."""
    run: str = ""
    """The run's id; empty if it is not known."""
    provider: str = OTHER
    """Who serves its models, in OpenTelemetry's words (`openai`, `anthropic`, ...)."""
    kind: RunKind | None = None
    """None if it is not known."""
    parent: str | None = None
    """The run that this one was forked from."""


def provider_of(*, client: object | None = None, model: str = "") -> str:
    """Who serves a model, in OpenTelemetry's words; `_OTHER` if it cannot be told.

    Args:
        client: The AutoGen client that speaks to it, recognised by the name of its class.
        model: The model as the user named it, e.g. `openai:gpt-5`.
    """
    named = type(client).__name__
    for beginning, provider in _PROVIDERS.items():
        if named.startswith(beginning):
            return provider
    scheme = model.partition(":")[0]
    return scheme if scheme in _SCHEMES else OTHER


def model_name(model: str) -> str:
    """The model's own name: without an address, which may hold a key."""
    if "://" not in model:
        return model
    try:
        parts = urlsplit(model)
        return parts.fragment or parts.hostname or OTHER
    except ValueError:
        return OTHER
