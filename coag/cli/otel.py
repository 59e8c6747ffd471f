"""`coag otel`: sends what runs did to a tracing tool, as OpenTelemetry's spans."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from coag.schema import one_line
from coag.telemetry import send_run
from coag.tracing import RunFolder, TraceProblem, list_runs

from .runs import found_run, runs_below


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelOptions:
    """What `coag otel` was told."""

    run: str
    """What the user typed for the run, or a folder of runs."""
    logs: Path
    endpoint: str | None
    """The collector's URL; None for what the environment says, or the usual one here."""
    with_content: bool


def send_runs(options: OtelOptions) -> None:
    """Sends one run, or all runs of a folder, and prints how many spans each came to.

    Raises:
        UnknownNameError: If there is no such run.
        ConfigurationError: If several runs may be meant, the extra is missing, or the collector
            did not take the spans.
        TraceError: If a run's trace cannot be read.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    for run in _runs(options):
        sent = send_run(
            run,
            options.endpoint,
            record_content=options.with_content,
            on_problem=_tell,
        )
        spans = f"{sent} span{'' if sent == 1 else 's'}"
        console.print(Text(f"{one_line(run.path.name)}: {spans} sent"), soft_wrap=True)


def _runs(options: OtelOptions) -> Iterator[RunFolder]:
    holder = runs_below(options.run, options.logs)
    if holder is None:
        yield found_run(options.run, options.logs)
    else:
        yield from list_runs(holder)


def _tell(problem: TraceProblem) -> None:
    sys.stderr.write(f"{one_line(str(problem.path), 500)}: {one_line(problem.text)}\n")
