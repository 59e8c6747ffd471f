"""Running the demo's cases one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from case_study.measures import CaseResult
from case_study.runner import CaseFolder, CaseRequest, Progress, checked, resumable, run_case
from coag.proof import verify
from coag.tracing import list_runs

from ._table import report_text

REPORT = "report.md"
"""Name of the table in a demo's folder."""


class Show(Protocol):
    """Shows how far the demo is."""

    def begin(self, number: int, request: CaseRequest) -> None:
        """A case begins."""
        ...

    def progress(self, progress: Progress) -> None:
        """It has come so far."""
        ...

    def end(self, result: CaseResult) -> None:
        """It is over."""
        ...


async def run_demo(
    requests: Sequence[CaseRequest], logs: Path, show: Show
) -> tuple[CaseResult, ...]:
    """Runs the cases and writes `report.md` beside them.

    Raises:
        BrokenOffError: A model, a log, a memory or the world failed; names the case.
    """
    for request in requests:
        checked(request)
    results: list[CaseResult] = []
    for number, request in enumerate(requests, start=1):
        show.begin(number, request)
        folder = CaseFolder.create(logs, request)
        with resumable(folder):
            result = await run_case(folder, show.progress)
        results.append(result)
        show.end(result)
    (logs / REPORT).write_text(report_text(results), encoding="utf-8")
    return tuple(results)


def verification(logs: Path) -> tuple[int, tuple[str, ...]]:
    """How many runs a demo has left, and a sentence for each violation in them.

    Raises:
        TraceError: A run cannot be read.
    """
    runs = list(list_runs(logs))
    violated = tuple(f"{run.path.name}: {violation}" for run in runs for violation in verify(run))
    return len(runs), violated
