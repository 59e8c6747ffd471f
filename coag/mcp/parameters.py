"""How an MCP server is reached: secrets by reference, what may be shown and written down."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel

from coag._util.secrets import REDACTED, is_secret_setting
from coag.errors import ConfigurationError
from coag.schema import Redactor


class StdioServerParams(BaseModel):
    """A server that is started as a process of its own; as AutoGen's class of this name.

    `${NAME}` in arguments and in `env` refers to an environment variable.
    """

    type: Literal["StdioServerParams"] = "StdioServerParams"
    command: str
    args: list[str] = []
    env: dict[str, str] | None = None
    """Environment variables beside a few harmless ones that are passed on."""
    cwd: str | Path | None = None
    encoding: str = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"
    read_timeout_seconds: float = 5
    """Time of a call, where it is given."""


class StreamableHttpServerParams(BaseModel):
    """A server that is reached by Streamable HTTP; as AutoGen's class of this name.

    `${NAME}` in `url` and `headers` refers to an environment variable.
    """

    type: Literal["StreamableHttpServerParams"] = "StreamableHttpServerParams"
    url: str
    headers: dict[str, Any] | None = None
    timeout: float = 30.0
    """Seconds to connect and to send."""
    sse_read_timeout: float = 300.0
    """Seconds without any data of the server; the time of a call, where it is given."""
    terminate_on_close: bool = True
    """Whether the session is ended at the server, too."""


ServerParams = StdioServerParams | StreamableHttpServerParams
"""How a server is reached: as a process of its own, or by Streamable HTTP."""
_KINDS: Mapping[str, type[ServerParams]] = {
    kind.__name__: kind for kind in (StdioServerParams, StreamableHttpServerParams)
}
_ONLY_REFERENCE = re.compile(r"(?:(?:Bearer|Basic|[Tt]oken) )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def supported(params: object) -> ServerParams:
    """Parameters of ours for those that are given, which may be AutoGen's.

    Raises:
        ConfigurationError: They name another transport.
    """
    if isinstance(params, StdioServerParams | StreamableHttpServerParams):
        return params
    kind = _KINDS.get(str(getattr(params, "type", "")))
    if kind is None or not isinstance(params, BaseModel):
        raise ConfigurationError(
            f"{type(params).__name__} is no server that can be used here: give StdioServerParams "
            "or StreamableHttpServerParams (which took the place of SSE)."
        )
    return kind.model_validate(params.model_dump(exclude_unset=True))


def label(params: ServerParams) -> str:
    """How the server is called in messages: command and script, or address; no secret."""
    if isinstance(params, StreamableHttpServerParams):
        address = urlsplit(params.url)
        port = f":{address.port}" if address.port else ""
        return f"{address.scheme}://{address.hostname}{port}{address.path}"
    public = [after for before, after in pairwise(("", *params.args)) if not _is_secret(before)]
    script = next((arg for arg in public if not re.search(r"^-|\s", arg)), "")
    named = " ".join(PurePath(part).name for part in (params.command, script) if part)
    return Redactor().clean_text(named)


def expanded(params: ServerParams) -> ServerParams:
    """The parameters with every `${NAME}` replaced by the environment variable of that name.

    Raises:
        ConfigurationError: There is no such variable.
    """

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ConfigurationError(
                f"MCP server {label(params)!r} needs the environment variable {found[1]!r}, which "
                "is not set."
            )
        return os.environ[found[1]]

    def filled(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return (
            None
            if values is None
            else {
                name: _REFERENCE.sub(value_of, value) if isinstance(value, str) else value
                for name, value in values.items()
            }
        )

    if isinstance(params, StreamableHttpServerParams):
        url = _REFERENCE.sub(value_of, params.url)
        return params.model_copy(update={"url": url, "headers": filled(params.headers)})
    args = [_REFERENCE.sub(value_of, arg) for arg in params.args]
    return params.model_copy(update={"args": args, "env": filled(params.env)})


def dumpable(params: ServerParams) -> ServerParams:
    """The parameters as they may be written down.

    Each value of `env` and `headers` that is not a reference (`Bearer ${NAME}` is one, too) is
    replaced by one to the environment variable of the same name; of a header: in capitals, with
    `_` for `-`.

    Raises:
        ConfigurationError: An argument or the address seems to hold a secret.
    """
    over_http = isinstance(params, StreamableHttpServerParams)
    texts = [params.url] if over_http else params.args
    secret = _has_more_than_a_place(params.url) if over_http else _has_secret_option(params.args)
    plain = _REFERENCE.sub(REDACTED, " ".join(texts))
    if secret or Redactor.from_environment().clean_text(plain) != plain:
        raise ConfigurationError(
            f"MCP server {label(params)!r} cannot be dumped: an argument or its address seems to "
            "hold a secret. Write ${NAME} there, the name of an environment variable that has it."
        )
    if over_http:
        headers = params.headers or {}
        references = {name: _by_reference(headers[name], name.upper()) for name in headers}
        return params.model_copy(update={"headers": params.headers and references})
    env = params.env and {name: _by_reference(value, name) for name, value in params.env.items()}
    return params.model_copy(update={"env": env})


def _by_reference(value: Any, variable: str) -> str:
    if isinstance(value, str) and _ONLY_REFERENCE.fullmatch(value):
        return value
    return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', variable)}}}"


def _has_more_than_a_place(url: str) -> bool:
    """Whether an address says more than where the server is, beside references."""
    address = urlsplit(_REFERENCE.sub("", url))
    values = (part.partition("=") for part in address.query.split("&"))
    has_value = any(value or not equals for name, equals, value in values if name)
    return "@" in address.netloc or has_value or bool(address.fragment)


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
