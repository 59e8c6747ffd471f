"""Telling a client that refuses a form of answer from a model that cannot be asked at all."""

from __future__ import annotations

import json

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
    """The error for a client's error that is not a refusal."""
    kind = ModelTimeoutError if isinstance(error, TimeoutError) else ModelCallError
    return kind(model, reason_of(error))


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
