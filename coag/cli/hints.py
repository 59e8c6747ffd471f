"""What to check when a model could not be asked."""

from __future__ import annotations

import os
from urllib.parse import urlsplit, urlunsplit

from coag.errors import ModelCallError
from coag.models import ModelSpec

_KEYS = {"openai": "OPENAI_API_KEY", "url": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "ollama": ("OLLAMA_HOST", "http://127.0.0.1:11434"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}
"""Where a provider is met: the variable that says so, and the address without it."""


def what_to_check(error: ModelCallError, spec: ModelSpec) -> str:
    """A sentence on what to do, by how the server answered; names its address where known."""
    address = _address(spec)
    server = f"the server at {address}" if address else f"the server of {spec.public}"
    status = _status(error)
    if status in {401, 403}:
        key = _KEYS.get(spec.scheme)
        return f"Check the key{f' in {key}' if key else ''}: {server} refused it."
    if status == 404:
        return f"Check the model's name {spec.name!r} and the URL: {server} does not know them."
    if status == 429:
        return f"Wait, or check the account: {server} takes no more requests for now."
    if status is not None:
        return f"Check that {server} can serve this model: it answered with status {status}."
    return f"Check that {server} runs and knows this model."


def _address(spec: ModelSpec) -> str:
    """Where the model is asked, without user, password and query; empty where it is not known."""
    if spec.scheme == "url":
        return spec.public.partition("#")[0]
    if spec.scheme not in _ADDRESSES:
        return ""
    variable, usual = _ADDRESSES[spec.scheme]
    parts = urlsplit(os.environ.get(variable) or usual)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _status(error: BaseException) -> int | None:
    """The HTTP status in the chain of causes, where there is one."""
    current: BaseException | None = error
    while current is not None:
        for holder in (current, getattr(current, "response", None)):
            status: object = getattr(holder, "status_code", None)
            if isinstance(status, int):
                return status
        current = current.__cause__
    return None
