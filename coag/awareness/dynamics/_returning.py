"""What is mentioned again returns from the archive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import ValidationError

from coag.awareness._observation import Observation
from coag.awareness._problems import where_wrong
from coag.awareness._resolving import NameResolver
from coag.awareness._telling_apart import told_apart
from coag.awareness.state import (
    AwarenessState,
    Entity,
    Goal,
    GoalGraph,
    GoalStatus,
    Relationship,
    WorldModel,
    folded,
)
from coag.errors import AwarenessError

from ._archive import (
    Archive,
    ArchivedEntity,
    ArchivedGoal,
    ArchivedItem,
    FoundBy,
    ItemKind,
    left_later,
)
from ._settings import ReturnSettings


async def recalled(
    state: AwarenessState,
    observation: Observation,
    archive: Archive,
    resolver: NameResolver,
    settings: ReturnSettings | None = None,
) -> AwarenessState:
    """The state with what an observation mentions that left it: to be updated with it next.

    Goals and things that the state has are not looked for. By its name an item always returns, by
    what it is about from a score on. A thing returns as it left; a goal counts as named at the
    coming step, and brings back what it serves and waits for. What left later than the state's own
    time is not there yet, so that a state of earlier comes to what it came to then.

    Args:
        state: The state before the observation.
        observation: What is mentioned.
        archive: Where to look.
        resolver: Recognises the names of things that the world has.
        settings: From which score on, and how much is looked up.

    Raises:
        CoagError: The archive cannot be reached or read. Nothing is changed.
    """
    chosen = settings or ReturnSettings()
    goals, things = _missing(state, observation, resolver)
    room = chosen.most_lookups
    graph, world = state.goals, state.world
    for text in goals[:room]:
        item = await _found(text, archive, "goal", state.at, chosen)
        if isinstance(item, ArchivedGoal):
            graph = await _with_goal(graph, item, archive, state)
    for text in things[: max(0, room - len(goals))]:
        item = await _found(text, archive, "entity", state.at, chosen)
        if isinstance(item, ArchivedEntity):
            world = with_entity(world, item.entity, item.relationships)
    if graph is state.goals and world is state.world:
        return state
    return state.model_copy(update={"goals": graph, "world": world})


def with_goal(graph: GoalGraph, goal: Goal, others: Iterable[Goal] = ()) -> GoalGraph:
    """The graph with a goal again, and with those of the others that it serves or waits for.

    A goal that is there already stays as it is. What a goal named that is neither there nor among
    the others is not named any more.

    Raises:
        AwarenessError: A goal would serve itself or wait for itself.
    """
    by_id = {one.id: one for one in graph.goals}
    if goal.id in by_id:
        return graph
    new = _reached(goal, {one.id: one for one in others if one.id not in by_id})
    by_id |= {one.id: _named_there(one, {*by_id, *new}) for one in new.values()}
    goals = [_at_rest(one, by_id) if one.id in new else one for one in by_id.values()]
    try:
        return GoalGraph(goals=tuple(sorted(goals, key=lambda one: one.created_step)))
    except ValidationError as error:
        raise AwarenessError(
            f"Goal {goal.description!r} ({goal.id}) cannot return from the archive: "
            f"{where_wrong(error)[1]}. Its item is not one that left this graph; remove it."
        ) from error


def with_entity(
    world: WorldModel, entity: Entity, relationships: Sequence[Relationship] = ()
) -> WorldModel:
    """The world with a thing again, and its relationships; what is there stays as it is."""
    if world.get(entity.name) is not None:
        return world
    there = {(one.source, one.type, one.target) for one in world.relationships}
    edges = [one for one in relationships if (one.source, one.type, one.target) not in there]
    return world.model_copy(
        update={
            "entities": (*world.entities, entity),
            "relationships": (*world.relationships, *edges),
        }
    )


def _reached(goal: Goal, others: Mapping[str, Goal]) -> dict[str, Goal]:
    """The goal, and those of the others that it names directly or by others of them."""
    found, todo = {goal.id: goal}, [goal]
    while todo:
        one = todo.pop()
        for id in (*((one.parent_id,) if one.parent_id else ()), *one.depends_on):
            if id in others and id not in found:
                found[id] = others[id]
                todo.append(others[id])
    return found


def _named_there(goal: Goal, there: Collection[str]) -> Goal:
    """The goal, naming only goals that are there."""
    return goal.model_copy(
        update={
            "parent_id": goal.parent_id if goal.parent_id in there else None,
            "depends_on": tuple(on for on in goal.depends_on if on in there),
        }
    )


def _at_rest(goal: Goal, by_id: Mapping[str, Goal]) -> Goal:
    """The goal, blocked exactly while something that it waits for is not completed."""
    if goal.status not in (GoalStatus.ACTIVE, GoalStatus.BLOCKED):
        return goal
    done = all(by_id[on].status is GoalStatus.COMPLETED for on in goal.depends_on)
    return goal.model_copy(update={"status": GoalStatus.ACTIVE if done else GoalStatus.BLOCKED})


async def _with_goal(
    graph: GoalGraph, item: ArchivedGoal, archive: Archive, state: AwarenessState
) -> GoalGraph:
    """The graph with an archived goal, and what it names as it was archived last."""
    known, step = {one.id for one in graph.goals}, state.step + 1
    others: list[Goal] = []
    for one in item.context:
        if one.id not in known:
            found = [each.item for each in await archive.find(one.id, 1, "goal")]
            later = [
                each.goal
                for each in found
                if isinstance(each, ArchivedGoal) and not left_later(each, state.at)
            ]
            others += [each if each.id == one.id else one for each in later] or [one]
    named = item.goal.model_copy(update={"updated_step": step})
    return with_goal(
        graph, named, [one.model_copy(update={"updated_step": step}) for one in others]
    )


async def _found(
    text: str, archive: Archive, kind: ItemKind, now: datetime, settings: ReturnSettings
) -> ArchivedItem | None:
    """What a text brings back: what it names, else what is similar enough."""
    for found in await archive.find(text, 1, kind):
        near = found.by is FoundBy.NAME or found.score >= settings.least_score
        if near and not left_later(found.item, now):
            return found.item
    return None


def _missing(
    state: AwarenessState, observation: Observation, resolver: NameResolver
) -> tuple[list[str], list[str]]:
    """The goals and the things that are mentioned and that the state does not have."""
    goals = [text for one in observation.goals for text in (one.description, one.parent) if text]
    goals += [on for one in observation.goals for on in one.depends_on]
    goals += [change.goal for change in observation.goal_changes]
    known = {folded(one.description) for one in state.goals.goals}
    known |= {one.id for one in state.goals.goals}
    goals = [text for text in dict.fromkeys(goals) if folded(text) not in known]
    if not observation.entities:
        return goals, []
    index = resolver.index_of(state.world)
    seen = told_apart(observation.entities, index.names)
    things = [one.name for one in seen if index.names.find(one.name, one.type) is None]
    resolver.keep(state.world, index)
    return goals, list(dict.fromkeys(things))
