"""The module's state: kept, bounded, and at rest in a store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from typing import Any, TypeVar

from coag.awareness.dynamics import (
    Ahead,
    ApartArchive,
    Archive,
    ArchivedItem,
    DynamicsSettings,
    Left,
    ProjectionSettings,
    ReturnSettings,
    archived,
    moved_on,
    project,
    recalled,
    weighed_goals,
    with_readings,
    with_warnings,
)
from coag.awareness.observation import GoalChange, Observation
from coag.awareness.resolving import NameResolver
from coag.awareness.state import (
    Attention,
    AwarenessState,
    Belief,
    Goal,
    GoalGraph,
    GoalStatus,
    SelfModel,
    Trajectory,
    TransitionType,
    WorldModel,
    folded,
)
from coag.awareness.updating import updated
from coag.schema import ExecutionOutcome, ExecutionStatus, Percept, PerceptKind, Trust

from .rules import (
    Standing,
    goal_text,
    id_of_repeated,
    id_of_stalled,
    observations_of,
    open_goal,
    pursued,
    standing_after,
    without,
)
from .settings import AwarenessSettings

# ---- What lies ahead of an agent, in cycles ----


_LOOKED_FOR = (Ahead.RESOURCES, Ahead.DEADLINES)
"""The module tells by itself of the goal that makes no progress and of the action that fails."""


def looked_ahead(
    state: AwarenessState, standing: Standing, settings: ProjectionSettings
) -> tuple[AwarenessState, Standing]:
    """The state with what is to be seen ahead in its attention, and the standing with readings.

    Resources are read once a cycle, and a step of projection is a cycle: what a state counts as
    steps are two or three a cycle, and nothing that an agent can plan by.
    """
    kinds = tuple(one for one in settings.of if one in _LOOKED_FOR)
    chosen = settings.model_copy(update={"of": kinds})
    own = state.self_model.model_copy(update={"readings": standing.readings})
    view = state.model_copy(update={"step": standing.cycles, "self_model": own})
    view = with_readings(view, chosen)
    warnings = (
        item.model_copy(update={"created_step": state.step}) for item in project(view, chosen)
    )
    readings = view.self_model.readings
    return with_warnings(state, warnings), standing.model_copy(update={"readings": readings})


# ---- Keeping the state within its bounds ----


_Thing = TypeVar("_Thing")


def bounded(
    state: AwarenessState, settings: AwarenessSettings, goal: str | None = None
) -> AwarenessState:
    """The state with no more of anything than the settings keep; itself where nothing is over.

    Args:
        state: The state.
        settings: The bounds.
        goal: Id of the goal that stays whatever it is.
    """
    changes: dict[str, object] = {}
    parts = (
        ("goals", state.goals, _goals(state.goals, settings.kept_goals, goal)),
        ("trajectory", state.trajectory, _trajectory(state.trajectory, settings.kept_transitions)),
        ("world", state.world, _world(state.world, settings)),
        ("attention", state.attention, _attention(state.attention, settings.kept_attention)),
        ("self_model", state.self_model, _self_model(state.self_model)),
    )
    for name, before, after in parts:
        if after is not before:
            changes[name] = after
    return state.model_copy(update=changes) if changes else state


def left_between(before: AwarenessState, after: AwarenessState) -> Left:
    """The goals, things and relationships of one state that the next one has no more."""
    goals = {one.id for one in after.goals.goals}
    names = {one.name for one in after.world.entities}
    edges = {(one.source, one.type, one.target) for one in after.world.relationships}
    return Left(
        goals=tuple(one for one in before.goals.goals if one.id not in goals),
        entities=tuple(one for one in before.world.entities if one.name not in names),
        relationships=tuple(
            one
            for one in before.world.relationships
            if (one.source, one.type, one.target) not in edges
        ),
    )


def _goals(graph: GoalGraph, keep: int, current: str | None) -> GoalGraph:
    """Without the goals that are over: closed ones first, then those that no goal waits for."""
    over = len(graph.goals) - keep
    if over <= 0:
        return graph
    awaited = {on for goal in graph.goals if goal.is_open for on in goal.depends_on}
    order = sorted(
        (goal for goal in graph.goals if goal.id != current),
        key=lambda goal: (goal.id in awaited, goal.is_open, goal.updated_step, goal.priority),
    )
    gone = {goal.id for goal in order[:over]}
    return graph.without(gone)


def _self_model(self_model: SelfModel) -> SelfModel:
    """With the same mistake once, as it was made last."""
    latest = {(one.action, one.reason): one for one in self_model.failures}
    if len(latest) == len(self_model.failures):
        return self_model
    failures = tuple(sorted(latest.values(), key=lambda one: one.step))
    return self_model.model_copy(update={"failures": failures})


def _trajectory(trajectory: Trajectory, keep: int) -> Trajectory:
    """Without the oldest transitions, sticky or not."""
    over = len(trajectory.transitions) - keep
    if over <= 0:
        return trajectory
    return trajectory.model_copy(update={"transitions": trajectory.transitions[over:]})


def _attention(attention: Attention, keep: int) -> Attention:
    """Without the least urgent items, of equals the oldest; suppressed ids of items only."""
    items = _best(
        attention.items, keep, [(item.urgency, item.created_step) for item in attention.items]
    )
    suppressed = attention.suppressed[-keep:]
    if items is attention.items and len(suppressed) == len(attention.suppressed):
        return attention
    return attention.model_copy(update={"items": items, "suppressed": suppressed})


def _world(world: WorldModel, settings: AwarenessSettings) -> WorldModel:
    """Without the things that were mentioned longest ago, and what leads to them."""
    entities = _best(
        world.entities,
        settings.kept_entities,
        [(one.last_step, one.mentions) for one in world.entities],
    )
    edges = world.relationships
    if entities is not world.entities:
        gone = {one.name for one in world.entities} - {one.name for one in entities}
        edges = tuple(one for one in edges if not gone & {one.source, one.target})
    changes = {
        "entities": entities,
        "relationships": _best(edges, settings.kept_relationships, [one.step for one in edges]),
        "assumptions": _beliefs(world.assumptions, settings.kept_beliefs),
        "unknowns": _beliefs(world.unknowns, settings.kept_beliefs),
    }
    if all(getattr(world, name) is after for name, after in changes.items()):
        return world
    return world.model_copy(update=changes)


def _beliefs(beliefs: tuple[Belief, ...], keep: int) -> tuple[Belief, ...]:
    return _best(beliefs, keep, [(one.resolved is None, one.step) for one in beliefs])


def _best(things: tuple[_Thing, ...], keep: int, worth: Sequence[Any]) -> tuple[_Thing, ...]:
    """The things of most worth, in their order; of equals the later ones."""
    if len(things) <= keep:
        return things
    best = nlargest(keep, range(len(things)), key=lambda place: (worth[place], place))
    return tuple(things[place] for place in sorted(best))


# ---- The next state of an agent's awareness: pure functions of what happened and when ----


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


# ---- What left an agent's awareness: on its way to the archive, and back ----


_WAITING = 500
"""Items that wait for an archive that fails; more push the oldest out."""


class Resting:
    """An archive that may fail or be slow without anything happening to the state.

    What it could not take waits, outside of the state, and is given again with what leaves next.

    Args:
        archive: Where items rest; None loses them.
        resolver: Recognises the names of things that are there.
        settings: When something returns.
    """

    def __init__(
        self, archive: Archive | None, resolver: NameResolver, settings: ReturnSettings
    ) -> None:
        self._whole = self.archive = archive
        self._resolver = resolver
        self._settings = settings
        self._waiting: tuple[ArchivedItem, ...] = ()

    def serve(self, scope: str | None) -> None:
        """Goes on with what rests of one person; what others' left behind is not found any more.

        What waits is lost with an archive that keeps nobody apart: it may be anybody's.

        Args:
            scope: The person's; None where one has all, empty while nobody is known.
        """
        if scope is None:
            return
        whole = self._whole
        self.archive = whole.within(scope) if isinstance(whole, ApartArchive) and scope else None
        self._waiting = ()

    def begin(self) -> None:
        """Goes on as it was made, with nobody's archive; what waits for a person's is lost."""
        if self.archive is not self._whole:
            self.archive, self._waiting = self._whole, ()

    async def returned(self, kept: Kept, seen: Observation) -> Kept:
        """What is kept, with what an observation mentions that had left it.

        Raises:
            Exception: Whatever the archive raises.
        """
        if self.archive is None:
            return kept
        state = await recalled(kept.state, seen, self.archive, self._resolver, self._settings)
        if state is kept.state:
            return kept
        return Kept(state, kept.standing.with_text_of(Trust.UNTRUSTED))

    def add(self, left: Sequence[ArchivedItem]) -> None:
        """Has these items wait."""
        if self.archive is not None:
            self._waiting = (*self._waiting, *left)[-_WAITING:]

    async def put(self) -> None:
        """Gives the archive what waits for it.

        Raises:
            Exception: Whatever the archive raises; the items wait on.
        """
        if self.archive is not None and self._waiting:
            await self.archive.put(self._waiting)
            self._waiting = ()
