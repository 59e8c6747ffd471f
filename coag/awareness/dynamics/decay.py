"""What fades: activation, goals and beliefs that nobody mentions."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from coag.awareness.resolving import words_of
from coag.awareness.state import (
    Attention,
    AttentionItem,
    AwarenessState,
    Belief,
    Entity,
    Goal,
    GoalGraph,
    GoalSource,
    GoalStatus,
    Relationship,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
    folded,
)
from coag.schema import Value

from .settings import DecaySettings

# ---- How present a thing or a goal still is ----
#
# Entities: base-level learning of ACT-R (Anderson et al. 2004, equation 2), B = ln of the sum of
# t^-d over all uses, t being the age of a use. The state holds the first and the last mention and
# their number, so the mentions before the last are taken as spread evenly since the first: the
# hybrid approximation of Petrov (2006, "Computationally efficient approximation of the base-level
# learning equation in ACT-R") with one exact use. It is exact for one mention and for two.
#
# Goals: the paper says that the effective priority of what is not referenced is reduced (SAGEN
# §6.6), but not how; here it halves with each half-life.


def base_level(mentions: int, first_age: float, last_age: float, decay: float) -> float:
    """Base-level activation of something that was mentioned this often.

    Args:
        mentions: How often, at least once.
        first_age: Steps since the first mention, 1 for the present step.
        last_age: Steps since the last mention, 1 for the present step.
        decay: The exponent d, between 0 and 1.
    """
    recent = last_age**-decay
    if mentions <= 1:
        return math.log(recent)
    before = mentions - 1
    if first_age <= last_age:
        return math.log(recent + before * recent)
    if before == 1:
        return math.log(recent + first_age**-decay)
    power = 1.0 - decay
    evenly = (first_age**power - last_age**power) / (power * (first_age - last_age))
    return math.log(recent + before * evenly)


def activation_of(entity: Entity, step: int, settings: DecaySettings, *, salient: bool) -> float:
    """Base-level activation of an entity at a step.

    Args:
        entity: The thing.
        step: The present step.
        settings: The exponents.
        salient: Whether a failure or a discovery names it.
    """
    return base_level(
        entity.mentions,
        _age(entity.first_step, step),
        _age(entity.last_step, step),
        settings.salient_decay if salient else settings.decay,
    )


def fresh_since(step: int, settings: DecaySettings) -> float:
    """The earliest step of a last mention that by itself keeps something over the threshold.

    Of what was mentioned before it, only more mentions can. Infinity if not even the present step
    is enough.
    """
    ages = range(1, step + 2)
    enough = bisect_left(
        ages, True, key=lambda age: base_level(1, age, age, settings.decay) < settings.threshold
    )
    return step - enough + 1 if enough else math.inf


def effective_priorities(graph: GoalGraph, step: int, settings: DecaySettings) -> dict[str, float]:
    """What each goal's priority comes to at a step, by the goal's id.

    It halves with each half-life since the goal, or an open goal that serves it, was last named or
    changed; being named brings it back to the priority itself.
    """
    latest = last_words(graph)
    return {goal.id: _faded_by(goal, step - latest[goal.id], settings) for goal in graph.goals}


def last_words(graph: GoalGraph) -> dict[str, int]:
    """By goal id the step when it, or an open goal that serves it, was last named or changed."""
    latest = {goal.id: goal.updated_step for goal in graph.goals}
    parents = {goal.id: goal.parent_id for goal in graph.goals if goal.parent_id is not None}
    told: set[str] = set()
    # From the latest word on: whoever was told before has one at least as late.
    serving = [goal for goal in graph.goals if goal.parent_id is not None and goal.is_open]
    for goal in sorted(serving, key=lambda goal: -goal.updated_step):
        above = goal.parent_id
        while above is not None and above not in told:
            told.add(above)
            latest[above] = max(latest[above], goal.updated_step)
            above = parents.get(above)
    return latest


def _faded_by(goal: Goal, age: int, settings: DecaySettings) -> float:
    explicit = goal.source is GoalSource.EXPLICIT
    half_life = settings.explicit_half_life if explicit else settings.half_life
    return goal.priority * 0.5 ** (max(0, age) / half_life)


def _age(then: int, now: int) -> float:
    """Steps since then, the present one counted; a step to come counts as the present one."""
    return float(max(0, now - then) + 1)


# ---- Which things texts name: found by the words of their names, in one pass over the texts ----


PROJECTED = "projection"
"""Source of the attention items that projection raises; they name, but they do not hold."""
_LONGEST = 8
"""Words of a name that are compared; of a longer one the first ones."""
_INTACT, _LOST = 2, 2
"""Letters of a word that are the same in the singular, and by how many that is shorter."""
_SALIENT = (TransitionType.FAILURE, TransitionType.DISCOVERY)


def named_by(texts: Iterable[str], entities: Iterable[Entity]) -> set[str]:
    """The names of those entities that one of the texts names, by any of their names.

    Case, spacing and number do not count. It rather finds too much than too little: `scrapers`
    names `scraper`, `web-scraper` names `web scraper`.
    """
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    wordless: list[tuple[str, str]] = []
    for entity in entities:
        for name in (entity.name, *entity.aliases):
            words = words_of(name)[:_LONGEST]
            if words:
                wanted[_singular("".join(words))].append(entity.name)
            else:
                wordless.append((folded(name), entity.name))
    if not wanted and not wordless:
        return set()
    said = tuple(texts)
    found = {name for form in _said(said, wanted.keys()) for name in wanted[form]}
    plain = [folded(text) for text in said] if wordless else []
    return found | {name for form, name in wordless if any(form in text for text in plain)}


def _said(texts: Iterable[str], wanted: Collection[str]) -> set[str]:
    """Those of the wanted forms that words of a text, in a row, make."""
    beginnings = {form[:_INTACT] for form in wanted}
    longest = max(map(len, wanted), default=0) + _LOST
    found: set[str] = set()
    for text in texts:
        words = words_of(text)
        for start, word in enumerate(words):
            if len(word) >= _INTACT and word[:_INTACT] not in beginnings:
                continue
            joined = ""
            for following in words[start : start + _LONGEST]:
                joined += following
                if len(joined) > longest:
                    break
                form = _singular(joined)
                if form in wanted:
                    found.add(form)
    return found


def held_texts(state: AwarenessState) -> Iterator[str]:
    """What open goals and attention items say: whatever these name stays in the world."""
    for goal in state.goals.goals:
        if goal.is_open:
            yield from texts_of(goal)
    yield from (one.description for one in state.attention.items if one.source != PROJECTED)


def texts_of(goal: Goal) -> tuple[str, ...]:
    """What a goal says."""
    return tuple(text for text in (goal.description, goal.completion_criteria) if text)


def salient_texts(state: AwarenessState) -> tuple[str, ...]:
    """What failures and discoveries say, in the trajectory and in the notes of mistakes."""
    said: list[str] = []
    for one in state.trajectory.transitions:
        if one.type in _SALIENT:
            said += [one.description, *(str(value) for value in one.detail.values())]
    for note in state.self_model.failures:
        said += [note.action, note.reason, note.lesson]
    return tuple(said)


class Attended:
    """Which goals attention items name, by their words or their ids."""

    def __init__(self, attention: Attention) -> None:
        told = [item.description for item in attention.items if item.source != PROJECTED]
        self._told = [(text, folded(text)) for text in told]

    def names(self, goal: Goal) -> bool:
        """Whether an item names this goal."""
        if not self._told:
            return False
        wanted = folded(goal.description)
        return any(goal.id in text or wanted in plain for text, plain in self._told)


def _singular(word: str) -> str:
    """Without the `s` or `es` of a plural, roughly, and the same way everywhere."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word.removesuffix("s").removesuffix("e") if len(word) > 3 else word


# ---- What leaves the goal graph ----


class DecayedGoals(Value):
    """A graph without the goals that faded, and those."""

    graph: GoalGraph
    goals: tuple[Goal, ...] = ()


def decayed_goals(
    state: AwarenessState, settings: DecaySettings, staying: Collection[str] = ()
) -> DecayedGoals:
    """The goals without those that are over and those that faded.

    A closed goal leaves when it was not named for a while, an open one when its effective priority
    is under the threshold and no attention item names it. A goal stays while one that stays serves
    it or waits for it; only what is completed is waited for no more. Where there are too many
    goals, more leave, and what waited for them does so no longer.

    Args:
        state: The state.
        settings: Threshold and bounds.
        staying: Ids of goals that stay whatever happens.
    """
    graph, step = state.goals, state.step
    weight = effective_priorities(graph, step, settings)
    attended = Attended(state.attention)
    leaving = {
        goal.id
        for goal in graph.goals
        if goal.id not in staying and _is_over(goal, weight[goal.id], step, attended, settings)
    }
    leaving = _without_needed(graph, leaving)
    leaving |= _surplus(graph, leaving, weight, settings.most_goals, staying)
    if not leaving:
        return DecayedGoals(graph=graph)
    return DecayedGoals(
        graph=graph.without(leaving),
        goals=tuple(goal for goal in graph.goals if goal.id in leaving),
    )


def _is_over(
    goal: Goal, weight: float, step: int, attended: Attended, settings: DecaySettings
) -> bool:
    if not goal.is_open:
        return step - goal.updated_step >= settings.closed_goal_steps
    return weight < settings.goal_threshold and not attended.names(goal)


def _without_needed(graph: GoalGraph, leaving: set[str]) -> set[str]:
    """Those of the leaving goals that no staying one serves or waits for."""
    if not leaving:
        return leaving
    by_id = {goal.id: goal for goal in graph.goals}
    found = set(leaving)
    todo = [goal for goal in graph.goals if goal.id not in leaving]
    while todo:
        goal = todo.pop()
        needed = [on for on in goal.depends_on if by_id[on].status is not GoalStatus.COMPLETED]
        for id in (*needed, *((goal.parent_id,) if goal.parent_id else ())):
            if id in found:
                found.discard(id)
                todo.append(by_id[id])
    return found


def _surplus(
    graph: GoalGraph,
    leaving: set[str],
    weight: Mapping[str, float],
    most: int,
    staying: Collection[str],
) -> set[str]:
    """Goals beyond the room: first closed ones, then by effective priority; last what is needed."""
    over = len(graph.goals) - len(leaving) - most
    if over <= 0:
        return set()
    kept = [goal for goal in graph.goals if goal.id not in leaving]
    open_ones = [goal for goal in kept if goal.is_open]
    needed = {on for goal in open_ones for on in goal.depends_on}
    needed |= {goal.parent_id for goal in open_ones if goal.parent_id}
    order = sorted(
        (goal for goal in kept if goal.id not in staying),
        key=lambda goal: (
            goal.id in needed,
            goal.is_open,
            weight[goal.id] if goal.is_open else 0.0,
            goal.updated_step,
        ),
    )
    return {goal.id for goal in order[:over]}


# ---- What leaves the world model ----


class DecayedWorld(Value):
    """A world without what faded, and that."""

    world: WorldModel
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()


def decayed_world(
    world: WorldModel,
    step: int,
    settings: DecaySettings,
    *,
    held: Iterable[str] = (),
    salient: Iterable[str] = (),
) -> DecayedWorld:
    """The world without what faded.

    An entity leaves whose activation is under the threshold, or for which there is no room, unless
    a held text names it, or a fresh relationship leads to it from one that stays. A relationship
    leaves with one of its ends, or where no end is an entity when it is stale.

    Args:
        world: The world.
        step: The present step.
        settings: Threshold and bounds.
        held: Texts; what they name stays.
        salient: Texts; what they name fades more slowly.
    """
    edges = _latest_edges(world.relationships, settings.most_relationships)
    since = fresh_since(step, settings)
    others = _faded(world.entities, step, settings, since, salient)
    if others:
        names = {one.name for one in world.entities}
        staying = names.difference(one.name for one in others) | named_by(held, others)
        staying = _with_neighbours(staying, [one for one in edges if one.step >= since], names)
        others = [one for one in others if one.name not in staying]
    gone = {one.name for one in others}
    left = _linked(edges, world, gone, since)
    all_left = len(left) == len(world.relationships)
    changed = world.model_copy(
        update={
            "entities": tuple(one for one in world.entities if one.name not in gone)
            if gone
            else world.entities,
            "relationships": world.relationships if all_left else left,
            "assumptions": _settled_first_gone(world.assumptions, settings.most_beliefs),
            "unknowns": _settled_first_gone(world.unknowns, settings.most_beliefs),
        }
    )
    remaining = set[int]() if all_left else {id(one) for one in left}
    lost = () if all_left else world.relationships
    return DecayedWorld(
        world=changed,
        entities=tuple(others),
        relationships=tuple(one for one in lost if id(one) not in remaining),
    )


def _faded(
    entities: tuple[Entity, ...],
    step: int,
    settings: DecaySettings,
    since: float,
    salient: Iterable[str],
) -> list[Entity]:
    """Those that are under the threshold, or among the least active where there is no room.

    Only what would leave is looked for in texts, and only where there are too many is it reckoned
    by how much they are over it.
    """
    weak = [
        one
        for one in entities
        if one.last_step < since
        and (one.mentions <= 1 or _activation(one, step, settings) < settings.threshold)
    ]
    if not weak and len(entities) <= settings.most_entities:
        return weak
    told = named_by(salient, weak)
    out = {
        one.name
        for one in weak
        if one.name not in told or _activation(one, step, settings, told) < settings.threshold
    }
    strong = [one for one in entities if one.name not in out]
    if len(strong) > settings.most_entities:
        strong.sort(key=lambda one: -_activation(one, step, settings, told))
        out |= {one.name for one in strong[settings.most_entities :]}
    return [one for one in entities if one.name in out]


def _activation(
    entity: Entity, step: int, settings: DecaySettings, told: Collection[str] = ()
) -> float:
    return activation_of(entity, step, settings, salient=entity.name in told)


def _with_neighbours(
    staying: set[str], edges: list[Relationship], entities: Collection[str]
) -> set[str]:
    """The names with those of entities that edges lead to from them, however many edges away."""
    beside: dict[str, list[str]] = {}
    for edge in edges:
        beside.setdefault(edge.source, []).append(edge.target)
        beside.setdefault(edge.target, []).append(edge.source)
    found, todo = set(staying), list(staying)
    while todo:
        for name in beside.get(todo.pop(), ()):
            if name in entities and name not in found:
                found.add(name)
                todo.append(name)
    return found


def _linked(
    edges: tuple[Relationship, ...], world: WorldModel, gone: Collection[str], since: float
) -> tuple[Relationship, ...]:
    """The relationships that stay: with both ends, or, where no end is an entity, while fresh."""
    if not gone and all(one.step >= since for one in edges):
        return edges
    names = {one.name for one in world.entities}
    return tuple(
        one
        for one in edges
        if (
            one.source not in gone and one.target not in gone
            if one.source in names or one.target in names
            else one.step >= since
        )
    )


def _latest_edges(edges: tuple[Relationship, ...], most: int) -> tuple[Relationship, ...]:
    """The relationships seen last, in the order in which they stood."""
    if len(edges) <= most:
        return edges
    places = sorted(range(len(edges)), key=lambda place: (edges[place].step, place))
    kept = sorted(places[len(edges) - most :])
    return tuple(edges[place] for place in kept)


def _settled_first_gone(beliefs: tuple[Belief, ...], most: int) -> tuple[Belief, ...]:
    """The beliefs that there is room for: open ones first, then the latest."""
    if len(beliefs) <= most:
        return beliefs
    places = sorted(
        range(len(beliefs)),
        key=lambda place: (beliefs[place].resolved is None, beliefs[place].step, place),
    )
    kept = sorted(places[len(beliefs) - most :])
    return tuple(beliefs[place] for place in kept)


# ---- Decay of a whole state ----


class Left(Value):
    """What left a state, each as it stood then."""

    goals: tuple[Goal, ...] = ()
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    attention: tuple[AttentionItem, ...] = ()
    transitions: tuple[Transition, ...] = ()


class Decayed(Value):
    """A state without what faded, and that."""

    state: AwarenessState
    left: Left = Left()


def decayed(
    state: AwarenessState, settings: DecaySettings, *, staying: Collection[str] = ()
) -> Decayed:
    """The state without what faded: goals first, then what nothing names any more.

    Pure: the same state and settings give the same. What the program declared, the protocol and
    the scan patterns stay as they are.

    Args:
        state: The state.
        settings: Thresholds and bounds.
        staying: Ids of goals that stay whatever happens, e.g. the one that is being pursued.
    """
    salient = salient_texts(state)
    goals = decayed_goals(state, settings, staying)
    transitions, old = _latest(state.trajectory, settings.most_transitions)
    attention, ignored = _most_urgent(state.attention, settings.most_attention)
    smaller = state.model_copy(
        update={"goals": goals.graph, "trajectory": transitions, "attention": attention}
    )
    world = decayed_world(
        state.world, state.step, settings, held=held_texts(smaller), salient=salient
    )
    return Decayed(
        state=smaller.model_copy(update={"world": world.world}),
        left=Left(
            goals=goals.goals,
            entities=world.entities,
            relationships=world.relationships,
            attention=ignored,
            transitions=old,
        ),
    )


def weighed(state: AwarenessState, settings: DecaySettings) -> AwarenessState:
    """The state as it is to be shown: each goal with its effective priority.

    It is a view; going on from it would let priorities fade twice.
    """
    weight = effective_priorities(state.goals, state.step, settings)
    goals = tuple(
        goal.model_copy(update={"priority": weight[goal.id]}) for goal in state.goals.goals
    )
    graph = state.goals.model_copy(update={"goals": goals})
    return state.model_copy(update={"goals": graph})


def _latest(trajectory: Trajectory, most: int) -> tuple[Trajectory, tuple[Transition, ...]]:
    over = len(trajectory.transitions) - most
    if over <= 0:
        return trajectory, ()
    kept = trajectory.transitions[over:]
    return trajectory.model_copy(update={"transitions": kept}), trajectory.transitions[:over]


def _most_urgent(attention: Attention, most: int) -> tuple[Attention, tuple[AttentionItem, ...]]:
    """The items there is room for, and the others; ids are suppressed while there is room."""
    if len(attention.items) <= most and len(attention.suppressed) <= most:
        return attention, ()
    order = sorted(attention.items, key=lambda item: (-item.urgency, -item.created_step))
    kept = {item.id for item in order[:most]}
    items = tuple(item for item in attention.items if item.id in kept)
    suppressed = attention.suppressed[max(0, len(attention.suppressed) - most) :]
    return (
        attention.model_copy(update={"items": items, "suppressed": suppressed}),
        tuple(item for item in attention.items if item.id not in kept),
    )
