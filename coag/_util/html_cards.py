"""Showing foreign text in a notebook: small tables of HTML in which nothing can act.

There is no script, no class and no address in them, so that they look the same wherever they are
put; colours are the page's own, so that they can be read in dark and light.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from .text import visible

CELL = 200
"""Characters that are shown of a text, where no other number is given."""
ROWS = 20
"""Rows that are shown of a table."""

_NARROW = 28
"""Characters of a text that is never broken."""
_BOX = "border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:.6em .9em;max-width:64em;"
_WORDS = "overflow-wrap:anywhere;white-space:normal;"
_PLACE = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;"
_QUIET = "opacity:.75;"


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlTable:
    """A table; its cells may be any values and are shown as text."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


def html_text(value: object, limit: int = CELL) -> str:
    """A value as text within HTML; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(visible(str(value), limit))


def html_card(
    title: str,
    *,
    facts: Iterable[tuple[str, object]] = (),
    lines: Iterable[str] = (),
    table: HtmlTable | None = None,
) -> str:
    """A small box of HTML.

    Args:
        title: What is shown, in a few words.
        facts: Names with values; those of None are left out.
        lines: Sentences below them; of many the first ones.
        table: Below those.
    """
    parts = [f'<div style="{_BOX}"><strong>{html_text(title)}</strong>']
    rows = [(name, value) for name, value in facts if value is not None][: 2 * ROWS]
    if rows:
        cells = "".join(f"<tr>{_cell(name, _QUIET)}{_cell(value)}</tr>" for name, value in rows)
        parts.append(f'<table style="border:0;margin:.4em 0">{cells}</table>')
    sentences = list(lines)
    style = f"{_WORDS}margin:.3em 0"
    parts += [f'<div style="{style}">{html_text(one, 600)}</div>' for one in sentences[:ROWS]]
    parts.append(_more(len(sentences)))
    if table is not None and table.rows:
        head = "".join(_cell(name, element="th") for name in table.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows[:ROWS])
        frame = '<table style="border:0;margin:.5em 0;border-collapse:collapse">'
        parts.append(f"{frame}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts.append(_more(len(table.rows)))
    return "".join([*parts, "</div>"])


def _more(count: int) -> str:
    return f'<div style="{_QUIET}">and {count - ROWS:,} more</div>' if count > ROWS else ""


def _cell(value: object, style: str = "", element: str = "td") -> str:
    text = html_text(value)
    wrap = "white-space:nowrap;" if len(text) <= _NARROW else f"{_WORDS}min-width:12em;"
    return f'<{element} style="{_PLACE}{wrap}{style}">{text}</{element}>'
