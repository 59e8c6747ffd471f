"""Markdown: tables, and pages in which tables are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], sides: str = "") -> str:
    """A table; `sides` has a letter for each column, `r` for one of numbers."""
    ruled = "".join("---:|" if side == "r" else "---|" for side in sides or "l" * len(head))
    lines = [f"| {' | '.join(head)} |", f"|{ruled}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def replaced(page: str, text: str, name: str) -> str:
    """The page with a text between its marks, `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        ValueError: It has no such marks.
    """
    marks = [f"<!-- {name}: {edge} -->" for edge in ("begin", "end")]
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page has no lines {marks[0]!r} and {marks[1]!r} to write between")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"
