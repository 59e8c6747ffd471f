"""The report that `python -m coag.awareness.paper` prints."""

from __future__ import annotations

from collections.abc import Sequence

from coag.awareness.adapters import ConversationAdapter
from coag.schema import estimate_tokens

from ._runs import checkpointed, states_of
from ._scenarios import CONVERSATION, CONVERSATION_RESTORED
from ._tables import BUDGET, Row, Table, restored_table, tables


def report() -> tuple[str, bool]:
    """The tables beside the paper's, what else can be compared, and whether the tables agree."""
    made = tables()
    parts = [_table(table) for table in made]
    other = restored_table(CONVERSATION)
    parts.append(
        f"{other.title}, of the turns of table 5\n{_grid(_beside(other))}\n"
        "The two scenarios cannot both be what the paper ran: see docs/awareness.md."
    )
    parts.append(_sizes())
    parts.append(_listing())
    return "\n\n".join(parts) + "\n", all(table.agrees for table in made)


def _table(table: Table) -> str:
    verdict = "every cell agrees" if table.agrees else "DIFFERS from the paper"
    return f"{table.title}: {verdict}\n{_grid(_beside(table))}"


def _beside(table: Table) -> list[Row]:
    """Each row as it came out, and under it the paper's."""
    rows = [("", *table.columns)]
    for ours, paper in zip(table.ours, table.paper, strict=True):
        rows += [("ours", *ours), ("paper", *paper)]
    return rows


def _grid(rows: Sequence[Row]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _sizes() -> str:
    """The sizes that the paper tells, which follow from wording and not from rules."""
    adapter = ConversationAdapter()
    checkpoint, _ = checkpointed(adapter, CONVERSATION_RESTORED, after=2)
    text = adapter.format_for_injection(states_of(adapter, CONVERSATION)[-1], BUDGET)
    return (
        f"Checkpoint after two turns: {len(checkpoint.encode()) / 1000:.1f} KB [paper: 4.7 KB]\n"
        f"Injection after four turns, budget {BUDGET}: {estimate_tokens(text)} tokens "
        "[paper: 176 in table 6, 175 in table 11, ~180 in table 14]"
    )


def _listing() -> str:
    state = states_of(ConversationAdapter(), CONVERSATION)[2]
    text = ConversationAdapter().format_for_injection(state, BUDGET)
    return f"Listing 1, in structure: the injection after turn 3\n{text}"
