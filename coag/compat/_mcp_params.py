"""Parameters of a server: secrets by reference, and what of them may be shown or dumped."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams

from coag.errors import ConfigurationError
from coag.schema import REDACTED, Redactor, is_secret_setting

ServerParams = StdioServerParams | StreamableHttpServerParams
"""How a server is reached: as a process of its own, or by Streamable HTTP."""
_ONLY_REFERENCE = re.compile(r"(?:(?:Bearer|Basic|[Tt]oken) )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def label(params: ServerParams) -> str:
    """How the server is called in messages: command and script, or address; no secret."""
    if isinstance(params, StreamableHttpServerParams):
        address = urlsplit(params.url)
        port = f":{address.port}" if address.port else ""
        return f"{address.scheme}://{address.hostname}{port}{address.path}"
    shown = [after for before, after in pairwise(("", *params.args)) if not _is_secret(before)]
    script = next((arg for arg in shown if not re.search(r"^-|\s", arg)), "")
    named = " ".join(PurePath(part).name for part in (params.command, script) if part)
    return Redactor().clean_text(named)


def expanded(params: ServerParams, environment: Mapping[str, str] | None = None) -> ServerParams:
    """The parameters with every `${NAME}` replaced by the environment variable of that name.

    Raises:
        ConfigurationError: There is no such variable.
    """
    variables = os.environ if environment is None else environment

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in variables:
            raise ConfigurationError(
                f"MCP server {label(params)!r} needs the environment variable {found[1]!r}, which "
                "is not set."
            )
        return variables[found[1]]

    def filled(value: Any) -> Any:
        return _REFERENCE.sub(value_of, value) if isinstance(value, str) else value

    if isinstance(params, StreamableHttpServerParams):
        headers = _mapped(params.headers, filled)
        return params.model_copy(update={"url": filled(params.url), "headers": headers})
    args = [filled(arg) for arg in params.args]
    return params.model_copy(update={"args": args, "env": _mapped(params.env, filled)})


def dumpable(params: ServerParams) -> ServerParams:
    """The parameters as they may be written down.

    Each value of `env` and `headers` that is not a reference (`Bearer ${NAME}` is one, too) is
    replaced by one to the environment variable of the same name; of a header: in capitals, with
    `_` for `-`.

    Raises:
        ConfigurationError: An argument or the address seems to hold a secret, or the address has
            a user, a query or a fragment that is no reference; what it is, is not told.
    """
    if isinstance(params, StreamableHttpServerParams):
        _check(params, [params.url], secret=_has_more_than_a_place(params.url))
        headers = params.headers and {
            name: _by_reference(value, name.upper()) for name, value in params.headers.items()
        }
        return params.model_copy(update={"headers": headers})
    _check(params, params.args, secret=_has_secret_option(params.args))
    env = params.env and {name: _by_reference(value, name) for name, value in params.env.items()}
    return params.model_copy(update={"env": env})


def _mapped(values: Mapping[str, Any] | None, change: Any) -> dict[str, Any] | None:
    return None if values is None else {name: change(value) for name, value in values.items()}


def _by_reference(value: Any, variable: str) -> str:
    if isinstance(value, str) and _ONLY_REFERENCE.fullmatch(value):
        return value
    return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', variable)}}}"


def _has_more_than_a_place(url: str) -> bool:
    """Whether an address says more than where the server is, beside references."""
    address = urlsplit(_REFERENCE.sub("", url))
    values = (part.partition("=") for part in address.query.split("&"))
    told = any(value or not equals for name, equals, value in values if name)
    return "@" in address.netloc or told or bool(address.fragment)


def _has_secret_option(args: Sequence[str]) -> bool:
    """Whether an option that is named like a secret has a value that is no reference."""
    for option, after in pairwise((*args, "")):
        name, equals, value = option.partition("=")
        if not equals:
            value = "" if after.startswith("-") else after
        if value and _is_secret(name) and not _ONLY_REFERENCE.fullmatch(value):
            return True
    return False


def _is_secret(option: str) -> bool:
    return option.startswith("-") and is_secret_setting(option)


def _check(params: ServerParams, texts: Sequence[str], *, secret: bool) -> None:
    plain = _REFERENCE.sub(REDACTED, " ".join(texts))
    if secret or Redactor.from_environment().clean_text(plain) != plain:
        raise ConfigurationError(
            f"MCP server {label(params)!r} cannot be dumped: an argument or its address seems to "
            "hold a secret. Write ${NAME} there, the name of an environment variable that has it."
        )
