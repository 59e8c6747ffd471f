"""`coag inspect` and `coag report`: runs in the browser, or in one HTML file."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from coag._util.text import one_line
from coag.errors import ConfigurationError
from coag.inspector import serve_inspector, write_report
from coag.tracing import RunFolder

from .diagnose import domain_of
from .options import Domain, Logs, RunOrWatched, SeveralRuns
from .output import DIM, screen, show
from .runs import folders_called, found_run, runs_named

_HERE = ("127.0.0.1", "::1", "localhost")
_MEGABYTE = 1_000_000


def inspect(
    place: RunOrWatched = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to serve; any but this machine's own shows the logs to others.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")
    ] = 8765,
    domain: Domain = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The agent's memory, if it has dynamics: what faded, and why, is shown too.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open it in a browser at once.")] = False,
    logs: Logs = Path("logs"),
) -> None:
    """Shows runs in the browser: cycles, prompts, verdicts, beliefs, causes, live.

    A local web app over a folder of logs; without RUN, all runs in it. It only reads, works
    without a network, and answers this machine only. Needs the extra `ui`.
    """
    folder, run = _inspected(place, logs)

    def started(url: str) -> None:
        address = url if run is None else f"{url}/runs/{run.path.name}"
        name = one_line(str(folder), 300)
        lines = [Text.assemble(f"The runs in {name}: ", (address, "bold"))]
        if host not in _HERE:
            warning = "Everybody who reaches this address can read the logs; there is no password."
            lines.append(Text(warning, style="yellow"))
        show([*lines, Text("Ctrl-C ends it.", style=DIM)])
        if browser:
            webbrowser.open(address)

    known = domain_of(domain)
    try:
        serve_inspector(folder, host=host, port=port, domain=known, memory=memory, on_start=started)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port} cannot be served: {error.strerror or error}. "
            "Give another port: --port 0 takes a free one."
        ) from error


def _inspected(place: str | None, logs: Path) -> tuple[Path, RunFolder | None]:
    """The folder of logs to show, and the run to begin with, where one is named."""
    if place is None:
        return logs, None
    for folder in folders_called(place, logs):
        return folder, None
    if len(Path(place).parts) > 1 and not os.path.exists(place):
        raise ConfigurationError(
            f"There is neither a folder of logs nor a run at {place!r}. A run makes its folder "
            "with logs=DIR."
        )
    run = found_run(place, logs)
    inside = logs.resolve() in run.path.resolve().parents
    return (logs if inside else run.path), run


def report(
    runs: SeveralRuns,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")
    ] = Path("run.html"),
    cycles: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Cycles of each run that are kept; more are left out, and said so.",
        ),
    ] = 1_000,
    domain: Domain = None,
    logs: Logs = Path("logs"),
) -> None:
    """Writes runs into one HTML file that opens anywhere, e.g. to be sent by mail.

    Nothing in it is loaded from elsewhere. Needs the extra `ui`.
    """
    folders = [one for name in runs for one in runs_named(name, logs)]
    unique = list({one.path.resolve(): one for one in folders}.values())
    with screen(errors=True).status("") as status:

        def progress(text: str) -> None:
            status.update(Text(one_line(text, 120)))

        known = domain_of(domain)
        try:
            written = write_report(
                unique, output, domain=known, cycles=cycles, on_progress=progress
            )
        except OSError as error:
            raise ConfigurationError(
                f"{str(output)!r} cannot be written: {error.strerror or error}."
            ) from error
    text = one_line(str(output), 300)
    text += f": {written.cycles} cycles of {len(unique)} runs, {written.bytes / _MEGABYTE:.1f} MB"
    if written.left_out:
        text += f"; {written.left_out} cycles left out (--cycles raises how many are kept)"
    screen(errors=True).print(Text(text), soft_wrap=True)
