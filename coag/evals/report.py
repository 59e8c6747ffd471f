"""The report of an assessment: tables and charts as one page, and the same as JSON and Markdown.

All text of an assessment is untrusted: it is escaped, and invisible characters are written out.
The page holds no script and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from shlex import quote as shell_quote
from typing import Any, cast
from urllib.parse import quote

from coag._util.files import replace_file
from coag._util.text import counted, escaped_json
from coag.errors import ConfigurationError
from coag.tracing import list_runs

from .charts import sheet
from .learning import DRAWN, LearningSummary
from .summary import Panel, ReportProfile, caveats, failures_first, panels_of
from .tables import (
    Cell,
    CostTables,
    ReportBlock,
    ReportCell,
    ReportSection,
    ReportTable,
    columns_of,
    number_cell,
    panel_blocks,
)
from .trials import NO_MODEL, Assessment, Trial
from .wording import NONE, listed, shown

FORMAT = "coag-evals-report/1"
"""The name of the JSON's format; the number rises when a field changes its meaning."""
RUN_PAGES = "pages"
"""Folder of an assessment for pages of its runs."""
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~&])|^(\s*)([#+=-]|\d+[.)])(?=\s|$)")
"""Characters that would begin something in Markdown or in HTML within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFiles:
    """What was written."""

    page: Path
    json: Path
    markdown: Path
    figures: tuple[Path, ...]
    """Files with learning curves and frontiers, to which the Markdown file leads."""
    bytes: int
    """Size of the page."""


def write_report(
    folder: Path | str,
    output: Path | str | None = None,
    *,
    title: str = "",
    profile: ReportProfile | None = None,
    run_pages: int = 0,
    on_progress: Callable[[str], None] = lambda text: None,
) -> ReportFiles:
    """Writes the report of an assessment, finished or not.

    The JSON and the Markdown file are beside the page, with its name and their suffixes. The
    same trials give the same bytes. Each file is written whole, or not at all.

    Args:
        folder: The assessment's folder.
        output: The page, a file whose name ends in `.html`; `report.html` in the folder if not
            given.
        title: The heading; a usual one if empty.
        profile: What the domain adds to a report: references, ablations, measures, names.
        run_pages: For how many failed trials, the most useful first, pages of their runs are made
            where the runs were kept and the profile can write them.
        on_progress: Called with what is being done.

    Raises:
        AssessmentError: There is no assessment, or one of its files is damaged or foreign.
        ConfigurationError: `output` is no name of a page, there is no trial to report on, a
            package of `coag[evals]` is missing, or a file cannot be written.
        TraceError: A run of which a page is to be made cannot be read.
    """
    folder = Path(folder)
    page = folder / "report.html" if output is None else Path(output)
    if page.suffix.lower() not in (".html", ".htm") or page.is_dir():
        raise ConfigurationError(
            f"{str(page)!r} is no name of a page. Name a file that ends in .html: -o report.html"
        )
    assessment = Assessment.read(folder)
    if not assessment.trials:
        raise ConfigurationError(
            f"The assessment in {str(folder)!r} has no trial yet, so there is nothing to report "
            "on. Run the evaluation first."
        )
    profile = profile or ReportProfile()
    with _needing_extra():
        panels = panels_of(assessment, profile)
        failures, left_out = failures_first(panels)
    try:
        if run_pages and profile.write_run_page is not None:
            _write_run_pages(folder, failures, run_pages, profile, on_progress)
        pages = _run_page_links(folder, failures, page.parent)
        with _needing_extra():
            report = _Report(assessment, panels, profile, pages, failures, left_out)
            return _write(report, page, title or "Assessment report")
    except OSError as error:
        raise ConfigurationError(
            f"{str(page)!r} cannot be written: {error.strerror or error}."
        ) from error


@contextmanager
def _needing_extra() -> Generator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(
            f"A report needs {error.name}, which is not installed: pip install 'coag[evals]'."
        ) from error


def _write(report: _Report, page: Path, title: str) -> ReportFiles:
    figures: list[Path] = []
    for place, learning in enumerate(report.learning, 1):
        frontier = CostTables(learning.panel, f"f{place}").frontier()
        drawn = {"learning": learning.charts(f"f{place}-learning-p")}
        drawn["frontier"] = [frontier] if frontier else []
        for kind, charts in drawn.items():
            if charts:
                path = page.with_name(f"{page.stem}-{kind}-{place}.svg")
                replace_file(path, sheet(charts, min(len(charts), len(DRAWN))), durable=False)
                report.figures[kind, place] = quote(path.name)
                figures.append(path)
    sections, abstract = report.sections(), report.abstract()
    content = {
        "format": FORMAT,
        "facts": report.facts(),
        "abstract": [{"title": name, "sentences": lines} for name, lines in abstract],
        "sections": [_plain_section(section) for section in sections],
    }
    files_beside = {suffix: page.with_suffix(suffix) for suffix in (".json", ".md")}
    html = _html(title, report, abstract, sections)
    size = replace_file(page, html, durable=False)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    replace_file(files_beside[".json"], escaped_json(text) + "\n", durable=False)
    environment, _ = _templates()
    markdown = environment.get_template("report.md").render(
        title=title, abstract=abstract, sections=sections
    )
    replace_file(files_beside[".md"], markdown.rstrip("\n") + "\n\n", durable=False)
    return ReportFiles(
        page=page,
        json=files_beside[".json"],
        markdown=files_beside[".md"],
        figures=tuple(figures),
        bytes=size,
    )


# ---- the whole ----


class _Report:
    def __init__(
        self,
        assessment: Assessment,
        panels: Sequence[Panel],
        profile: ReportProfile,
        pages: Mapping[str, str],
        failures: Sequence[tuple[Trial, bool]],
        left_out: int,
    ) -> None:
        self.assessment = assessment
        self.panels = panels
        self.learning = [LearningSummary(panel) for panel in panels]
        self.figures: dict[tuple[str, int], str] = {}
        self._profile = profile
        self._pages = pages
        self._failures = failures
        self._left_out = left_out

    def facts(self) -> dict[str, Any]:
        """Under what conditions the assessment was made."""
        plan = self.assessment.plan
        return {
            "command": plan.command,
            "domain": plan.domain,
            "started_at": plan.started_at.isoformat(timespec="minutes"),
            "machine": plan.machine,
            "conditions": plan.conditions,
            "planned": sum(1 for _ in plan.jobs()),
            "played": len(self.assessment.trials),
            "mixed": bool(plan.resumptions),
            "versions": dict(sorted(plan.versions.items())),
        }

    def _findings(self, place: int) -> list[str]:
        learning = self.learning[place]
        return list(learning.findings()) if learning.episodes else self.panels[place].findings

    def abstract(self) -> list[tuple[str, list[str]]]:
        """What is to be known first, then real models before scripted ones."""
        parts: list[tuple[str, list[str]]] = []
        first = caveats(self.assessment)
        if first:
            parts.append(("What is to be known first", first))
        order = sorted(range(len(self.panels)), key=lambda at: self.panels[at].scripted)
        brief = sum(panel.scripted for panel in self.panels) > 1
        for place in order:
            panel = self.panels[place]
            short = brief and panel.scripted
            sentences = list(panel.brief_findings()) if short else self._findings(place)
            parts.append((self._title(panel, ", scripted"), sentences))
        if any(panel.scripted for panel in self.panels):
            note = next(panel.evidence_note for panel in self.panels if panel.scripted)
            parts.append(("What scripted models show", [note]))
        return parts

    @staticmethod
    def _title(panel: Panel, scripted: str) -> str:
        name = "No model asked" if panel.model == NO_MODEL else panel.model
        name += scripted if panel.scripted else ""
        return name if panel.domain == "vacuum" else f"{panel.domain}: {name}"

    def sections(self) -> list[ReportSection]:
        stated = {tuple(sentences) for _, sentences in self.abstract()}
        sections: list[ReportSection] = []
        for place, panel in enumerate(self.panels):
            findings = self._findings(place)
            anchor = f"m{place + 1}"
            figures = [self.figures.get((kind, place + 1), "") for kind in ("learning", "frontier")]
            learning = self.learning[place].block(anchor, figures[0])
            blocks = [
                *([learning] if learning.tables else []),
                *panel_blocks(panel, anchor, figures[1]),
            ]
            counts = (
                f"{counted(len(panel.trials), 'trial')} that are evidence, "
                f"{counted(panel.seeds, 'seed')}, {counted(len(panel.scenarios), 'scenario')}, "
                f"{counted(len(panel.contenders), 'contender')}. "
            )
            sections.append(
                ReportSection(
                    anchor=anchor,
                    title=self._title(panel, " (scripted)"),
                    text=counts + panel.evidence_note,
                    findings=() if tuple(findings) in stated else findings,
                    blocks=blocks,
                )
            )
        return [*sections, self._single_trials(), self._conditions()]

    def _single_trials(self) -> ReportSection:
        blocks: list[ReportBlock] = []
        if self._failures:
            titles = ["scenario", "contender", "model", "seed", "what happened", "cause"]
            table = ReportTable(
                caption=f"{counted(len(self._failures), 'failed trial')}: first those in which the "
                "reference succeeded on the same instance",
                columns=columns_of(*titles, "reference", "runs", words=(0, 1, 2, 4, 5, 6, 7)),
                rows=[self._failure_row(trial, lost) for trial, lost in self._failures],
                note="Runs: their page, or the command that makes one, to be given in the "
                "assessment's folder. A dash: the runs were not kept.",
                folded=True,
            )
            left = f"{counted(self._left_out, 'more failed trial')} not listed."
            text = left if self._left_out else ""
            block = ReportBlock(anchor="failures", title="Failed trials", text=text, tables=[table])
            blocks.append(block)
        broken = [trial for trial in self.assessment.trials if not trial.counts]
        if broken:
            titles = ["scenario", "contender", "model", "seed", "attempts", "what failed"]
            table = ReportTable(
                caption=f"{counted(len(broken), 'trial')} that broke",
                columns=columns_of(*titles, words=(0, 1, 2, 5)),
                rows=[
                    (*_job_cells(one), number_cell(one.attempts), Cell(one.problem))
                    for one in broken
                ],
                folded=True,
            )
            text = "The model or the environment failed, not the contender: no evidence."
            block = ReportBlock(anchor="broken", title="Broken trials", text=text, tables=[table])
            blocks.append(block)
        text = "" if blocks else "No trial failed, and none broke."
        return ReportSection(anchor="trials", title="Single trials", text=text, blocks=blocks)

    def _failure_row(self, trial: Trial, reference_won: bool) -> tuple[Cell, ...]:
        if trial.case is None:
            runs = Cell(NONE)
        elif trial.case in self._pages:
            runs = Cell("page of the run", link=self._pages[trial.case])
        else:
            runs = Cell(f"coag report {shell_quote(trial.case)} -o run.html", code=True)
        return (
            *_job_cells(trial),
            Cell(trial.problem or NONE),
            Cell(listed(sorted(trial.causes)) or NONE),
            Cell("succeeded" if reference_won else "did not succeed"),
            runs,
        )

    def _conditions(self) -> ReportSection:
        facts = self.facts()
        mixed = "The evaluation was continued by other code or on another machine. "
        rows = [
            (Cell("command"), Cell(facts["command"] or NONE, code=bool(facts["command"]))),
            (Cell("begun"), Cell(facts["started_at"])),
            (Cell("machine"), Cell(facts["machine"] or NONE)),
            *(
                (Cell(name.replace("_", " ")), Cell(str(value)))
                for name, value in facts["conditions"].items()
            ),
            (Cell("trials played"), Cell(f"{facts['played']:,} of {facts['planned']:,}")),
            *(
                (Cell(f"version of {name}"), Cell(version))
                for name, version in facts["versions"].items()
            ),
        ]
        conditions = ReportTable(
            caption="Conditions of the assessment",
            columns=columns_of("what", "value", words=(0, 1)),
            rows=rows,
        )
        names = dict.fromkeys(name for panel in self.panels for name in panel.contenders)
        described = [(name, self._profile.describe(name)) for name in names]
        contenders = ReportTable(
            caption="The contenders",
            columns=columns_of("contender", "what it is", words=(0, 1)),
            rows=[(Cell(name), Cell(text or NONE)) for name, text in described],
        )
        tables = [conditions, *([contenders] if any(text for _, text in described) else [])]
        block = ReportBlock(anchor="facts", title="How it was made", tables=tables)
        return ReportSection(
            anchor="conditions",
            title="Conditions",
            text=mixed if facts["mixed"] else "",
            blocks=[block],
        )


def _job_cells(trial: Trial) -> tuple[Cell, ...]:
    job = trial.job
    return Cell(job.scenario), Cell(job.contender), Cell(job.model), number_cell(job.seed)


# ---- pages of single runs ----


def _kept_cases(
    folder: Path, failures: Sequence[tuple[Trial, bool]]
) -> Iterator[tuple[str, Path, Path]]:
    """Cases whose runs are there, with their folder within the assessment's and their page."""
    root = folder.resolve()
    for trial, _ in failures:
        case = (root / trial.case).resolve() if trial.case else root
        if trial.case and case != root and case.is_dir() and case.is_relative_to(root):
            name = f"{'-'.join(Path(trial.case).parts)}.html"
            yield trial.case, case, folder / RUN_PAGES / name


def _write_run_pages(
    folder: Path,
    failures: Sequence[tuple[Trial, bool]],
    limit: int,
    profile: ReportProfile,
    on_progress: Callable[[str], None],
) -> None:
    """Writes pages of the runs of some trials, where they are not there yet."""
    for place, (case, path, page) in enumerate(_kept_cases(folder, failures)):
        if place >= limit:
            return
        runs = list(list_runs(path))
        if runs and not page.is_file() and profile.write_run_page is not None:
            on_progress(f"page of {case}")
            page.parent.mkdir(exist_ok=True)
            profile.write_run_page(runs, page)


def _run_page_links(
    folder: Path, failures: Sequence[tuple[Trial, bool]], beside: Path
) -> dict[str, str]:
    """Relative addresses of the pages of runs that there are, by the case's folder."""
    links: dict[str, str] = {}
    for case, _, page in _kept_cases(folder, failures):
        if page.is_file():
            relative = Path(os.path.relpath(page.resolve(), beside.resolve())).as_posix()
            links[case] = f"./{quote(relative)}"
    return links


# ---- HTML, JSON, Markdown ----


def _html(
    title: str,
    report: _Report,
    abstract: Sequence[tuple[str, list[str]]],
    sections: Sequence[ReportSection],
) -> str:
    """The page; its policy allows its one style sheet, and nothing else."""
    style = files("coag.evals").joinpath("templates", "report.css").read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    environment, markup = _templates()
    return environment.get_template("report.html").render(
        title=title,
        facts=report.facts(),
        abstract=abstract,
        sections=sections,
        style=markup(style),
        policy=policy,
    )


@cache
def _templates() -> tuple[Any, Callable[[str], Any]]:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("coag.evals"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )

    def marked(text: str) -> Any:
        return Markup(markdown_text(text))

    filters = cast("dict[str, Any]", environment.filters)
    filters |= {"v": shown, "drawing": Markup, "m": marked}
    return environment, Markup


def _plain_section(section: ReportSection) -> dict[str, Any]:
    return {
        "title": section.title,
        "text": section.text,
        "findings": list(section.findings),
        "blocks": [
            {
                "id": block.anchor,
                "title": block.title,
                "tables": [
                    {
                        "caption": table.caption,
                        "columns": [column.title for column in table.columns],
                        "rows": [[_plain_cell(cell) for cell in row] for row in table.rows],
                    }
                    for table in block.tables
                ],
            }
            for block in section.blocks
        ],
    }


def _plain_cell(cell: ReportCell) -> dict[str, Any]:
    named = {"text": cell.text, "more": cell.more, "value": cell.value}
    return {name: value for name, value in named.items() if value not in ("", None)}


def markdown_text(text: str) -> str:
    """An untrusted text on one line in which nothing is markup."""

    def escaped(found: re.Match[str]) -> str:
        if found[1]:
            return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(found[1], f"\\{found[1]}")
        return f"{found[2]}\\{found[3]}"

    return _MARKUP.sub(escaped, shown(text, 2000))
