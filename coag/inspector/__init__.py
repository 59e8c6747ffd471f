"""Runs to look at: a local web app over a folder of logs, and reports that are one file.

A `Library` knows the runs of a folder of logs, and an `OpenRun` reads one trace, as far as a page
needs it: rows, cycles, prompts. What runs through a whole trace has a module each: beliefs,
awareness, memory, checks, comparison, and why a decision was made. All of them give values
(`views`), which `charts` draws and the templates of `pages` show; `web` serves the pages, and
`report` writes them into a file. Logs may be damaged, hostile, of newer versions or growing; what
cannot be read is reported in place, and the rest is shown.

The names below are loaded when they are first used: what checks a run needs no page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import WrittenReport, write_report
    from .web import Inspector, serve_inspector

_MODULES = {
    "Inspector": "web",
    "serve_inspector": "web",
    "write_report": "report",
    "WrittenReport": "report",
}

__all__ = ["Inspector", "serve_inspector", "write_report", "WrittenReport"]  # pyright: ignore[reportUnsupportedDunderAll] - loaded on first use


def __getattr__(name: str) -> Any:
    """Loads a public name on first use (PEP 562)."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
