"""What change requests took and whether they held, as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from ._change import CHANGES
from ._maintain import Maintained
from ._probe import MODELS

BEGIN, END = "<!-- maintainability: begin -->", "<!-- maintainability: end -->"
"""Between these the tables stand in a page."""


def table(results: Sequence[Maintained]) -> str:
    """One table per change request, with the request in words above it."""
    parts: list[str] = []
    for name in dict.fromkeys(result.change for result in results):
        rows = [result for result in results if result.change == name]
        parts.append("\n".join([f"**{name}**: {CHANGES[name].sentence}", "", *_rows(rows)]))
    return "\n\n".join(parts)


def replaced(page: str, tables: str) -> str:
    """A page with these tables in the place of those that it has.

    Raises:
        ValueError: The page has no place for them.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"The page must hold {BEGIN!r} and, below it, {END!r}.")
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def _rows(results: Sequence[Maintained]) -> list[str]:
    titles = ["way", "agent", "files", "lines", *(f"broken by `{model}`" for model in MODELS)]
    rows = [
        f"| {' | '.join([*titles, 'holds'])} |",
        "|---|---|--:|--:|" + "--:|" * len(MODELS) + "---|",
    ]
    for result in results:
        cells = [result.way, result.agent, str(result.effort.files), str(result.effort.lines)]
        cells += [_broken(result, model) for model in MODELS]
        rows.append(f"| {' | '.join([*cells, 'yes' if result.holds else 'no'])} |")
    return rows


def _broken(result: Maintained, model: str) -> str:
    runs = sum(run.model == model for run in result.runs)
    after, before = result.broken(model)
    return f"{after} of {runs} (before: {before})"
