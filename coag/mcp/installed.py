"""Which major of the mcp package is installed, and our module for it."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol, cast

from coag.errors import ConfigurationError

from .server import MakeServer
from .session import OpenSession

MCP_BOUND = "mcp>=1.21.2,<3"
"""Older ones fail with today's pydantic; 3.0 is not tried."""
_LOWEST, _TOO_HIGH = (1, 21, 2), (3,)
_ADVICE = f'Versions that work: {MCP_BOUND}. Run: pip install "coag[mcp]"'


class Sdk(Protocol):
    """One major of the mcp package, as our module for it has it."""

    open_session: OpenSession
    make_server: MakeServer


def mcp_major() -> int:
    """The major of the mcp package that is installed: 1 or 2.

    Raises:
        ConfigurationError: None is installed, or one that cannot be used.
    """
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise ConfigurationError(f"Tools of MCP servers need the package mcp. {_ADVICE}") from None
    numbers = tuple(map(int, re.findall(r"\d+", found)[:3]))
    if not _LOWEST <= numbers < _TOO_HIGH:
        raise ConfigurationError(f"mcp {found} is installed and cannot be used. {_ADVICE}")
    return numbers[0]


def sdk() -> Sdk:
    """Our module for the mcp package that is installed; imports both, which takes a moment.

    Raises:
        ConfigurationError: None is installed, or one that cannot be used.
    """
    major = mcp_major()
    try:
        return cast("Sdk", import_module(f".v{major}", __package__))
    except ImportError as error:
        raise ConfigurationError(
            f"mcp {version('mcp')} is installed and cannot be used: {error}. {_ADVICE}"
        ) from error
