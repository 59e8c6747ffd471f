"""Is the server there, and does it list the model?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import httpx
from autogen_core import ComponentModel
from pydantic import SecretStr

from coag.models import model_name_of, reason_of

from ._findings import Finding, Found, Grade, Probe
from ._patient import Patient, component_of

_NAMED = 5
"""How many models of a list are named."""
_OLLAMA = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directory:
    """Where a server lists its models."""

    url: str
    headers: Mapping[str, str]


async def listed(patient: Patient) -> tuple[Finding, ...]:
    """Asks the server for its list of models, at the address that the client has."""
    directory = _directory_of(component_of(patient.client))
    if directory is None:
        text = "The client tells no address at which models are listed."
        return (_finding(Found.SKIPPED, Grade.UNKNOWN, text),)
    begun = time.monotonic()
    try:
        async with httpx.AsyncClient(timeout=patient.limits.seconds) as http:
            response = await http.get(directory.url, headers=dict(directory.headers))
    except httpx.HTTPError as error:
        text = f"The server cannot be reached: {reason_of(error)}."
        advice = "Start it, or check the address in the spec."
        return (_finding(Found.FAILED, Grade.BAD, text, advice),)
    figures = {"answer_seconds": time.monotonic() - begun}
    if response.status_code in (401, 403):
        text = f"The server refuses the key (status {response.status_code})."
        return (_finding(Found.REFUSED, Grade.BAD, text, "Check the key in the environment."),)
    finding = _judged(_names(response), model_name_of(patient.client), response.status_code)
    return (finding.model_copy(update={"figures": figures}),)


def _judged(names: tuple[str, ...], model: str, status: int) -> Finding:
    if not names:
        text = f"The server is there, but lists no models (status {status})."
        return _finding(Found.UNCLEAR, Grade.UNKNOWN, text)
    if model in names or f"{model}:latest" in names:
        return _finding(Found.YES, Grade.GOOD, f"The server lists {model!r}.")
    # A server may call a model by the path of its file, which is nobody's business.
    shown = ", ".join(repr(name.rpartition("/")[2]) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    text = f"The server does not list {model!r}, but {shown}{more}."
    advice = "Servers of one model answer to any name; of others ask by a listed name."
    return _finding(Found.NO, Grade.POOR, text, advice)


def _directory_of(component: ComponentModel | None) -> _Directory | None:
    if component is None:
        return None
    config = component.config
    if component.provider.startswith("autogen_ext.models.ollama"):
        host = str(config.get("host") or os.environ.get("OLLAMA_HOST") or _OLLAMA)
        address = host if "://" in host else f"http://{host}"
        return _Directory(url=f"{address.rstrip('/')}/api/tags", headers={})
    base = config.get("base_url")
    if not component.provider.startswith("autogen_ext.models.openai") or not base:
        return None
    key: object = config.get("api_key")
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    return _Directory(url=str(httpx.URL(str(base)).copy_with(path=_models(base))), headers=headers)


def _models(base: object) -> str:
    return f"{httpx.URL(str(base)).path.rstrip('/')}/models"


def _names(response: httpx.Response) -> tuple[str, ...]:
    """The names in OpenAI's or Ollama's list; none if it is no such list."""
    try:
        told = _mapping(response.json())
    except ValueError:
        return ()
    entries: object = told.get("data") or told.get("models")
    if not isinstance(entries, list):
        return ()
    named = (_mapping(entry) for entry in cast("list[object]", entries))
    names = (entry.get("id") or entry.get("name") for entry in named)
    return tuple(name for name in names if isinstance(name, str))


def _mapping(value: object) -> Mapping[str, object]:
    """The value if it is an object of JSON, else an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _finding(found: Found, grade: Grade, text: str, advice: str = "") -> Finding:
    return Finding(probe=Probe.LISTED, found=found, grade=grade, text=text, advice=advice)
