"""What is known of the models of the main providers, by a table that comes with the package.

AutoGen 0.7.5 has such tables, too; they end with the models of 2025, and a client for a newer one
cannot be made without a `model_info`. Ours is data, `known_models.json`, written at a release by
`make model-table`; it names its source and its day. What is not in it is assumed, and `coag doctor`
finds out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

OPENAI = "openai"
ANTHROPIC = "anthropic"
_HOSTS = {
    "api.openai.com": OPENAI,
    "generativelanguage.googleapis.com": "gemini",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
}
"""Who speaks OpenAI's API under which name. Anthropic's server does, too, but ignores schemas."""
_SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8}|latest)$")
"""The end of a name that means one day's state of a model, or its newest."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What the table says of a model."""

    window: int
    """Tokens that it reads at once, at most."""
    vision: bool
    """Whether it sees images."""
    function_calling: bool
    """Whether it calls tools."""
    structured_output: bool
    """Whether its provider's server enforces a JSON schema."""


def known_model(provider: str | None, name: object) -> KnownModel | None:
    """The table's row of a provider's model; None if there is none.

    A snapshot that has no row (`gpt-5.6-2026-07-01`) gets that of its model.
    """
    models = _table().get(provider or "")
    if models is None or not isinstance(name, str):
        return None
    row = models.get(name) or models.get(_SNAPSHOT.sub("", name))
    return None if row is None else KnownModel(*row)


def provider_at(url: object) -> str | None:
    """Whose server an address is; None for any other, which may call its models as it likes."""
    return _HOSTS.get(urlsplit(str(url)).hostname or "")


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = files("coag.models").joinpath("known_models.json").read_text(encoding="utf-8")
    return json.loads(text)["models"]
