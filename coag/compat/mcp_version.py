"""Which versions of the `mcp` package AutoGen's MCP workbench works with."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from coag.errors import ConfigurationError

MCP_BOUND = "mcp>=1.21.2,<2"
"""Older ones fail with today's pydantic; 2.0 took away what AutoGen 0.7 imports."""
_LOWEST = (1, 21, 2)
_ADVICE = f'AutoGen 0.7 works with {MCP_BOUND}. Run: pip install "coag[mcp]"'


def installed_mcp() -> str | None:
    """The version of the `mcp` package that is installed, or None."""
    try:
        return version("mcp")
    except PackageNotFoundError:
        return None


def unusable_mcp(found: str | None) -> ConfigurationError:
    """What to raise when it cannot be imported."""
    if found is None:
        return ConfigurationError(f"Tools of MCP servers need the package mcp. {_ADVICE}")
    return ConfigurationError(f"mcp {found} is installed and cannot be used. {_ADVICE}")


def check_mcp(found: str | None) -> None:
    """Sees to it that the version is one of those that were tried.

    Raises:
        ConfigurationError: It is not; the message says what to install.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", found or "")[:3])
    if not _LOWEST <= numbers < (2,):
        raise unusable_mcp(found)
