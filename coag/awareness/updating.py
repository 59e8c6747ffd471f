"""A state after an observation."""

from __future__ import annotations

from datetime import datetime

from coag.errors import AwarenessError, GoalError, ObservationError

from .observation import (
    GoalChange,
    Observation,
    ObservedEntity,
    ObservedEvent,
    ObservedGoal,
    ObservedRelationship,
)
from .resolving import NameIndex, NameResolver, WorldIndex, settle_all, told_apart
from .state import (
    Attention,
    AttentionItem,
    AwarenessState,
    Entity,
    FailureNote,
    Goal,
    GoalDraft,
    GoalGraph,
    GoalStatus,
    Merge,
    Relationship,
    SelfModel,
    Trajectory,
    Transition,
    WorldModel,
    attention_id,
)

# ---- What an observation changes in the goal graph ----


def add_goals(draft: GoalDraft, seen: tuple[ObservedGoal, ...], step: int) -> None:
    """Adds the goals that were noticed, then says what each serves and waits for.

    A goal that is open already, by its description, is not made twice: it counts as named again,
    with the higher of the two priorities.

    Raises:
        GoalError: A parent or dependency is unknown, or would make a circle.
    """
    ids = [_spawned(draft, one, step) for one in seen]
    for one, id in zip(seen, ids, strict=True):
        if one.parent is not None:
            draft.adopt(id, draft.find(one.parent).id, step)
        for on in one.depends_on:
            draft.depend(id, draft.find(on).id, step)


def _spawned(draft: GoalDraft, seen: ObservedGoal, step: int) -> str:
    """The id of this goal, which is in the draft then."""
    known = draft.open_one(seen.description)
    if known is not None:
        draft.reprioritise(known.id, max(known.priority, seen.priority), step)
        return known.id
    goal = Goal(
        id=draft.fresh_id(seen.description, seen.source, step),
        description=seen.description,
        source=seen.source,
        priority=seen.priority,
        completion_criteria=seen.completion_criteria,
        created_step=step,
        updated_step=step,
    )
    draft.spawn(goal)
    return goal.id


def change_goals(draft: GoalDraft, changes: tuple[GoalChange, ...], step: int) -> None:
    """Completes, abandons, puts off, takes up again or weighs anew.

    Raises:
        GoalError: A goal is unknown, or is said to be blocked.
    """
    for change in changes:
        id = draft.find(change.goal).id
        if change.succeeded is not None:
            draft.score(id, succeeded=change.succeeded, step=step)
        if change.priority is not None:
            draft.reprioritise(id, change.priority, step)
        if change.status is not None:
            _move(draft, id, change.status, step)


def _move(draft: GoalDraft, id: str, status: GoalStatus, step: int) -> None:
    """Brings a goal to this status, or where that leads it."""
    match status:
        case GoalStatus.COMPLETED | GoalStatus.ABANDONED:
            draft.close(id, status, step)
        case GoalStatus.DEFERRED:
            draft.defer(id, step)
        case GoalStatus.ACTIVE:
            draft.resume(id, step)
        case GoalStatus.BLOCKED:
            raise GoalError(
                f"Goal {draft.get(id).description!r} cannot be set to blocked: say what it waits "
                "for with `depends_on`, or put it off as deferred."
            )


# ---- What an observation changes in the world model ----


def world_with(
    world: WorldModel, observation: Observation, step: int, resolver: NameResolver
) -> WorldModel:
    """The world with the entities and relationships that were noticed.

    An entity that is known, by whatever of its names, is brought up to date; another is added.
    """
    if not observation.entities and not observation.relationships:
        return world
    entities = list(world.entities)
    index = resolver.index_of(world)
    merges = [
        merge
        for seen in told_apart(observation.entities, index.names)
        if (merge := _upsert(entities, index.names, seen, step, resolver.settings.kept_aliases))
    ]
    edges = _edges(world.relationships, observation.relationships, entities, index, step)
    known_merges = (*world.merges, *merges)
    recent = known_merges[max(0, len(known_merges) - resolver.settings.kept_merges) :]
    changed = world.model_copy(
        update={"entities": tuple(entities), "relationships": edges, "merges": recent}
    )
    resolver.keep(changed, index)
    return changed


def _upsert(
    entities: list[Entity], names: NameIndex, seen: ObservedEntity, step: int, kept_aliases: int
) -> Merge | None:
    """Adds what was noticed, or brings it up to date; the merge, if its name is another one."""
    found = names.find(seen.name, seen.type)
    if found is None:
        entities.append(_new(seen, step))
        names.add(entities[-1])
        return None
    known = entities[found.position]
    merge = None
    if seen.name != known.name and seen.name not in known.aliases:
        merge = Merge(
            name=seen.name, entity=known.name, how=found.how, score=found.score, step=step
        )
        if len(known.aliases) < kept_aliases:
            known = known.model_copy(update={"aliases": (*known.aliases, seen.name)})
            names.learn(found.position, seen.name)
    entities[found.position] = _brought_up_to_date(known, seen, step)
    return merge


def _new(seen: ObservedEntity, step: int) -> Entity:
    return Entity(
        name=seen.name,
        type=seen.type,
        state=seen.state,
        affordances=seen.affordances,
        first_step=step,
        last_step=step,
    )


def _brought_up_to_date(known: Entity, seen: ObservedEntity, step: int) -> Entity:
    """The entity with its state overlaid and its affordances added to; its type stays."""
    new = tuple(one for one in seen.affordances if one not in known.affordances)
    return known.model_copy(
        update={
            "state": {**known.state, **seen.state},
            "affordances": known.affordances + new,
            "last_step": step,
            "mentions": known.mentions + 1,
        }
    )


def _edges(
    known: tuple[Relationship, ...],
    seen: tuple[ObservedRelationship, ...],
    entities: list[Entity],
    index: WorldIndex,
    step: int,
) -> tuple[Relationship, ...]:
    """The relationships with those that were noticed; one that is known is only seen again."""
    if not seen:
        return known
    edges = list(known)
    for edge in seen:
        source, target = (
            end if position is None else entities[position].name
            for end, position in (
                (end, index.names.position_of(end)) for end in (edge.source, edge.target)
            )
        )
        now = Relationship(source=source, type=edge.type, target=target, step=step)
        place = index.edges.setdefault((source, edge.type, target), len(edges))
        edges[place : place + 1] = [now]
    return tuple(edges)


def with_beliefs(
    world: WorldModel, observation: Observation, step: int, resolver: NameResolver
) -> WorldModel:
    """The world with what is assumed, what is not known, and what of both is settled now.

    Raises:
        ObservationError: What is settled was not open.
    """
    if not (observation.assumptions or observation.unknowns or observation.resolved):
        return world
    assumptions, unknowns = resolver.beliefs_of(world)
    assumptions.say(observation.assumptions, step)
    unknowns.say(observation.unknowns, step)
    settle_all(assumptions, unknowns, observation.resolved, step)
    resolver.keep_beliefs(assumptions, unknowns)
    return world.model_copy(
        update={"assumptions": assumptions.beliefs, "unknowns": unknowns.beliefs}
    )


# ---- The next state, as a pure function (SAGEN §4.2, algorithm 1) ----


def updated(
    state: AwarenessState, observation: Observation, now: datetime, *, resolver: NameResolver
) -> AwarenessState:
    """The state one step later, with what was observed.

    In the order of algorithm 1: tick, entities, goals, attention, assumptions, unknowns, the
    event, expiry. What the paper has no line for stands next to its module: numbers of different
    types are told apart before entities, relationships come after them, changes of goals after new
    goals, what is settled after what is unknown, the self model before the event, compression
    after it.

    Raises:
        AwarenessError: The observation names what does not exist, or would make a circle.
    """
    ticked = state.tick(now)
    step = ticked.step
    world = world_with(state.world, observation, step, resolver)
    goals = _pursued(state.goals, observation, step, resolver)
    attention = _noticed(state.attention, observation, step, state.domain)
    world = with_beliefs(world, observation, step, resolver)
    self_model = _self_with(state.self_model, observation, step, resolver.settings.kept_failures)
    return ticked.model_copy(
        update={
            "world": world,
            "goals": goals,
            "self_model": self_model,
            "trajectory": _recorded(state.trajectory, observation.event, step),
            "attention": attention.expire(step),
        }
    )


def _pursued(
    graph: GoalGraph, observation: Observation, step: int, resolver: NameResolver
) -> GoalGraph:
    """The goals with those that were noticed, and with what became of earlier ones."""
    if not observation.goals and not observation.goal_changes:
        return graph
    draft = resolver.goals_of(graph)
    add_goals(draft, observation.goals, step)
    change_goals(draft, observation.goal_changes, step)
    resolver.keep_goals(draft)
    return graph.drafted(draft)


def _noticed(attention: Attention, observation: Observation, step: int, source: str) -> Attention:
    """Attention with the items that were noticed."""
    if not observation.attention_items:
        return attention
    return attention.add(
        *(
            AttentionItem(
                id=attention_id(seen.type, seen.description, seen.slot),
                type=seen.type,
                description=seen.description,
                urgency=seen.urgency,
                ttl=seen.ttl,
                created_step=step,
                source=source,
            )
            for seen in observation.attention_items
        )
    )


def _recorded(trajectory: Trajectory, event: ObservedEvent | None, step: int) -> Trajectory:
    """The trajectory with the event, compressed."""
    if event is None:
        return trajectory
    transition = Transition(
        step=step, type=event.type, description=event.description, detail=event.detail
    )
    return trajectory.record(transition).compress()


def _self_with(
    self_model: SelfModel, observation: Observation, step: int, kept_failures: int
) -> SelfModel:
    """The self model with resources read and spent, and a mistake noted."""
    for resource in observation.resources:
        self_model = self_model.read(resource)
    for place, spent in enumerate(observation.spent):
        try:
            self_model = self_model.spend(spent.resource, spent.amount)
        except AwarenessError as error:
            raise ObservationError(f"spent[{place}].resource", str(error)) from error
    if observation.failure is None:
        return self_model
    note = FailureNote(step=step, **observation.failure.model_dump())
    return self_model.note(note, keep=kept_failures)
