"""`coag otel`: sends runs to a tracing tool, as OpenTelemetry's spans."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from coag._util.text import counted, one_line
from coag.telemetry import send_run
from coag.tracing import TraceProblem

from .options import Logs, RunOrRuns
from .output import show
from .runs import runs_named


def otel(
    run: RunOrRuns = "latest",
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The collector; else OTEL_EXPORTER_OTLP_ENDPOINT, else http://127.0.0.1:4318.",
        ),
    ] = None,
    with_content: Annotated[
        bool,
        typer.Option(
            "--with-content",
            help="Send dialogue, prompts, arguments and results, too; without secrets.",
        ),
    ] = False,
    logs: Logs = Path("logs"),
) -> None:
    """Sends a run to a tracing tool, as OpenTelemetry's spans over OTLP/HTTP.

    The variables OTEL_EXPORTER_OTLP_* hold. No dialogue, prompt, argument or result is sent
    without --with-content.
    """
    for one in runs_named(run, logs):
        sent = send_run(one, endpoint, record_content=with_content, on_problem=_warn)
        show([f"{one_line(one.path.name)}: {counted(sent, 'span')} sent"])


def _warn(problem: TraceProblem) -> None:
    sys.stderr.write(f"{one_line(str(problem.path), 500)}: {one_line(problem.text)}\n")
