"""What memory answers: what became of a text, and what a query brought back."""

from __future__ import annotations

from dataclasses import dataclass

from coag.schema import RecalledRecord, Record, Written

from ._policy import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of something to be remembered."""

    record: Record
    """The record as it is stored; the older one, if the text was known."""
    new: bool
    """Whether this changed what is remembered; false for what was known before."""
    superseded: tuple[str, ...] = ()
    """Records that hold no longer because of this one."""
    contradicts: tuple[str, ...] = ()
    """Records that say otherwise and stay, being trusted more."""
    merged: bool = False
    """Whether it became a further origin of what is remembered already."""
    decision: Decision | None = None
    """What the write policy said."""

    def written(self) -> Written:
        """The line of the trace that says so."""
        return Written(
            at=self.record.created_at,
            cycle=self.record.provenance.cycle,
            what="record",
            id=self.record.id,
            content=self.record.model_dump(mode="json"),
            decision="" if self.decision is None else str(self.decision),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a query brought back."""

    records: tuple[RecalledRecord, ...] = ()
    """Best first, whatever memory they come from; behind each those that say otherwise."""
    problems: tuple[str, ...] = ()
    """One sentence per memory that could not be asked."""
    contradictions: tuple[tuple[str, str], ...] = ()
    """Pairs of ids among the records that hold at the same time and say otherwise."""
    left_out: tuple[str, ...] = ()
    """Ids of records for which the prompt had no room, best first."""
