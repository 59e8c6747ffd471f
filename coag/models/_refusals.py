"""Telling a client that refuses a form of answer from a model that cannot be asked at all."""

from __future__ import annotations

import json
from functools import cache
from typing import cast

from coag.errors import ModelCallError, ModelTimeoutError
from coag.schema import Redactor

_SHOWN = 600
"""Characters of an error that are kept."""
_REFUSING = frozenset({400, 415, 422, 501})
"""HTTP statuses with which servers refuse a `response_format` that they do not know."""


def is_refusal(error: Exception) -> bool:
    """True if the same question may be answered when it is asked in a looser form.

    AutoGen's clients refuse with `ValueError` what their `model_info` rules out, or lose a bad
    answer in pydantic's `ValidationError`; servers refuse with a status. A client of ours tells
    either as the cause of its own error.
    """
    if isinstance(error, ModelCallError):
        return isinstance(error.__cause__, Exception) and is_refusal(error.__cause__)
    if isinstance(error, json.JSONDecodeError):
        return False
    return isinstance(error, ValueError | NotImplementedError) or _status(error) in _REFUSING


def call_error(model: str, error: Exception) -> ModelCallError:
    """The error for a client's error that is not a refusal: of the client's own type, too."""
    kind = ModelTimeoutError if isinstance(error, TimeoutError) else ModelCallError
    found = _also(kind, type(error))(model, reason_of(error))
    if type(found) is not kind:
        told = {name: value for name, value in vars(error).items() if not name.startswith("__")}
        vars(found).update(told)
    return found


@cache
def _also(kind: type[ModelCallError], own: type[Exception]) -> type[ModelCallError]:
    """An error that is both; `kind` alone where no class can be."""
    if issubclass(kind, own):
        return kind

    def begin(self: ModelCallError, model: str, reason: str) -> None:
        # The client's own constructor wants a response or a body.
        BaseException.__init__(self, str(kind(model, reason)))
        vars(self)["_asked"] = (model, reason)

    def reduce(self: ModelCallError) -> tuple[type[ModelCallError], tuple[str, str]]:
        # A class that is made here cannot be found again by its name.
        return kind, vars(self)["_asked"]

    name = kind.__name__ if own.__module__ == "builtins" else own.__name__
    methods = {"__init__": begin, "__reduce__": reduce, "__module__": kind.__module__}
    try:
        return cast("type[ModelCallError]", type(name, (kind, own), methods))
    except TypeError:  # some errors of Python's own have another layout
        return kind


def reason_of(error: BaseException) -> str:
    """The error and what it was caused by, in one line without keys."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 3:
        text = " ".join(str(current).split())
        parts.append(f"{type(current).__name__}: {text}" if text else type(current).__name__)
        current = current.__cause__
    text = Redactor.from_environment().clean_text(", because of ".join(parts))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _status(error: Exception) -> int | None:
    """The HTTP status, where the error has one: `openai`, `anthropic`, `ollama` and `httpx`."""
    for holder in (error, getattr(error, "response", None)):
        status: object = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None
