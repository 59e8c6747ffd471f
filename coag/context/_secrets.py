"""Nothing secret stands in a component: what looks like it is refused, never dropped silently."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from coag.errors import ConfigurationError
from coag.schema import Redactor, is_secret_setting

_PROGRAM = "source_code"
"""AutoGen's field for a tool's source: names in it are no names of secrets."""


def check_public(config: Any, where: str) -> None:
    """Refuses JSON in which a secret stands.

    Args:
        config: What would be written down.
        where: What it belongs to, for the error.

    Raises:
        ConfigurationError: Names the place, not the secret.
    """
    redactor = Redactor.from_environment()
    for path, key, text in _texts(config, ()):
        if _shows_secret(key, text, redactor):
            raise ConfigurationError(
                f"{where} holds what looks like a secret, at {'.'.join(path)!r}. Secrets are not "
                "written down: give it by an environment variable, or in code after loading."
            )


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Every text with its path and the name of its field."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key == _PROGRAM and isinstance(item, str):
                yield from (((*path, key), "", text) for text in _literals(item))
            else:
                yield from _texts(item, (*path, str(key)))
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _texts(item, (*path, str(number)))
    elif isinstance(value, str):
        yield path, path[-1] if path else "", value


def _literals(program: str) -> list[str]:
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return [program]
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [value for value in nodes if isinstance(value, str)]


def _shows_secret(key: str, text: str, redactor: Redactor) -> bool:
    field = json.dumps({key: text}, ensure_ascii=False)
    return redactor.clean(field) != field or _secret_address(text)


def _secret_address(text: str) -> bool:
    """Whether an address has a user or a secret parameter."""
    if "://" not in text or any(sign.isspace() for sign in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    named = (name for name, _ in parse_qsl(parts.query))
    return "@" in parts.netloc or any(is_secret_setting(name) for name in named)
