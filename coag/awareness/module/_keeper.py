"""The next state of an agent's awareness: pure functions of what happened and when."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from coag.awareness._observation import GoalChange, Observation
from coag.awareness._resolving import NameResolver
from coag.awareness._updating import updated
from coag.awareness.dynamics import (
    ArchivedItem,
    DynamicsSettings,
    archived,
    moved_on,
    weighed_goals,
)
from coag.awareness.state import AwarenessState, Goal, GoalStatus, TransitionType, folded
from coag.schema import ExecutionOutcome, ExecutionStatus, Percept, PerceptKind, Trust

from ._ahead import looked_ahead
from ._bounds import bounded, left_between
from ._noticing import id_of_repeated, id_of_stalled, without
from ._outcome_rules import observations_of, standing_after
from ._percept_rules import goal_text, open_goal, pursued
from ._settings import AwarenessSettings
from ._standing import Standing

_ONWARD = (TransitionType.PROGRESS, TransitionType.DISCOVERY)


@dataclass(frozen=True, slots=True)
class Kept:
    """All that the module keeps."""

    state: AwarenessState
    standing: Standing = field(default_factory=Standing)

    @property
    def goal(self) -> Goal | None:
        """The open goal that the activity serves."""
        wanted = self.standing.goal
        goals = self.state.goals.goals
        return next((one for one in goals if one.id == wanted and one.is_open), None)


@dataclass(frozen=True, slots=True)
class Moved:
    """What is kept after something happened, and what left it."""

    kept: Kept
    left: tuple[ArchivedItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Keeper:
    """What becomes of what is kept. Equal things give equal results, whenever and wherever."""

    settings: AwarenessSettings
    dynamics: DynamicsSettings
    resolver: NameResolver
    """It changes no result."""

    def perceived(self, kept: Kept, percept: Percept, seen: Observation) -> Moved:
        """After a percept, of which this was seen.

        Raises:
            AwarenessError: It names what does not exist, or would make a circle.
        """
        goal, settled = kept.goal, set[str]()
        standing = kept.standing.with_text_of(percept.trust)
        if percept.kind is not PerceptKind.MESSAGE and seen.event and seen.event.type in _ONWARD:
            standing = standing.model_copy(update={"idle": 0})
            if goal is not None:
                settled.add(id_of_stalled(goal))
                change = GoalChange(goal=goal.id, succeeded=True)
                seen = seen.model_copy(update={"goal_changes": (*seen.goal_changes, change)})
        elif percept.kind is PerceptKind.MESSAGE and not percept.sets_goal:
            seen = _taken_up(seen, kept)
        state = self._updated(kept.state, seen, percept.at)
        if percept.kind is PerceptKind.MESSAGE and percept.sets_goal:
            standing = self._serving(percept.content, state, standing)
            settled |= {id_of_stalled(goal)} if goal is not None else set()
        return self._moved(kept, state, standing, settled)

    def executed(self, kept: Kept, outcome: ExecutionOutcome) -> Moved:
        """After an execution."""
        goal, state = kept.goal, kept.state
        standing = standing_after(kept.standing, outcome)
        for seen in observations_of(outcome, state, standing, goal, self.settings):
            state = self._updated(state, seen, outcome.at)
        statuses = {done.status for done in outcome.executed}
        if ExecutionStatus.FAILED in statuses:
            standing = standing.with_text_of(Trust.UNTRUSTED)
        settled = {
            id_of_repeated(done.action)
            for done in outcome.executed
            if not standing.times(done.action)
        }
        if goal is not None and outcome.response is not None:
            settled.add(id_of_stalled(goal))
        return self._moved(kept, state, standing, settled)

    def adopted(self, kept: Kept, request: str) -> Moved:
        """Serving the activity's goal where no percept told of it: for a module that came later."""
        if not request.strip():
            return Moved(kept)
        known = {one.id: one for one in kept.state.goals.goals}.get(kept.standing.goal or "")
        description = goal_text(request, self.settings)
        if known is not None and folded(known.description) == folded(description):
            return Moved(kept)
        seen = pursued(description, kept.state)
        state = self._updated(kept.state, seen, kept.state.at)
        standing = self._serving(request, state, kept.standing)
        return self._moved(kept, state, standing.with_text_of(Trust.UNTRUSTED), ())

    def _updated(self, state: AwarenessState, seen: Observation, at: datetime) -> AwarenessState:
        if self.dynamics.learning is not None:
            seen = weighed_goals(seen, state, self.dynamics.learning)
        return updated(state, seen, at, resolver=self.resolver)

    def _serving(self, request: str, state: AwarenessState, standing: Standing) -> Standing:
        """That the activity serves this request from now on."""
        goal = open_goal(state, goal_text(request, self.settings))
        return standing.model_copy(update={"goal": goal.id if goal else None, "idle": 0})

    def _moved(
        self, before: Kept, came: AwarenessState, standing: Standing, settled: Collection[str]
    ) -> Moved:
        """Goes on to this state as it changes by itself, without what is settled, within bounds."""
        attention = without(came.attention, settled)
        if attention is not came.attention:
            came = came.model_copy(update={"attention": attention})
        by_itself = self.dynamics.model_copy(update={"projection": None})
        pursued = () if standing.goal is None else (standing.goal,)
        state = moved_on(before.state, came, by_itself, staying=pursued).state
        if self.dynamics.projection is not None:
            state, standing = looked_ahead(state, standing, self.dynamics.projection)
        state = bounded(state, self.settings, standing.goal)
        left = archived(left_between(came, state), came.goals, came.step, came.at)
        return Moved(Kept(state, standing), left)


def _taken_up(seen: Observation, kept: Kept) -> Observation:
    """With the activity's goal open again: an answer ended it, and a message goes on with it."""
    goals = kept.state.goals.goals
    goal = next((one for one in goals if one.id == kept.standing.goal), None)
    if goal is None or goal.status is not GoalStatus.COMPLETED:
        return seen
    change = GoalChange(goal=goal.id, status=GoalStatus.ACTIVE)
    return seen.model_copy(update={"goal_changes": (*seen.goal_changes, change)})
