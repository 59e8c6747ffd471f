"""Model clients: made from a spec, and what is known of each."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

from autogen_core.models import ChatCompletionClient, ModelFamily, ModelInfo
from pydantic import BaseModel, ValidationError

from coag.errors import ConfigurationError, MissingCredentialError, UnknownNameError
from coag.schema import OutputMode

from .client import capable_info
from .known import ANTHROPIC, OPENAI, KnownModel, known_model, provider_at
from .response_format import response_format
from .scripted import ScriptedModel

_LOG = logging.getLogger(__name__)

# Clients are recognised by the names of their classes, so that no provider's package is imported.
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


def innermost(client: ChatCompletionClient) -> ChatCompletionClient:
    """The client that speaks to the server, whatever is wrapped around it."""
    # Every call asks, and a mock has whatever it is asked for.
    while isinstance(within := getattr(client, "wrapped", None), ChatCompletionClient):
        client = within
    return client


def modes_of(client: ChatCompletionClient) -> tuple[OutputMode, ...]:
    """The output modes that the client says it can do, from the strictest; the prompt always is."""
    info = client.model_info
    claims = {"structured_output": OutputMode.JSON_SCHEMA, "json_output": OutputMode.JSON_MODE}
    return (*(mode for claim, mode in claims.items() if info.get(claim)), OutputMode.PROMPT)


def form_arguments(
    client: ChatCompletionClient, mode: OutputMode, output_type: type[BaseModel]
) -> tuple[bool | type[BaseModel] | None, dict[str, Any]]:
    """The `json_output` and the extra arguments that ask this client for this mode.

    OpenAI-like clients get the schema as a `response_format`: with `json_output=Model` they
    raise on a bad answer and lose its text and its usage.
    """
    if mode is OutputMode.JSON_MODE:
        return True, {}
    if mode is not OutputMode.JSON_SCHEMA:
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
    if inner:
        return inner in _standing_options(client, outer)
    return config_of(innermost(client)).get(outer) is not None


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


_OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "none"
"""Sent to servers that need no key: the client insists on one."""
_CLASSES = {
    OPENAI: "OpenAIChatCompletionClient",
    ANTHROPIC: "AnthropicChatCompletionClient",
    "ollama": "OllamaChatCompletionClient",
}
"""AutoGen's clients, by their extra."""
_UNKNOWN = (
    "coag has no row for the model %r: it is assumed to call tools and to keep to schemas, and not "
    "to see images. `coag doctor` finds out what it can do."
)


def open_openai(name: str) -> ChatCompletionClient:
    """A model at OpenAI, or at OPENAI_BASE_URL."""
    return _made(
        OPENAI,
        capable_info(OPENAI_FAMILY),
        key_of="OpenAI",
        model=name,
        base_url=os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL,
    )


def open_url(url: str, name: str) -> ChatCompletionClient:
    """A model on any server that speaks OpenAI's API; OPENAI_API_KEY is sent if it is set."""
    # AutoGen remarks in every call that a local server names its model otherwise than we do.
    warnings.filterwarnings("ignore", message="Resolved model mismatch", category=UserWarning)
    provider = provider_at(url)
    info = capable_info(ModelFamily.UNKNOWN)
    if known := known_model(provider, name):
        info = _known_info(known, info, enforces=True)
    elif provider:
        _LOG.warning(_UNKNOWN, name)
    return _client_class(OPENAI)(
        model=name,
        base_url=url,
        api_key=os.environ.get("OPENAI_API_KEY") or _NO_KEY,
        model_info=info,
    )


def open_ollama(name: str) -> ChatCompletionClient:
    """A model of the Ollama server at OLLAMA_HOST, by default the one on this machine."""
    return _made("ollama", capable_info(ModelFamily.UNKNOWN), model=name)


def open_anthropic(name: str) -> ChatCompletionClient:
    """A model at Anthropic."""
    info: ModelInfo = {**capable_info(ModelFamily.UNKNOWN), "structured_output": False}
    return _made(ANTHROPIC, info, key_of="Anthropic", model=name)


def _made(
    extra: str, assumed: ModelInfo, *, key_of: str = "", **arguments: Any
) -> ChatCompletionClient:
    """AutoGen's client, described by our table, else by AutoGen's, else as assumed."""
    make = _client_class(extra)
    if key_of:
        variable = f"{key_of.upper()}_API_KEY"
        arguments["api_key"] = os.environ.get(variable)
        if not arguments["api_key"]:
            raise MissingCredentialError(key_of, variable)
    known = known_model(extra, arguments["model"])
    info = assumed
    try:
        client = make(**arguments)
    except ValueError:  # AutoGen does not know the model
        client = None
    # AutoGen takes every Claude that it does not know for Claude 2, which calls no tools.
    if client and (extra != ANTHROPIC or client.model_info["function_calling"]):
        if known is None:
            return client
        info = client.model_info
    if known is not None:
        info = _known_info(known, info, enforces=assumed["structured_output"])
    elif key_of:
        _LOG.warning(_UNKNOWN, arguments["model"])
    return make(**arguments, model_info=info)


def _client_class(extra: str) -> Callable[..., ChatCompletionClient]:
    try:
        return getattr(import_module(f"autogen_ext.models.{extra}"), _CLASSES[extra])
    except ImportError as error:
        lacking = f"This model needs a package that is not installed or does not fit ({error})"
        raise ConfigurationError(
            f"{lacking}; install the extra: pip install 'coag[{extra}]' "
            f"(in a checkout: pip install -e '.[{extra}]')."
        ) from error


def _known_info(known: KnownModel, info: ModelInfo, *, enforces: bool) -> ModelInfo:
    """A description with what the table knows; `enforces` says whether the client sends schemas."""
    return {
        **info,
        "vision": known.vision,
        "function_calling": known.function_calling,
        "structured_output": known.structured_output and enforces,
    }


def open_file(path: Path) -> ChatCompletionClient:
    """The client that an AutoGen component file describes; it imports what the file names."""
    described = _read_component(path)
    provider = described.get("provider")
    try:
        return _loaded(described)
    except ImportError as error:
        problem = (
            f"provider {provider!r} cannot be imported ({error}). For AutoGen's own clients "
            "install the extra, e.g. pip install 'coag[openai]'."
        )
        raise ConfigurationError(f"{path}: {problem}") from error
    except ValidationError as error:
        # Only the places are named: the values may hold a key.
        places = ", ".join(".".join(map(str, detail["loc"])) for detail in error.errors())
        problem = f"not a valid component of {provider!r}; wrong at: {places}."
        raise ConfigurationError(f"{path}: {problem}") from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        problem = f"provider {provider!r} is no chat completion client ({error})."
        raise ConfigurationError(f"{path}: {problem}") from error


def _loaded(described: dict[str, Any]) -> ChatCompletionClient:
    """The described client; what it does not say of its model, our table says where it can."""
    config: Any = described.get("config")
    if not isinstance(config, Mapping) or {"model_info", "model_capabilities"} & {*config}:
        return ChatCompletionClient.load_component(described)
    settings = cast("Mapping[str, Any]", config)
    kind = str(described["provider"]).rpartition(".")[2]
    provider = {name: extra for extra, name in _CLASSES.items()}.get(kind)
    if provider == OPENAI:
        provider = provider_at(settings.get("base_url") or _OPENAI_URL)
    known = known_model(provider, settings.get("model"))
    if known is None:
        return ChatCompletionClient.load_component(described)
    try:
        info = ChatCompletionClient.load_component(described).model_info
    except ValueError:  # AutoGen does not know the model
        info = capable_info(OPENAI_FAMILY if provider == OPENAI else ModelFamily.UNKNOWN)
    info = _known_info(known, info, enforces=provider != ANTHROPIC)
    filled = {**described, "config": {**settings, "model_info": info}}
    return ChatCompletionClient.load_component(filled)


def _read_component(path: Path) -> dict[str, Any]:
    try:
        described: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"no valid JSON ({error})"
        if isinstance(error, OSError):
            problem = f"cannot be read ({error.strerror})"
        if isinstance(error, FileNotFoundError):
            problem = "there is no such component file"
        raise ConfigurationError(f"{path}: {problem}.") from error
    if not isinstance(described, dict) or "provider" not in described:
        form = "an object with `provider` and `config`, as `client.dump_component()` gives it"
        raise ConfigurationError(f"{path}: no AutoGen component: it must be {form}.")
    return cast("dict[str, Any]", described)


# ---- How much a model reads and writes at once: as its client, its name or its server says ----


CONTEXT_WINDOW = "context_window"
"""The key of the window in a `model_info`; ours, AutoGen has none."""
SECONDS = 2.0
"""How long a server may take to report its window."""
OLLAMA = 4_096
"""Ollama's own `num_ctx`; it cuts longer prompts without a word."""
_SIZE_KEYS = ("max_model_len", "max_context_length", "context_length", "context_window", "n_ctx")
"""What servers call it in their list of models: vLLM, LM Studio, OpenRouter, others."""


def window_of(client: ChatCompletionClient) -> int | None:
    """Tokens of the model's window as far as they are known without asking anybody.

    In this order: `model_info["context_window"]`, Ollama's `num_ctx`, our table, AutoGen's own.
    """
    inner = innermost(client)
    window = cast("Mapping[str, Any]", client.model_info).get(CONTEXT_WINDOW)
    if _is_size(window):
        return cast("int", window)
    config = config_of(inner)
    options = config.get("options")
    if isinstance(options, Mapping) and _is_size(size := cast("Any", options).get("num_ctx")):
        return cast("int", size)
    if is_ollama_like(inner):
        return OLLAMA
    if known := known_model(_provider_of(inner), config.get("model")):
        return known.window
    return _in_table(inner, config.get("model"))


def _provider_of(client: ChatCompletionClient) -> str | None:
    """Whose models the client speaks to, as far as it says so."""
    if is_openai_like(client):
        return provider_at(_api(client).base_url)
    return ANTHROPIC if _is(client, _ANTHROPIC_LIKE) else None


def with_window(client: ChatCompletionClient, window: int) -> ChatCompletionClient:
    """The client, whose `model_info` has its window from now on.

    Clients of one model may share the dictionary, e.g. AutoGen's table: this one gets a copy.
    """
    info = cast("dict[str, Any]", client.model_info)
    for name, value in vars(client).items():
        if value is info:
            setattr(client, name, {**info, CONTEXT_WINDOW: window})
            return client
    info[CONTEXT_WINDOW] = window
    return client


def can_be_asked(client: ChatCompletionClient) -> bool:
    """Whether its server may report the window: it speaks OpenAI's API and is not OpenAI's."""
    return is_openai_like(client) and "api.openai.com" not in str(_api(client).base_url)


async def asked_window(client: ChatCompletionClient) -> int | None:
    """Tokens of the window as the server reports them; None where it does not, or not in time.

    Asks for the list of models, and llama.cpp's server for its properties.
    """
    try:
        async with asyncio.timeout(SECONDS):
            return await _listed(client) or await _of_llama_cpp(client)
    # Whatever is raised: the window is optional here, and the turn reports faults.
    except Exception:
        return None


async def _listed(client: ChatCompletionClient) -> int | None:
    name = config_of(innermost(client)).get("model")
    api = _api(client).with_options(max_retries=0)
    models = [one.model_dump() async for one in api.models.list()]
    mine = [one for one in models if one.get("id") == name] or models[: len(models) == 1]
    sizes = [one.get(key) for one in mine for key in _SIZE_KEYS]
    return next((size for size in sizes if _is_size(size)), None)


async def _of_llama_cpp(client: ChatCompletionClient) -> int | None:
    api = _api(client)
    root = str(api.base_url).rstrip("/").removesuffix("/v1")
    props: Any = await api.with_options(base_url=root, max_retries=0).get("/props", cast_to=object)
    size: object = props["default_generation_settings"]["n_ctx"]
    return cast("int", size) if _is_size(size) else None


def _api(client: ChatCompletionClient) -> Any:
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


# ---- Naming a model in one word, as on a command line ----


SchemeFactory: TypeAlias = Callable[[str], ChatCompletionClient]
"""Makes a client from what follows the colon of a spec."""

_SCHEMES: Mapping[str, tuple[SchemeFactory, str]] = {
    "openai": (open_openai, COMPLETION_TOKENS),
    "ollama": (open_ollama, NUM_PREDICT),
    "anthropic": (open_anthropic, MAX_TOKENS),
}

_WINDOW = re.compile(r"(.+)\?window=(\d{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model as it was named; nothing is opened yet. Printing it shows no secrets."""

    public: str
    """The spec as it may be logged: without user, password and query of a URL."""
    scheme: str
    """`openai`, `ollama`, `anthropic`, `url`, `file`, or a scheme of the caller's."""
    name: str
    """The model's name; for a file its path."""
    limit_name: str | None
    """The client's name for the completion limit; None where only the client knows."""
    factory: Callable[[], ChatCompletionClient] = field(repr=False, compare=False)
    """Makes the client."""

    @classmethod
    def parse(cls, text: str, *, schemes: Mapping[str, SchemeFactory] | None = None) -> ModelSpec:
        """Reads a spec; `schemes` are further `SCHEME:NAME` forms.

        Any spec may end with `?window=TOKENS`: how much the model reads and writes at once.

        Raises:
            UnknownNameError: No form fits; the message lists all.
            ConfigurationError: The form is known but incomplete.
        """
        if (sized := _WINDOW.fullmatch(text)) is not None:
            return _with_window(cls.parse(sized[1], schemes=schemes), int(sized[2]))
        own = schemes or {}
        if "://" in text:
            return _from_url(text, own)
        scheme, colon, name = text.partition(":")
        if colon and (scheme in own or scheme in _SCHEMES):
            if not name:
                raise ConfigurationError(f"Model spec '{scheme}:' lacks a name: {scheme}:NAME.")
            make, limit = (own[scheme], None) if scheme in own else _SCHEMES[scheme]
            opening = partial(make, name)
            return cls(public=text, scheme=scheme, name=name, limit_name=limit, factory=opening)
        if text.endswith(".json"):
            return cls(
                public=text,
                scheme="file",
                name=text,
                limit_name=None,
                factory=partial(open_file, Path(text)),
            )
        raise UnknownNameError("form of model spec", text, _forms(own))

    def open(self) -> ChatCompletionClient:
        """Makes the client; nothing is sent yet.

        Raises:
            MissingCredentialError: The provider's key is not in the environment.
            ConfigurationError: A package is missing, or the component file is not usable.
        """
        return self.factory()


def _with_window(spec: ModelSpec, window: int) -> ModelSpec:
    if window < 1:
        raise ConfigurationError(f"Model spec {spec.public!r}: window={window} is no size.")
    return replace(
        spec,
        public=f"{spec.public}?window={window}",
        factory=lambda: with_window(spec.factory(), window),
    )


def open_model(
    spec: str, *, schemes: Mapping[str, SchemeFactory] | None = None
) -> ChatCompletionClient:
    """The client for a model spec; see `ModelSpec.parse` and `ModelSpec.open`."""
    return ModelSpec.parse(spec, schemes=schemes).open()


def _from_url(text: str, own: Mapping[str, SchemeFactory]) -> ModelSpec:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:  # its text may hold a part of a password
        raise ConfigurationError(
            "The address in a model spec cannot be read: write http://HOST:PORT/v1#NAME."
        ) from None
    host = parts.netloc.rpartition("@")[2]
    public = urlunsplit((parts.scheme, host, parts.path, "", parts.fragment))
    if parts.scheme not in ("http", "https") or not host:
        raise UnknownNameError("form of model spec", public, _forms(own))
    if not parts.fragment:
        raise ConfigurationError(
            f"Model spec {public!r} lacks the model's name: write {public}#NAME."
        )
    url = urlunsplit((parts.scheme, parts.netloc, parts.path, parts.query, ""))
    return ModelSpec(
        public=public,
        scheme="url",
        name=parts.fragment,
        limit_name=MAX_TOKENS,
        factory=partial(open_url, url, parts.fragment),
    )


def _forms(own: Mapping[str, SchemeFactory]) -> tuple[str, ...]:
    named = {f"{scheme}:NAME" for scheme in (*_SCHEMES, *own)}
    return (*named, "URL#NAME (any OpenAI-compatible server)", "FILE.json (an AutoGen component)")
