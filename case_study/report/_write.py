"""Writing a report: a page, JSON and Markdown of the same numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from case_study.assess import Assessment
from coag._util.files import replace_file
from coag.errors import ConfigurationError
from coag.schema import escaped_json

from ._document import learning_pictures, sections_of
from ._learning_plots import DRAWN
from ._markdown import markdown
from ._page import page
from ._runs import kept_cases, page_of, write_run_pages
from ._sheet import sheet
from ._summary import summary_of
from ._values import Summary

_ENDINGS = (".html", ".htm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written."""

    page: Path
    json: Path
    markdown: Path
    figures: tuple[Path, ...]
    """Files with the learning curves, to which the Markdown file leads; none without sequences."""
    bytes: int
    """Size of the page."""
    summary: Summary
    """What all three tell."""


def write_report(
    directory: Path,
    output: Path,
    *,
    title: str = "",
    run_pages: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> Written:
    """Writes the report of an assessment, finished or not.

    The JSON and the Markdown file stand beside the page, with its name and their endings. The
    same trials give the same bytes. Each file is there whole, or not at all.

    Args:
        directory: The assessment's folder.
        output: The page: a file whose name ends in `.html`.
        title: What it is headed; empty for the usual heading.
        run_pages: For how many failed trials, the most telling first, pages of their runs are
            made where the runs were kept; about a second each. Pages made before are linked too.
        on_progress: Is told what is being done.

    Raises:
        AssessmentError: There is no assessment, or one of its files is damaged or foreign.
        ConfigurationError: `output` is no name of a page, there is no trial to report on, or a
            file cannot be written.
        TraceError: A run of which a page is to be made cannot be read.
    """
    if output.suffix.lower() not in _ENDINGS or output.is_dir():
        raise ConfigurationError(
            f"{str(output)!r} is no name of a page. Name a file that ends in .html: -o report.html"
        )
    assessment = Assessment.read(directory)
    if not assessment.trials:
        raise ConfigurationError(
            f"The assessment in {str(directory)!r} has no trial yet, so there is nothing to "
            "report on. Play it: case-study assess"
        )
    summary = summary_of(assessment)
    try:
        if run_pages:
            write_run_pages(
                directory,
                summary.failures,
                run_pages,
                on_progress or _tell_nobody,
                domain=assessment.plan.domain,
            )
        return _written(directory, output, summary, title or "Assessment report")
    except OSError as error:
        raise ConfigurationError(
            f"{str(output)!r} cannot be written: {error.strerror or error}."
        ) from error


def _written(directory: Path, output: Path, summary: Summary, title: str) -> Written:
    pages = _run_pages(directory, summary, output.parent)
    html = page(title, summary, sections_of(summary, pages, drawn=True))
    figures = _figures(summary, output)
    names = [quote(path.name) if path else "" for path in figures]
    told = markdown(title, summary, sections_of(summary, pages, drawn=False, figures=names))
    beside = {ending: output.with_suffix(ending) for ending in (".json", ".md")}
    size = replace_file(output, html)
    replace_file(beside[".json"], escaped_json(summary.model_dump_json(indent=1)) + "\n")
    replace_file(beside[".md"], told)
    return Written(
        page=output,
        json=beside[".json"],
        markdown=beside[".md"],
        figures=tuple(path for path in figures if path),
        bytes=size,
        summary=summary,
    )


def _figures(summary: Summary, output: Path) -> list[Path | None]:
    """Writes the learning curves of each panel that has any."""
    found: list[Path | None] = []
    for place, panel in enumerate(summary.panels, 1):
        pictures = learning_pictures(panel, f"f{place}")
        path = output.with_name(f"{output.stem}-learning-{place}.svg") if pictures else None
        if path is not None:
            replace_file(path, sheet(pictures, len(DRAWN)))
        found.append(path)
    return found


def _tell_nobody(text: str) -> None:
    """Nobody asked."""


def _run_pages(directory: Path, summary: Summary, beside: Path) -> Mapping[str, str]:
    """Relative addresses of the pages of runs that there are, by the case's folder."""
    found: dict[str, str] = {}
    for case, _ in kept_cases(directory, summary.failures):
        file = page_of(directory, case)
        if file.is_file():
            relative = Path(os.path.relpath(file.resolve(), beside.resolve())).as_posix()
            found[case] = f"./{quote(relative)}"
    return found
