"""Pages of single runs, for the trials that a report points out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from case_study.faults import VacuumDomain
from coag.inspector import write_report as write_run_report
from coag.tracing import list_runs

from ._values import TrialLine

VACUUM = "vacuum"
RUN_PAGES = "pages"
"""Folder of an assessment in which pages of its runs lie."""


def page_of(directory: Path, case: str) -> Path:
    """Where the page of a case's runs lies, if it was made."""
    return directory / RUN_PAGES / f"{'-'.join(Path(case).parts)}.html"


def kept_cases(directory: Path, lines: Sequence[TrialLine]) -> Iterator[tuple[str, Path]]:
    """Cases whose runs are there, with their folders, each within the assessment's."""
    root = directory.resolve()
    for line in lines:
        folder = (root / line.case).resolve() if line.case else root
        if line.case and folder.is_dir() and folder.is_relative_to(root) and folder != root:
            yield line.case, folder


def write_run_pages(
    directory: Path,
    lines: Sequence[TrialLine],
    limit: int,
    on_progress: Callable[[str], None],
    *,
    domain: str,
) -> None:
    """Writes pages of the runs of some trials, where they are not there yet.

    Args:
        directory: The assessment's folder.
        lines: The trials, the most telling first.
        limit: For how many of them.
        on_progress: Is told what is being done.
        domain: The assessment's; of the vacuum world the causes of failures are told.

    Raises:
        TraceError: A run cannot be read at all.
        OSError: A page cannot be written.
    """
    for place, (case, folder) in enumerate(kept_cases(directory, lines)):
        if place >= limit:
            return
        runs, page = list(list_runs(folder)), page_of(directory, case)
        if not runs or page.is_file():
            continue
        on_progress(f"page of {case}")
        page.parent.mkdir(exist_ok=True)
        write_run_report(runs, page, domain=VacuumDomain() if domain == VACUUM else None)
