"""A report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ._document import Block, Section
from ._tables import Cell, Table
from ._values import Summary
from ._wording import visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&])|^(\s*)([#+=-]|\d+[.)])(?=\s|$)")
"""Characters that would begin something in Markdown or in HTML within it."""


def markdown(title: str, summary: Summary, sections: Sequence[Section]) -> str:
    """The whole report; foreign text in it begins no markup."""
    return "\n".join(_lines(title, summary, sections)) + "\n"


def _lines(title: str, summary: Summary, sections: Sequence[Section]) -> Iterator[str]:
    yield from (f"# {plain(title)}", "", "## In short", "")
    for part in summary.abstract:
        yield from (f"**{plain(part.title)}**", "")
        yield from (f"- {plain(sentence)}" for sentence in part.sentences)
        yield ""
    for section in sections:
        yield from (f"## {plain(section.title)}", "")
        if section.text:
            yield from (plain(section.text), "")
        if section.findings:
            yield from (*(f"- {plain(finding)}" for finding in section.findings), "")
        for block in section.blocks:
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    yield from (f"### {plain(block.title)}", "")
    if block.text:
        yield from (plain(block.text), "")
    if block.figure:
        yield from (f"![{plain(block.title)}]({block.figure})", "")
    for table in (*block.tables, *block.folded):
        yield from (f"{plain(table.caption)}.", "", *_table(table), "")
        if table.note:
            yield from (plain(table.note), "")


def _table(table: Table) -> Iterator[str]:
    yield _row([plain(column.title) for column in table.columns])
    yield _row([":---" if column.words else "---:" for column in table.columns])
    for row in table.rows:
        yield _row([_cell(cell) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if cell.link:
        return f"[{plain(cell.text)}]({cell.link})"
    more = f" ({plain(cell.more)})" if cell.more else ""
    return plain(cell.text) + more


def plain(text: str) -> str:
    """A text on one line in which nothing is markup."""
    return _SPECIAL.sub(_escaped, visible(text, 2000))


def _escaped(found: re.Match[str]) -> str:
    if found[1]:
        return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(found[1], f"\\{found[1]}")
    return f"{found[2]}\\{found[3]}"
