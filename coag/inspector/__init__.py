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

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

if TYPE_CHECKING:
    from .report import write_report
    from .web import Inspector, serve_inspector

_MODULES = {"Inspector": "web", "serve_inspector": "web", "write_report": "report"}

__all__ = ["Inspector", "serve_inspector", "write_report"]  # pyright: ignore[reportUnsupportedDunderAll] - loaded on first use

__getattr__ = loaded_on_use(
    __name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
)
