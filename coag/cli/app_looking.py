"""The commands that show runs on a page or a screen; `_app` registers them.

As in `_app`, modules of our own are imported inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import options as given


def inspect(
    place: given.RunOrWatched = None,
    host: given.Host = "127.0.0.1",
    port: given.Port = 8765,
    domain: given.Domain = None,
    browser: given.OpenBrowser = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Shows runs in the browser: cycles, prompts, verdicts, beliefs, causes, live and side by side.

    A local web app over a folder of logs; without RUN, all runs in it. It only reads, works
    without a network, and answers this machine only. Needs the extra `ui`.
    """
    from .looking import InspectOptions, inspect_runs

    options = InspectOptions(
        place=place, logs=logs, host=host, port=port, domain=domain, browser=browser
    )
    inspect_runs(options)


def report(
    runs: given.SeveralRuns,
    output: given.ReportFile = Path("run.html"),
    cycles: given.ReportCycles = 1_000,
    domain: given.Domain = None,
    logs: given.Logs = Path("logs"),
) -> None:
    """Writes runs into one HTML file that opens anywhere, e.g. to be sent by mail.

    Nothing in it is loaded from elsewhere. Needs the extra `ui`.
    """
    from .looking import ReportOptions, report_runs

    options = ReportOptions(runs=runs, logs=logs, output=output, cycles=cycles, domain=domain)
    report_runs(options)


def top(
    run: given.RunOrWatched = None,
    once: given.OnceAndGo = False,
    logs: given.Logs = Path("logs"),
) -> None:
    """Shows live how runs stand: phase, tokens, cost, last decision, vetoes.

    Without RUN, all in the folder of logs, new ones as they begin. Needs the extra `ui`, but for
    --once.
    """
    if once:
        from .top import show_once

        show_once(run, logs)
        return
    from .top_live import watch

    watch(run, logs)


COMMANDS: tuple[Callable[..., None], ...] = (inspect, report, top)
"""In the order in which `coag --help` names them."""
