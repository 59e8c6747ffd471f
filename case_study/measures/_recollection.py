"""What an episode had of the episodes before it: what was recalled, and where it counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from case_study.robot import remembered_obstacles
from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Percept,
    RecalledRecord,
    RetrievalOutcome,
    TraceRecord,
    Value,
)
from vacuum_world.world import Cell, distance, last_state_line

_WRITING = "tool_update_"
_SHORT = 8
"""Characters of a record's id by which predictions name it."""


class Recollection(Value):
    """What a CoAG agent recalled in one episode, counted from its trace."""

    noted: int = 0
    """Times that it wrote to its long-term memory, or to a procedure."""
    recalled: int = 0
    """Cycles that recalled a record of an earlier episode."""
    beside: int = 0
    """Those in which such a record tells that a cell next to the robot is blocked: there it bears
    on what can be done next."""
    refused: int = 0
    """Candidates that were rejected for what such a record tells. Where the model heeds what is
    recalled, or is not offered what it rules out, nothing needs to be rejected."""


@dataclass(slots=True)
class _Counting:
    """The counts on the way."""

    run: str
    here: Cell
    earlier: set[str] = field(default_factory=set[str])
    noted: int = 0
    recalled: int = 0
    beside: int = 0
    refused: int = 0

    def take(self, record: TraceRecord) -> None:
        match record:
            case Percept():
                reading = last_state_line(record.content)
                self.here = self.here if reading is None else reading.position
            case RetrievalOutcome():
                self._recall(record.records)
            case EvaluationOutcome():
                died = [each.died_of.reason for each in record.evaluations if each.died_of]
                self.refused += sum(any(name in why for name in self.earlier) for why in died)
            case ExecutionOutcome():
                self.noted += sum(
                    done.internal
                    and done.action.startswith(_WRITING)
                    and done.status is ExecutionStatus.DONE
                    for done in record.executed
                )
            case _:
                pass

    def _recall(self, records: Iterable[RecalledRecord]) -> None:
        old = [hit for hit in records if hit.record.provenance.run != self.run]
        self.earlier = {hit.record.id[:_SHORT] for hit in old}
        self.recalled += bool(old)
        cells = remembered_obstacles(old)
        self.beside += any(distance(self.here, cell) == 1 for cell in cells)


def recollection_of(records: Iterable[TraceRecord], run: str, start: Cell) -> Recollection:
    """What an agent had of earlier episodes.

    Args:
        records: The episode's trace, in order.
        run: The id of the episode's run: records that were made in others are of earlier episodes.
        start: The cell on which the robot began.
    """
    counting = _Counting(run=run, here=start)
    for record in records:
        counting.take(record)
    return Recollection(
        noted=counting.noted,
        recalled=counting.recalled,
        beside=counting.beside,
        refused=counting.refused,
    )
