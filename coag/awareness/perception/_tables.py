"""Comparisons as small tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from ._agreement import Comparison

_Row = tuple[str, ...]


def comparison_table(comparison: Comparison) -> str:
    """Tables 10 and 11 of one dialogue, and what was noticed in which turns."""
    title = f"{comparison.name}: {comparison.one} beside {comparison.other}"
    parts = [title, "=" * len(title), _per_turn(comparison), "", _noticed(comparison), ""]
    parts.append(_final(comparison))
    if comparison.faults:
        parts += ["", "Nothing usable:", *(f"  {fault}" for fault in comparison.faults)]
    return "\n".join(parts) + "\n"


def _per_turn(comparison: Comparison) -> str:
    rows: list[_Row] = [("turn", "topics", "sentiment", "goals", "references", "alignment")]
    for number, turn in enumerate(comparison.turns, 1):
        values = (turn.topics, turn.sentiment, turn.goals, turn.references, turn.score)
        rows.append((str(number), *(f"{value:.2f}" for value in values)))
    rows.append(("overall", "", "", "", "", f"{comparison.overall:.2f}"))
    return _grid(rows)


def _noticed(comparison: Comparison) -> str:
    rows = [("noticed in turns", comparison.one, comparison.other)]
    rows += [(one.what, _listed(one.one), _listed(one.other)) for one in comparison.noticed]
    return _grid(rows)


def _final(comparison: Comparison) -> str:
    rows = [("final state", comparison.one, comparison.other, "delta")]
    other = comparison.other_state.model_dump()
    for name, mine in comparison.one_state.model_dump().items():
        yours = other[name]
        rows.append((name.replace("_", " "), str(mine), str(yours), f"{mine - yours:+d}"))
    return _grid(rows)


def _listed(turns: Sequence[int]) -> str:
    return ", ".join(map(str, turns)) or "-"


def _grid(rows: Sequence[_Row]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
