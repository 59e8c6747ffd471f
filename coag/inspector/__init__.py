"""Runs to look at: a local web app over a folder of logs, and reports that are one file.

What is shown goes one way: `reading` and `tracks` make `views` out of what runs left, `drawing`
makes pictures and `pages` makes HTML of them; `web` serves those, and `report` writes them into a
file.

The names below are loaded when they are first used: what checks a run needs no page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import Written, write_report
    from .web import Inspector, serve_inspector

_HOMES = {
    "Inspector": "web",
    "serve_inspector": "web",
    "write_report": "report",
    "Written": "report",
}

__all__ = ["Inspector", "serve_inspector", "write_report", "Written"]  # pyright: ignore[reportUnsupportedDunderAll] - loaded on first use


def __getattr__(name: str) -> Any:
    """Loads a public name on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
