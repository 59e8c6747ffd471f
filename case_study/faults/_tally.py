"""What a run came to, as the experimenter counts it: from the world's own log and the records.

This is not what a diagnosis sees: it tells whether a fault did harm at all, by comparison with
the same run without the fault. A rejected candidate is no harm by itself: Evaluation is there to
reject. It is, where nothing could be done (an impasse), or something useless was (actions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from coag.schema import (
    Note,
    Receipt,
    ReceiptStatus,
    SelectionOutcome,
    TraceRecord,
    TurnEnd,
)
from vacuum_world.scenarios import ScenarioSetup, measure
from vacuum_world.world import WorldState


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What went wrong in a run; less is better everywhere."""

    no_success: int = 0
    """1 if the world does not show success."""
    stranded: int = 0
    """1 if the robot is stranded."""
    actions: int = 0
    """Actions taken: more than without the fault are wasted ones."""
    failed_actions: int = 0
    """Tool calls that failed or whose outcome is not known."""
    world_failures: int = 0
    """Actions that the world's own log says were without success."""
    impasses: int = 0
    """Cycles in which nothing could be done."""
    without_answer: int = 0
    """Phases that had to do without the model's answer."""
    idle_turns: int = 0
    """Turns that ended without an action: more than without the fault gave an answer too early."""
    broken_turns: int = 0
    """Turns that broke off."""

    def harm(self, twin: Tally) -> tuple[str, ...]:
        """In what this run is worse than its twin without the fault."""
        names = [field.name for field in fields(self)]
        return tuple(name for name in names if getattr(self, name) > getattr(twin, name))


def tally_of(setup: ScenarioSetup, world: WorldState, records: Sequence[TraceRecord]) -> Tally:
    """Counts a run."""
    truth = measure(setup, world)
    return Tally(
        no_success=not truth.success,
        stranded=truth.stranded,
        actions=sum(isinstance(record, Receipt) for record in records),
        failed_actions=sum(
            isinstance(record, Receipt) and record.status is not ReceiptStatus.DONE
            for record in records
        ),
        world_failures=sum(not line.result.ok for line in world.log),
        impasses=sum(isinstance(record, SelectionOutcome) and record.impasse for record in records),
        without_answer=sum(
            isinstance(record, Note) and record.about == "fallback" for record in records
        ),
        idle_turns=sum(
            isinstance(record, TurnEnd) and record.reason == "respond" for record in records
        ),
        broken_turns=sum(
            isinstance(record, TurnEnd) and record.reason == "error" for record in records
        ),
    )
