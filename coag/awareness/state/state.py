"""The awareness state: one value that six modules read and write (SAGEN §3.7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

from coag.schema import Moment, Value

from .goals import GoalGraph
from .self_model import SelfModel
from .texts import Said, Step
from .world import Attention, InteractionProtocol, Trajectory, WorldModel

STATE_VERSION: Final = 1
"""Of the schema below; another one is migrated or refused by `load_state`."""


class AwarenessState(Value):
    """Where the agent stands at one step. The state is its JSON: dumped and loaded it is equal."""

    version: Literal[1] = STATE_VERSION
    domain: Said
    """Of the adapter that keeps it."""
    goals: GoalGraph = GoalGraph()
    trajectory: Trajectory = Trajectory()
    world: WorldModel = WorldModel()
    self_model: SelfModel = SelfModel()
    attention: Attention = Attention()
    protocol: InteractionProtocol = InteractionProtocol()
    step: Step = 0
    """How often it was updated."""
    at: Moment
    """When it was made or last updated."""

    def tick(self, now: datetime) -> AwarenessState:
        """One step later, at this time."""
        placed = now.replace(tzinfo=UTC) if now.tzinfo is None else now
        return self.model_copy(update={"step": self.step + 1, "at": placed})
