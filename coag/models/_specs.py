"""Naming a model in one word, as on a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from autogen_core.models import ChatCompletionClient

from coag.errors import ConfigurationError, UnknownNameError

from ._clients import COMPLETION_TOKENS, MAX_TOKENS, NUM_PREDICT
from ._providers import open_anthropic, open_file, open_ollama, open_openai, open_url
from ._window import with_window

SchemeFactory: TypeAlias = Callable[[str], ChatCompletionClient]
"""Makes a client from what stands after the colon of a spec."""

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
    """The spec as it may stand in a log: without user, password and query of a URL."""
    scheme: str
    """`openai`, `ollama`, `anthropic`, `url`, `file`, or a scheme of the caller's."""
    name: str
    """The model's name; for a file its path."""
    limit_name: str | None
    """The client's name for the completion limit; None where only the client can tell."""
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
            return _from_scheme(scheme, name, own)
        if text.endswith(".json"):
            path = Path(text)
            return cls(
                public=text,
                scheme="file",
                name=text,
                limit_name=None,
                factory=lambda: open_file(path),
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


def _from_scheme(scheme: str, name: str, own: Mapping[str, SchemeFactory]) -> ModelSpec:
    if not name:
        raise ConfigurationError(f"Model spec '{scheme}:' lacks a name: {scheme}:NAME.")
    if scheme in own:
        factory, limit_name = own[scheme], None
    else:
        factory, limit_name = _SCHEMES[scheme]
    return ModelSpec(
        public=f"{scheme}:{name}",
        scheme=scheme,
        name=name,
        limit_name=limit_name,
        factory=lambda: factory(name),
    )


def _from_url(text: str, own: Mapping[str, SchemeFactory]) -> ModelSpec:
    parts = urlsplit(text)
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
        factory=lambda: open_url(url, parts.fragment),
    )


def _forms(own: Mapping[str, SchemeFactory]) -> tuple[str, ...]:
    named = {f"{scheme}:NAME" for scheme in (*_SCHEMES, *own)}
    return (*named, "URL#NAME (any OpenAI-compatible server)", "FILE.json (an AutoGen component)")
