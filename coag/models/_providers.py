"""Making AutoGen's clients; the one place that imports the providers' packages, when asked to."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, cast

from autogen_core.models import ChatCompletionClient, ModelFamily, ModelInfo
from pydantic import ValidationError

from coag.errors import ConfigurationError, MissingCredentialError

from ._clients import OPENAI_FAMILY

_OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "none"
"""Sent to servers that need no key: the client insists on one."""


def open_openai(name: str) -> ChatCompletionClient:
    """A model at OpenAI, or at OPENAI_BASE_URL."""
    try:
        from autogen_ext.models.openai import OpenAIChatCompletionClient
    except ImportError as error:
        raise _missing_extra("openai", error) from error
    key = _key("OpenAI", "OPENAI_API_KEY")
    url = os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
    try:
        return OpenAIChatCompletionClient(model=name, api_key=key, base_url=url)
    except ValueError:
        # AutoGen asks for a description of models that are newer than it is.
        info = _capable(OPENAI_FAMILY)
        return OpenAIChatCompletionClient(model=name, api_key=key, base_url=url, model_info=info)


def open_url(url: str, name: str) -> ChatCompletionClient:
    """A model on any server that speaks OpenAI's API; OPENAI_API_KEY is sent if it is set."""
    try:
        from autogen_ext.models.openai import OpenAIChatCompletionClient
    except ImportError as error:
        raise _missing_extra("openai", error) from error
    # AutoGen remarks in every call that a local server names its model otherwise than we do.
    warnings.filterwarnings("ignore", message="Resolved model mismatch", category=UserWarning)
    return OpenAIChatCompletionClient(
        model=name,
        base_url=url,
        api_key=os.environ.get("OPENAI_API_KEY") or _NO_KEY,
        model_info=_capable(ModelFamily.UNKNOWN),
    )


def open_ollama(name: str) -> ChatCompletionClient:
    """A model of the Ollama server at OLLAMA_HOST, by default the one on this machine."""
    try:
        from autogen_ext.models.ollama import OllamaChatCompletionClient
    except ImportError as error:
        raise _missing_extra("ollama", error) from error
    try:
        return OllamaChatCompletionClient(model=name)
    except ValueError:
        info = _capable(ModelFamily.UNKNOWN)
        return OllamaChatCompletionClient(model=name, model_info=info)


def open_anthropic(name: str) -> ChatCompletionClient:
    """A model at Anthropic."""
    try:
        from autogen_ext.models.anthropic import AnthropicChatCompletionClient
    except ImportError as error:
        raise _missing_extra("anthropic", error) from error
    key = _key("Anthropic", "ANTHROPIC_API_KEY")
    info = _capable(ModelFamily.UNKNOWN)
    info["structured_output"] = False
    try:
        return AnthropicChatCompletionClient(model=name, api_key=key)
    except ValueError:
        return AnthropicChatCompletionClient(model=name, api_key=key, model_info=info)


def open_file(path: Path) -> ChatCompletionClient:
    """The client that an AutoGen component file describes; it imports what the file names."""
    described = _read_component(path)
    provider = described.get("provider")
    try:
        return ChatCompletionClient.load_component(described)
    except ImportError as error:
        raise ConfigurationError(
            f"{path}: provider {provider!r} cannot be imported ({error}). For AutoGen's own "
            "clients install the extra, e.g. pip install 'coag[openai]'."
        ) from error
    except ValidationError as error:
        # Only the places are told: the values may hold a key.
        places = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors())
        raise ConfigurationError(
            f"{path}: not a valid component of {provider!r}; wrong at: {places}."
        ) from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise ConfigurationError(
            f"{path}: provider {provider!r} is no chat completion client ({error})."
        ) from error


def _read_component(path: Path) -> dict[str, Any]:
    try:
        described: object = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(f"{path}: there is no such component file.") from error
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: no valid JSON ({error}).") from error
    if not isinstance(described, dict) or "provider" not in described:
        raise ConfigurationError(
            f"{path}: no AutoGen component; it must be an object with `provider` and `config`, "
            "as `client.dump_component().model_dump_json()` writes it."
        )
    return cast("dict[str, Any]", described)


def _capable(family: str) -> ModelInfo:
    """The abilities assumed of a model that AutoGen does not know; the ladder finds out."""
    return ModelInfo(
        vision=False,
        function_calling=True,
        json_output=True,
        family=family,
        structured_output=True,
        multiple_system_messages=False,
    )


def _key(provider: str, variable: str) -> str:
    key = os.environ.get(variable)
    if not key:
        raise MissingCredentialError(provider, variable)
    return key


def _missing_extra(extra: str, error: ImportError) -> ConfigurationError:
    return ConfigurationError(
        f"This model needs a package that is not installed or does not fit ({error}); "
        f"install the extra: pip install 'coag[{extra}]' "
        f"(in a checkout: pip install -e '.[{extra}]')."
    )
