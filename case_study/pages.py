"""Markdown: tables, and pages in which tables are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], sides: str = "") -> str:
    """A table; `sides` has a letter for each column, `r` for one of numbers."""
    ruled = "".join("---:|" if side == "r" else "---|" for side in sides or "l" * len(head))
    lines = [f"| {' | '.join(head)} |", f"|{ruled}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def replace_in(path: Path, text: str, name: str) -> None:
    """Writes a text into a page between its marks, `<!-- NAME: begin -->`, `<!-- NAME: end -->`.

    Raises:
        ValueError: It has no such marks.
    """
    marks = [f"<!-- {name}: {edge} -->" for edge in ("begin", "end")]
    before, begin, rest = path.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page has no lines {marks[0]!r} and {marks[1]!r} to write between")
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
