"""What long-term memory brought back, as far as a prompt has room for it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from coag.memory import Recall
from coag.schema import RecalledRecord, Record, Trust, estimate_tokens

from ._allotment import Part
from ._budgets import Budgets
from ._sections import one_entry


def fitting(recall: Recall, room: int) -> Recall:
    """A recall as far as its section has room for it, the best first; tells what is left out.

    Records are shown whole; one that is too long gives way to shorter ones behind it. The best
    one always stays, and is cut if it is too long by itself.

    Args:
        recall: What was found.
        room: Tokens for it.
    """
    shown = {hit.record.id for hit in recall.records}
    kept: list[RecalledRecord] = []
    left_out: list[str] = []
    for hit in recall.records:
        cost = estimate_tokens(_line(hit, shown) + "\n")
        if kept and cost > room:
            left_out.append(hit.record.id)
        else:
            kept.append(hit)
            room -= cost
    if not left_out:
        return recall
    gone = set(left_out)
    pairs = tuple(pair for pair in recall.contradictions if gone.isdisjoint(pair))
    return replace(
        recall,
        records=tuple(kept),
        left_out=(*recall.left_out, *left_out),
        contradictions=pairs,
    )


def recalled_part(records: Sequence[RecalledRecord], budgets: Budgets) -> Part | None:
    """What long-term memory brought back, best first, each with kind, score and trust."""
    if not records:
        return None
    shown = {hit.record.id for hit in records}
    return Part(
        name="recalled",
        title="Recalled from long-term memory",
        source="memory",
        trust=Trust.UNTRUSTED,
        entries=tuple(_line(hit, shown) for hit in records),
        keeps="alike",
        cap=budgets.recalled,
    )


def _line(hit: RecalledRecord, shown: Set[str]) -> str:
    record = hit.record
    return one_entry(
        f"- [{record.kind.value}, {hit.score:.2f}, {record.provenance.trust.value}, "
        f"id {record.id[:8]}{_contradicting(record, shown)}] {record.text}"
    )


def _contradicting(record: Record, shown: Set[str]) -> str:
    """Which of the records beside it a record contradicts."""
    others = [name[:8] for name in record.lineage.contradicts if name in shown]
    return f", contradicts {' and '.join(others)}" if others else ""
