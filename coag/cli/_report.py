"""`coag report`: runs as one file that opens anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from coag.errors import ConfigurationError
from coag.inspector.report import write_report
from coag.schema import one_line
from coag.tracing import RunFolder, list_runs

from ._domain import domain_of
from ._runs import found_run, runs_below

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
