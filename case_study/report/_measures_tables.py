"""Tables of the other measures, and of what they mean."""

from __future__ import annotations

from collections.abc import Sequence

from case_study.measures import MEASURES

from ._tables import DECIDED, Cell, Table, columns, decided, text
from ._values import MeasureRow, Panel
from ._wording import NONE, number, number_span


def measures_tables(panel: Panel) -> tuple[Table, ...]:
    """The other measures, one table for each part of them."""
    there = {name for row in panel.measures for name in row.means}
    known = [
        (title, [n for n, m in MEASURES.items() if m.part == part and n in there])
        for part, title in _PARTS
    ]
    unknown = [("Measures of its own", sorted(there - set(MEASURES)))]
    return tuple(
        _measures_table(panel, title, names) for title, names in [*known, *unknown] if names
    )


_PARTS = (
    ("robustness", "Robustness"),
    ("engineering", "Engineering"),
    ("world", "What came of it in the world"),
    ("cost", "Further costs"),
)


def _measures_table(panel: Panel, title: str, names: Sequence[str]) -> Table:
    rows = tuple(
        (
            text(row.contender),
            *(_measure(row, name) for name in names),
            decided(row.decided_by),
        )
        for row in panel.measures
    )
    return Table(
        caption=f"{title}: means over the trials that have a value; small: how many, and where "
        f"computed the 95 % interval of the mean difference from {panel.reference or NONE}",
        columns=columns(
            "contender", *(_measure_title(name) for name in names), DECIDED, words=(0,)
        ),
        rows=rows,
    )


def _measure_title(name: str) -> str:
    measure = MEASURES.get(name)
    words = name.replace("_", " ")
    if measure is None:
        return words
    better = {"more": ", more is better", "less": ", less is better"}.get(measure.better, "")
    return f"{words} ({measure.unit}{better})"


def meanings_table(panel: Panel) -> Table:
    """What the measures mean."""
    there = {name for row in panel.measures for name in row.means}
    rows = tuple(
        (text(name.replace("_", " ")), text(measure.unit), text(measure.meaning))
        for name, measure in MEASURES.items()
        if name in there
    )
    return Table(
        caption="What these measures mean; docs/measures.md has more",
        columns=columns("measure", "unit", "meaning", words=(0, 1, 2)),
        rows=rows,
    )


def _measure(row: MeasureRow, name: str) -> Cell:
    if name not in row.means:
        return Cell(NONE)
    gaps = {gap.measure: gap for gap in row.gaps}
    more = f"n={row.counts[name]:,}"
    if name in gaps and gaps[name].interval is not None:
        more += f"; {number_span(gaps[name].interval)}"
    return Cell(number(row.means[name]), more)
