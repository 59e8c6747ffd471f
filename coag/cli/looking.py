"""`coag inspect` and `coag report`."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from coag.errors import ConfigurationError
from coag.inspector.report import write_report
from coag.inspector.web import serve_inspector
from coag.schema import one_line
from coag.tracing import RunFolder, list_runs

from .runs import domain_of, found_run, runs_below

# ---- `coag inspect`: the local web app over a folder of logs ----


_HERE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """What the user asked for."""

    place: str | None
    logs: Path
    host: str
    port: int
    domain: str | None
    browser: bool


def inspect_runs(options: InspectOptions) -> None:
    """Serves the inspector until Ctrl-C.

    Raises:
        ConfigurationError: There is no such folder or run, the address is not to be had, or the
            domain is none.
    """
    folder, run = _place(options.place, options.logs)
    console = Console(highlight=False, markup=False, emoji=False)

    def tell(url: str) -> None:
        address = url if run is None else f"{url}/runs/{run.path.name}"
        shown = one_line(str(folder), 300)
        console.print(Text.assemble(f"The runs in {shown}: ", (address, "bold")), soft_wrap=True)
        if options.host not in _HERE:
            console.print(
                "Everybody who reaches this address can read the logs; there is no password.",
                style="yellow",
            )
        console.print("Ctrl-C ends it.", style="bright_black")
        if options.browser:
            webbrowser.open(address)

    try:
        serve_inspector(
            folder,
            host=options.host,
            port=options.port,
            domain=domain_of(options.domain),
            on_start=tell,
        )
    except OSError as error:
        raise ConfigurationError(
            f"{options.host}:{options.port} cannot be served: {error.strerror or error}. "
            "Give another port: --port 0 takes a free one."
        ) from error


def _place(place: str | None, logs: Path) -> tuple[Path, RunFolder | None]:
    """The folder of logs to show, and the run to begin with, where one is named."""
    if place is None:
        return logs, None
    for folder in (Path(place), logs / place):
        if folder.is_dir() and not RunFolder(folder).exists:
            return folder, None
    if len(Path(place).parts) > 1 and not Path(place).exists():
        raise ConfigurationError(
            f"There is neither a folder of logs nor a run at {place!r}. A run makes its folder "
            "with logs=DIR."
        )
    run = found_run(place, logs)
    inside = logs.resolve() in run.path.resolve().parents
    return (logs if inside else run.path), run


# ---- `coag report`: runs as one file that opens anywhere ----


_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the user asked for."""

    runs: list[str]
    logs: Path
    output: Path
    cycles: int
    domain: str | None


def report_runs(options: ReportOptions) -> None:
    """Writes the report and says where it is.

    Raises:
        ConfigurationError: A run is not there, several may be meant, the domain is none, or the
            file cannot be written.
        TraceError: A run cannot be read.
    """
    runs = [run for name in options.runs for run in _runs(name, options.logs)]
    unique = list({run.path.resolve(): run for run in runs}.values())
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    with console.status("") as status:

        def tell(text: str) -> None:
            status.update(Text(one_line(text, 120)))

        try:
            written = write_report(
                unique,
                options.output,
                domain=domain_of(options.domain),
                cycles=options.cycles,
                on_progress=tell,
            )
        except OSError as error:
            raise ConfigurationError(
                f"{str(options.output)!r} cannot be written: {error.strerror or error}."
            ) from error
    size = written.bytes / _MEGABYTE
    told = one_line(str(options.output), 300)
    told += f": {written.cycles} cycles of {len(unique)} runs, {size:.1f} MB"
    if written.left_out:
        told += f"; {written.left_out} cycles left out (--cycles raises how many are kept)"
    console.print(Text(told), soft_wrap=True)


def _runs(name: str, logs: Path) -> list[RunFolder]:
    holder = runs_below(name, logs)
    return [found_run(name, logs)] if holder is None else list(list_runs(holder))
