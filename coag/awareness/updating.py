"""The next state: from a state, an observation and a time, as a pure function (SAGEN §4.2)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from coag.errors import AwarenessError, ObservationError
from coag.schema import folded

from .dynamics import DynamicsSettings, decayed, learned
from .goals import Goal, GoalDraft, GoalGraph, GoalOutcomes
from .names import EngineSettings, NameIndex, NameResolver
from .observation import Observation, ObservedEntity, ObservedGoal
from .projection import project, with_readings, with_warnings
from .state import (
    Attention,
    AttentionItem,
    AwarenessState,
    Belief,
    Entity,
    FailureNote,
    Merge,
    Relationship,
    SelfModel,
    Transition,
    WorldModel,
    attention_id,
)


def updated(
    state: AwarenessState, observation: Observation, now: datetime, *, resolver: NameResolver
) -> AwarenessState:
    """The state one step later, with what was observed.

    In the order of algorithm 1: tick, entities, goals, attention, assumptions, unknowns, the
    event, expiry. What the paper has no line for is next to its module: numbers of different
    types get distinct names before entities, relationships come after them, changes of goals after
    new goals, what is settled after what is unknown, the self model before the event, compression
    after it.

    Raises:
        AwarenessError: The observation names what does not exist, or would form a circle.
    """
    ticked = state.tick(now)
    step, trajectory = ticked.step, state.trajectory
    world = _with_things(state.world, observation, step, resolver)
    goals = _with_goals(state.goals, observation, step, resolver)
    attention = _with_attention(state.attention, observation, step, state.domain)
    world = _with_beliefs(world, observation, step)
    self_model = _with_self(state.self_model, observation, step, resolver.settings)
    if observation.event is not None:
        transition = Transition(step=step, **observation.event.model_dump())
        trajectory = trajectory.record(transition).compress()
    return ticked.model_copy(
        update={
            "world": world,
            "goals": goals,
            "self_model": self_model,
            "trajectory": trajectory,
            "attention": attention.expire(step),
        }
    )


def _with_things(
    world: WorldModel, observation: Observation, step: int, resolver: NameResolver
) -> WorldModel:
    """The world with the entities and relationships that were noticed."""
    if not observation.entities and not observation.relationships:
        return world
    settings, entities, merges = resolver.settings, list(world.entities), list(world.merges)
    names = resolver.names.take(world.entities)
    for observed in names.distinct(observation.entities):
        match = names.find(observed.name, observed.type)
        if match is None:
            fields = observed.model_dump()
            entities.append(Entity(**fields, first_step=step, last_step=step))
            names.add(entities[-1])
            continue
        known, name = entities[match.position], observed.name
        entities[match.position] = _seen_again(known, observed, step)
        if name == known.name or name in known.aliases:
            continue
        how, score = match.how, match.score
        merges.append(Merge(name=name, entity=known.name, how=how, score=score, step=step))
        if len(known.aliases) < settings.kept_aliases:
            also = {"aliases": (*known.aliases, name)}
            entities[match.position] = entities[match.position].model_copy(update=also)
            names.learn(match.position, name)
    changed = world.model_copy(
        update={
            "entities": tuple(entities),
            "relationships": _with_edges(world, observation, entities, names, step, resolver),
            "merges": tuple(merges[max(0, len(merges) - settings.kept_merges) :]),
        }
    )
    resolver.names.put_back(changed.entities, names)
    return changed


def _seen_again(known: Entity, observed: ObservedEntity, step: int) -> Entity:
    new = (one for one in observed.affordances if one not in known.affordances)
    return known.model_copy(
        update={
            "state": {**known.state, **observed.state},
            "affordances": (*known.affordances, *new),
            "last_step": step,
            "mentions": known.mentions + 1,
        }
    )


def _with_edges(
    world: WorldModel,
    observation: Observation,
    entities: list[Entity],
    names: NameIndex,
    step: int,
    resolver: NameResolver,
) -> tuple[Relationship, ...]:
    """The relationships with those that were noticed; a known one gets this step."""
    if not observation.relationships:
        return world.relationships

    def named(end: str) -> str:
        position = names.position_of(end)
        return end if position is None else entities[position].name

    edges, places = list(world.relationships), resolver.edges.take(world.relationships)
    for observed in observation.relationships:
        source, target = named(observed.source), named(observed.target)
        edge = Relationship(source=source, type=observed.type, target=target, step=step)
        place = places.setdefault(edge.key, len(edges))
        edges[place : place + 1] = [edge]
    changed = tuple(edges)
    resolver.edges.put_back(changed, places)
    return changed


def _with_goals(
    graph: GoalGraph, observation: Observation, step: int, resolver: NameResolver
) -> GoalGraph:
    """The goals with those that were noticed, then with the changes of known ones."""
    if not observation.goals and not observation.goal_changes:
        return graph
    draft = resolver.goals.take(graph.goals)
    ids = [_spawned(draft, one, step) for one in observation.goals]
    for one, id in zip(observation.goals, ids, strict=True):
        if one.parent is not None:
            draft.adopt(id, draft.find(one.parent).id, step)
        for on in one.depends_on:
            draft.depend(id, draft.find(on).id, step)
    for change in observation.goal_changes:
        goal = draft.find(change.goal)
        if change.succeeded is not None:
            won, lost = goal.outcomes.successes, goal.outcomes.failures
            outcomes = GoalOutcomes(
                successes=won + change.succeeded, failures=lost + (not change.succeeded)
            )
            draft.change(goal.id, step, outcomes=outcomes)
        if change.priority is not None:
            draft.change(goal.id, step, priority=change.priority)
        if change.status is not None:
            draft.set_status(goal.id, change.status, step)
    resolver.goals.put_back(draft.goals, draft)
    return graph.drafted(draft)


def _spawned(draft: GoalDraft, observed: ObservedGoal, step: int) -> str:
    """The id of an observed goal; an open one of its description gets the higher priority."""
    known = draft.open_one(observed.description)
    if known is not None:
        draft.change(known.id, step, priority=max(known.priority, observed.priority))
        return known.id
    id = draft.fresh_id(observed.description, observed.source, step)
    fields = observed.model_dump(exclude={"parent", "depends_on"})
    draft.spawn(Goal(id=id, **fields, created_step=step, updated_step=step))
    return id


def _with_attention(
    attention: Attention, observation: Observation, step: int, source: str
) -> Attention:
    if not observation.attention_items:
        return attention
    return attention.add(
        *(
            AttentionItem(
                id=attention_id(seen.type, seen.description, seen.slot),
                created_step=step,
                source=source,
                **seen.model_dump(exclude={"slot"}),
            )
            for seen in observation.attention_items
        )
    )


def _with_beliefs(world: WorldModel, observation: Observation, step: int) -> WorldModel:
    """The world with what is assumed, what is not known, and what of both is settled now."""
    if not (observation.assumptions or observation.unknowns or observation.resolved):
        return world
    settled = set(map(folded, observation.resolved))
    beliefs: dict[str, tuple[Belief, ...]] = {}
    open_texts: set[str] = set()
    for name in ("assumptions", "unknowns"):
        known: tuple[Belief, ...] = getattr(world, name)
        open_ones = {folded(one.text) for one in known if one.resolved is None}
        new: dict[str, Belief] = {}
        for text in getattr(observation, name):
            if folded(text) not in open_ones:
                new.setdefault(folded(text), Belief(text=text, step=step))
        open_texts |= open_ones | new.keys()
        beliefs[name] = tuple(
            one.model_copy(update={"resolved": step})
            if one.resolved is None and folded(one.text) in settled
            else one
            for one in (*known, *new.values())
        )
    for place, text in enumerate(observation.resolved):
        if folded(text) not in open_texts:
            raise ObservationError(
                f"resolved[{place}]",
                f"no open assumption or unknown says {text!r}; give it as it was stated.",
            )
    return world.model_copy(update=beliefs)


def _with_self(
    self_model: SelfModel, observation: Observation, step: int, settings: EngineSettings
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
    return self_model.note(note, keep=settings.kept_failures)


def advanced(
    before: AwarenessState,
    after: AwarenessState,
    settings: DynamicsSettings,
    *,
    staying: Collection[str] = (),
) -> AwarenessState:
    """The state after a step as it changes by itself: learning, decay, projection.

    Pure. With nothing switched on it is `after`. Goals with the ids in `staying` do not fade.
    """
    state, decay, ahead = after, settings.decay, settings.projection
    if settings.learning is not None:
        state = learned(before.goals, state, settings.learning)
    if ahead is not None:
        state = with_readings(state, ahead)
    if decay is not None and before.step // decay.every != after.step // decay.every:
        state = decayed(state, decay, staying=staying)
    return state if ahead is None else with_warnings(state, project(state, ahead))
