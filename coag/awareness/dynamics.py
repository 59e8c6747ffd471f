"""How a state changes by itself, which SAGEN leaves as future work (§6.6, §7.3, §7.6, §8).

`decayed` removes entities and goals that faded and keeps the state bounded. `learned` counts how
goals went, and `learned_priority` moves the priority of new ones by it. `projection` warns of what
lies ahead, `archive` stores what left. All are pure functions of state and settings, and off
unless `DynamicsSettings` switches them on.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from heapq import nlargest
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

from pydantic import Field

from coag.schema import Value, folded

from .fields import Share
from .goals import Goal, GoalGraph, GoalOutcomes, GoalSource, GoalStatus
from .names import words_of
from .observation import Observation, ObservedGoal
from .state import (
    AwarenessState,
    Entity,
    Relationship,
    Tally,
    TallyOf,
    TransitionType,
    WorldModel,
)

# ---- Settings ----


class DecaySettings(Value):
    """How fast entities and goals fade, and how much of anything is kept.

    With the defaults a thing that was mentioned once leaves after 55 steps, and one that a failure
    or a discovery names after some 790. The bounds always hold.
    """

    every: int = Field(default=10, ge=1)
    """Steps from one decay to the next."""
    decay: float = Field(default=0.5, gt=0.0, lt=1.0)
    """The exponent d of base-level learning; 0.5 is the one of ACT-R."""
    salient_decay: float = Field(default=0.3, gt=0.0, lt=1.0)
    """The exponent for what failures and discoveries name, which fades more slowly."""
    threshold: float = -2.0
    """Base-level activation under which a thing leaves."""
    half_life: float = Field(default=20.0, gt=0.0)
    """Steps without a mention after which a goal counts half."""
    explicit_half_life: float = Field(default=60.0, gt=0.0)
    """The same for goals that the user stated."""
    goal_threshold: Share = 0.05
    """Effective priority under which an open goal leaves."""
    closed_goal_steps: int = Field(default=20, ge=0)
    """Steps after which a closed goal leaves that is not named any more."""
    most_goals: int = Field(default=200, ge=1)
    """How many goals are kept."""
    most_entities: int = Field(default=500, ge=0)
    """How many entities are kept, besides those that something in the state names."""
    most_relationships: int = Field(default=1000, ge=0)
    """How many relationships are kept, the latest ones."""
    most_beliefs: int = Field(default=100, ge=0)
    """How many assumptions, and how many unknowns are kept: open ones first, then the latest."""
    most_attention: int = Field(default=50, ge=0)
    """How many attention items are kept: the most urgent, of equals the newest."""
    most_transitions: int = Field(default=50, ge=0)
    """How many transitions are kept, sticky ones among them: the latest."""


class LearningSettings(Value):
    """How far outcomes move the priorities of goals.

    A tally's mean is (successes + a) / (successes + failures + a + b).
    """

    prior_successes: float = Field(default=2.0, gt=0.0)
    """The a of the Beta prior: successes that are assumed."""
    prior_failures: float = Field(default=2.0, gt=0.0)
    """The b of the Beta prior: failures that are assumed."""
    influence: Share = 0.2
    """By how much a priority is moved at most."""
    explicit_influence: Share = 0.1
    """By how much the priority of a goal that the user stated is moved at most."""
    most_types: int = Field(default=100, ge=1)
    """How many types of goals are counted; the one that was counted longest ago is removed."""


class Ahead(StrEnum):
    """What projection looks for."""

    RESOURCES = "resources"
    """One runs out, or falls under what a goal needs."""
    STALLS = "stalls"
    """A goal is not mentioned for a while."""
    FAILURES = "failures"
    """An action fails again and again."""
    DEADLINES = "deadlines"
    """A goal falls due."""


class ProjectionSettings(Value):
    """How far ahead projection looks, and what is worth a warning."""

    of: tuple[Ahead, ...] = tuple(Ahead)
    """What it looks for."""
    horizon: int = Field(default=10, ge=1)
    """Steps ahead."""
    horizon_seconds: float = Field(default=3600.0, gt=0.0)
    """Seconds ahead, for deadlines that are times."""
    readings: int = Field(default=10, ge=2)
    """How many readings of a resource are kept and make its trend."""
    least_readings: int = Field(default=3, ge=2)
    """Fewer make no trend."""
    stall_steps: int = Field(default=10, ge=1)
    """Steps without a mention of a goal, or of what serves it, after which it stalls."""
    failures: int = Field(default=2, ge=2)
    """How often an action fails before it is a repeated failure."""
    failure_steps: int = Field(default=20, ge=1)
    """How far back failures count."""
    least_urgency: Share = 0.4
    """Urgency of what is at the horizon; 1 is for what is here."""
    most: int = Field(default=10, ge=0)
    """How many warnings at once, the most urgent."""


class ReturnSettings(Value):
    """When an archived item comes back."""

    least_score: Share = 0.8
    """Score from which on another text than a name brings something back."""
    most_lookups: int = Field(default=20, ge=0)
    """How many texts of one observation are looked up."""


class DynamicsSettings(Value):
    """What of all this is on; by default nothing."""

    decay: DecaySettings | None = None
    learning: LearningSettings | None = None
    projection: ProjectionSettings | None = None
    returning: ReturnSettings = ReturnSettings()
    """Holds where there is an archive."""

    @classmethod
    def all_on(cls) -> DynamicsSettings:
        """All of it, with its defaults."""
        return cls(
            decay=DecaySettings(), learning=LearningSettings(), projection=ProjectionSettings()
        )


# ---- Activation of entities and goals ----
#
# Entities: base-level learning of ACT-R (Anderson et al. 2004, equation 2), B = ln of the sum of
# t^-d over all uses, t being the age of a use. The state holds the first and the last mention and
# their number, so the mentions before the last are assumed to be spread evenly since the first: the
# hybrid approximation of Petrov (2006, "Computationally efficient approximation of the base-level
# learning equation in ACT-R") with one exact use. It is exact for one mention and for two.
#
# Goals: the paper says that the effective priority of what is not referenced is reduced (SAGEN
# §6.6), but not how; here it halves with each half-life.


def base_level(mentions: int, first_age: float, last_age: float, decay: float) -> float:
    """Base-level activation of something with so many mentions, at least one.

    An age is in steps, 1 for the present step; the decay is the exponent d, between 0 and 1.
    """
    recent, before = last_age**-decay, mentions - 1
    if before < 1 or first_age <= last_age:
        return math.log(recent + max(0, before) * recent)
    if before == 1:
        return math.log(recent + first_age**-decay)
    power = 1.0 - decay
    evenly = (first_age**power - last_age**power) / (power * (first_age - last_age))
    return math.log(recent + before * evenly)


def _activation(entity: Entity, step: int, decay: float) -> float:
    first, last = (max(0, step - then) + 1.0 for then in (entity.first_step, entity.last_step))
    return base_level(entity.mentions, first, last, decay)


def _fresh_since(step: int, settings: DecaySettings) -> float:
    """The earliest step of a single mention that keeps something over the threshold."""
    ages = range(1, step + 2)
    enough = bisect_left(
        ages, True, key=lambda age: base_level(1, age, age, settings.decay) < settings.threshold
    )
    return step - enough + 1 if enough else math.inf


def last_mentions(graph: GoalGraph) -> dict[str, int]:
    """By goal id the step when it, or an open goal that serves it, was last named or changed."""
    latest = {goal.id: goal.updated_step for goal in graph.goals}
    parents = {goal.id: goal.parent_id for goal in graph.goals}
    reached: set[str] = set()
    serving = [goal for goal in graph.goals if goal.parent_id is not None and goal.is_open]
    # From the latest on: whatever is reached already has one at least as late.
    for goal in sorted(serving, key=lambda goal: -goal.updated_step):
        above = goal.parent_id
        while above is not None and above not in reached:
            reached.add(above)
            latest[above] = max(latest[above], goal.updated_step)
            above = parents[above]
    return latest


def effective_priorities(graph: GoalGraph, step: int, settings: DecaySettings) -> dict[str, float]:
    """Each goal's effective priority at a step, by the goal's id.

    It halves with each half-life since the goal, or an open goal that serves it, was last named or
    changed; a mention restores the priority itself.
    """
    latest, own, stated = last_mentions(graph), settings.half_life, settings.explicit_half_life
    weights: dict[str, float] = {}
    for goal in graph.goals:
        half_life = stated if goal.source is GoalSource.EXPLICIT else own
        weights[goal.id] = goal.priority * 0.5 ** (max(0, step - latest[goal.id]) / half_life)
    return weights


def weighed(state: AwarenessState, settings: DecaySettings | None) -> AwarenessState:
    """The state as it is to be shown: each goal with its effective priority, if goals fade.

    It is a view; a step from it would let priorities fade twice.
    """
    if settings is None:
        return state
    weight = effective_priorities(state.goals, state.step, settings)
    goals = tuple(
        goal.model_copy(update={"priority": weight[goal.id]}) for goal in state.goals.goals
    )
    return state.model_copy(update={"goals": state.goals.model_copy(update={"goals": goals})})


# ---- Which things texts name: found by the words of their names, in one pass over the texts ----

PROJECTED = "projection"
"""Source of the attention items that projection raises; what they name is not kept for it."""
_LONGEST = 8
"""Words of a name that are compared; of a longer one the first ones."""
_INTACT, _LOST = 2, 2
"""Letters of a word that are the same in the singular, and by how many that is shorter."""


def _named_by(texts: Iterable[str], entities: Iterable[Entity]) -> set[str]:
    """The names of those entities that one of the texts names, by any of their names.

    Case, spacing and number do not count. It finds too much rather than too little: `scrapers`
    names `scraper`, `web-scraper` names `web scraper`.
    """
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    wordless: list[tuple[str, str]] = []
    for entity in entities:
        for name in (entity.name, *entity.aliases):
            words = words_of(name)[:_LONGEST]
            if words:
                wanted[_stem("".join(words))].append(entity.name)
            else:
                wordless.append((folded(name), entity.name))
    if not wanted and not wordless:
        return set()
    texts = tuple(texts)
    found = {name for form in _forms_in(texts, wanted.keys()) for name in wanted[form]}
    plain = [folded(text) for text in texts] if wordless else []
    return found | {name for form, name in wordless if any(form in text for text in plain)}


def _forms_in(texts: Iterable[str], wanted: Collection[str]) -> Iterator[str]:
    """Those of the wanted forms that words of a text, in a row, make."""
    beginnings = {form[:_INTACT] for form in wanted}
    longest = max(map(len, wanted), default=0) + _LOST
    for text in texts:
        words = words_of(text)
        for start, word in enumerate(words):
            if len(word) >= _INTACT and word[:_INTACT] not in beginnings:
                continue
            for joined in accumulate(words[start : start + _LONGEST]):
                if len(joined) > longest:
                    break
                if (form := _stem(joined)) in wanted:
                    yield form


def _stem(word: str) -> str:
    """Without the `s` or `es` of a plural, roughly."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word.removesuffix("s").removesuffix("e") if len(word) > 3 else word


def _attention_texts(state: AwarenessState) -> list[str]:
    return [one.description for one in state.attention.items if one.source != PROJECTED]


# ---- Bounds ----

_Thing = TypeVar("_Thing")


def best(
    things: tuple[_Thing, ...], keep: int, worth: Callable[[_Thing], Any]
) -> tuple[_Thing, ...]:
    """The things of most worth, in their order; of equals the later ones."""
    if len(things) <= keep:
        return things
    places = nlargest(keep, range(len(things)), key=lambda place: (worth(things[place]), place))
    return tuple(things[place] for place in sorted(places))


def bounded_world(world: WorldModel, relationships: int, beliefs: int) -> WorldModel:
    """The world with the latest relationships, and of beliefs the open ones, then the latest."""
    changes: dict[str, object] = {
        name: best(getattr(world, name), beliefs, lambda one: (one.resolved is None, one.step))
        for name in ("assumptions", "unknowns")
    }
    changes["relationships"] = best(world.relationships, relationships, lambda one: one.step)
    return world.model_copy(update=changes)


def bounded_focus(state: AwarenessState, attention: int, transitions: int) -> AwarenessState:
    """The state with the most urgent attention items, of equals the newest; the latest changes.

    As many of the latest suppressed ids are kept as attention items.
    """
    before, went = state.attention, state.trajectory.transitions
    focus = {
        "items": best(before.items, attention, lambda item: (item.urgency, item.created_step)),
        "suppressed": before.suppressed[max(0, len(before.suppressed) - attention) :],
    }
    latest = {"transitions": went[max(0, len(went) - transitions) :]}
    return state.model_copy(
        update={
            "attention": before.model_copy(update=focus),
            "trajectory": state.trajectory.model_copy(update=latest),
        }
    )


# ---- Decay ----


def decayed(
    state: AwarenessState, settings: DecaySettings, *, staying: Collection[str] = ()
) -> AwarenessState:
    """The state without what faded: goals first, then what nothing names any more.

    Pure. What the program declared, the protocol and the scan patterns stay as they are, and so do
    the goals whose ids are in `staying`, e.g. the one that is being pursued.
    """
    salient = [
        text
        for one in state.trajectory.transitions
        if one.type in (TransitionType.FAILURE, TransitionType.DISCOVERY)
        for text in (one.description, *map(str, one.detail.values()))
    ]
    for note in state.self_model.failures:
        salient += (note.action, note.reason, note.lesson)
    after = bounded_focus(state, settings.most_attention, settings.most_transitions)
    goals = _decayed_goals(state, settings, staying)
    held = _attention_texts(after)
    for goal in goals.goals:
        if goal.is_open:
            held += (goal.description, goal.completion_criteria or "")
    world = decayed_world(state.world, state.step, settings, held=held, salient=salient)
    return after.model_copy(update={"goals": goals, "world": world})


def _decayed_goals(
    state: AwarenessState, settings: DecaySettings, staying: Collection[str]
) -> GoalGraph:
    """The goals without those that are over and those that faded.

    A closed goal leaves when it was not named for a while, an open one when its effective priority
    is under the threshold and no attention item names it. A goal stays while one that stays serves
    it or waits for it, unless it is completed. Beyond the bound more leave, and references to them
    are removed: first closed ones, then by effective priority; needed ones last.
    """
    graph, step = state.goals, state.step
    weight = effective_priorities(graph, step, settings)
    attended = [(text, folded(text)) for text in _attention_texts(state)]

    def is_over(goal: Goal) -> bool:
        if not goal.is_open:
            return step - goal.updated_step >= settings.closed_goal_steps
        if weight[goal.id] >= settings.goal_threshold:
            return False
        wanted = folded(goal.description)
        return not any(goal.id in text or wanted in plain for text, plain in attended)

    leaving = {goal.id for goal in graph.goals if goal.id not in staying and is_over(goal)}
    by_id = {goal.id: goal for goal in graph.goals}
    todo = [goal for goal in graph.goals if goal.id not in leaving] if leaving else []
    for goal in todo:
        needed = [on for on in goal.depends_on if by_id[on].status is not GoalStatus.COMPLETED]
        for id in leaving.intersection((*needed, goal.parent_id or "")):
            leaving.discard(id)
            todo.append(by_id[id])
    rest = [goal for goal in graph.goals if goal.id not in leaving]
    if len(rest) > settings.most_goals:
        wanted = {id for goal in rest if goal.is_open for id in goal.references}

        def worth(goal: Goal) -> tuple[bool, bool, float, int]:
            counts = weight[goal.id] if goal.is_open else 0.0
            return goal.id in wanted, goal.is_open, counts, goal.updated_step

        order = sorted((goal for goal in rest if goal.id not in staying), key=worth)
        leaving |= {goal.id for goal in order[: len(rest) - settings.most_goals]}
    return graph.without(leaving) if leaving else graph


def decayed_world(
    world: WorldModel,
    step: int,
    settings: DecaySettings,
    *,
    held: Iterable[str] = (),
    salient: Iterable[str] = (),
) -> WorldModel:
    """The world without what faded.

    An entity leaves whose activation is under the threshold, or that is over the bound, unless a
    held text names it, or a fresh relationship leads to it from one that stays. What a salient text
    names fades more slowly. A relationship leaves with one of its ends, or, where no end is an
    entity, when it is stale.
    """
    world = bounded_world(world, settings.most_relationships, settings.most_beliefs)
    edges, since = world.relationships, _fresh_since(step, settings)
    gone = _faded(world.entities, step, settings, since, salient)
    if not gone and all(edge.step >= since for edge in edges):
        return world
    names = {one.name for one in world.entities}
    if gone:
        faded = [one for one in world.entities if one.name in gone]
        staying = (names - gone) | _named_by(held, faded)
        gone -= _with_neighbours(staying, [one for one in edges if one.step >= since], names)

    def stays(edge: Relationship) -> bool:
        ends = {edge.source, edge.target}
        return gone.isdisjoint(ends) and (edge.step >= since or not names.isdisjoint(ends))

    changes: dict[str, object] = {}  # what stays whole stays the same object, for the indexes
    if gone:
        changes["entities"] = tuple(one for one in world.entities if one.name not in gone)
    if len(rest := tuple(filter(stays, edges))) < len(edges):
        changes["relationships"] = rest
    return world.model_copy(update=changes)


def _faded(
    entities: tuple[Entity, ...],
    step: int,
    settings: DecaySettings,
    since: float,
    salient: Iterable[str],
) -> set[str]:
    """The names of those under the threshold, or among the least active over the bound.

    Only what would leave is searched for in texts.
    """
    fast, least = settings.decay, settings.threshold
    weak = [
        one for one in entities if one.last_step < since and _activation(one, step, fast) < least
    ]
    if not weak and len(entities) <= settings.most_entities:
        return set()
    slow = _named_by(salient, weak)
    activation = {
        one.name: _activation(one, step, settings.salient_decay if one.name in slow else fast)
        for one in entities
    }
    gone = {one.name for one in weak if activation[one.name] < least}
    strong = [one.name for one in entities if one.name not in gone]
    strong.sort(key=lambda name: -activation[name])
    return gone | set(strong[settings.most_entities :])


def _with_neighbours(
    staying: set[str], edges: Iterable[Relationship], entities: Collection[str]
) -> set[str]:
    """The names, and those of entities that edges connect to them over any number of edges."""
    beside: defaultdict[str, list[str]] = defaultdict(list)
    for edge in edges:
        beside[edge.source].append(edge.target)
        beside[edge.target].append(edge.source)
    found, todo = set(staying), list(staying) if beside else []
    for one in todo:
        for name in beside.get(one, ()):
            if name in entities and name not in found:
                found.add(name)
                todo.append(name)
    return found


# ---- Learning: priorities of goals from how goals went (SAGEN §7.6, §8) ----
#
# Successes and failures are counted by where goals come from and by what they are about. Each count
# is a Beta-Bernoulli model: with a prior Beta(a, b), s successes and f failures give the expected
# rate (s + a) / (s + f + a + b) (Gelman et al., Bayesian Data Analysis, §2.4). The prior of a type
# is as strong as that of its source and lies at the source's rate, so that a type of which little
# is known counts as its source does.


def _keys(source: GoalSource, description: str) -> tuple[tuple[TallyOf, str], ...]:
    """By what a goal is counted: its source, and its type, which is its first word."""
    words = words_of(description)
    return (TallyOf.SOURCE, source.value), (TallyOf.TYPE, words[0] if words else "other")


def learned(before: GoalGraph, after: AwarenessState, settings: LearningSettings) -> AwarenessState:
    """The state with its tallies updated by what happened to goals in one step.

    What was done for a goal counts as it is scored; that a goal is completed counts as one more
    success, that it is abandoned as one more failure. A goal that left the graph counts no more.
    """
    known = {goal.id: goal for goal in before.goals}
    tallies = {(one.of, one.name): one for one in after.self_model.tallies}
    changed = False
    for goal in after.goals.goals:
        old = known.get(goal.id)
        if old is goal:
            continue
        had = old.outcomes if old else GoalOutcomes()
        ended = (old is None or old.is_open) and not goal.is_open
        completed = ended and goal.status is GoalStatus.COMPLETED
        won = max(0, goal.outcomes.successes - had.successes) + completed
        lost = max(0, goal.outcomes.failures - had.failures) + (ended and not completed)
        for key in _keys(goal.source, goal.description) if won or lost else ():
            changed = True
            one = tallies.pop(key, Tally(of=key[0], name=key[1]))
            counts = {"successes": one.successes + won, "failures": one.failures + lost}
            tallies[key] = one.model_copy(update=counts)
    if not changed:
        return after
    types = [key for key in tallies if key[0] is TallyOf.TYPE]
    gone = types[: max(0, len(types) - settings.most_types)]
    rest = tuple(one for key, one in tallies.items() if key not in gone)
    self_model = after.self_model.model_copy(update={"tallies": rest})
    return after.model_copy(update={"self_model": self_model})


def learned_priority(
    priority: float,
    source: GoalSource,
    description: str,
    tallies: tuple[Tally, ...],
    settings: LearningSettings,
) -> float:
    """A goal's priority, moved by how goals of its source and type went.

    Goals that always succeed move up by `influence`, goals that never do move down by it, and the
    rate of the prior moves nothing. An explicit goal is moved by `explicit_influence` at most.
    """
    most = settings.explicit_influence if source is GoalSource.EXPLICIT else settings.influence
    strength = settings.prior_successes + settings.prior_failures
    rate = prior = settings.prior_successes / strength
    counted = {(one.of, one.name): one for one in tallies}
    for one in filter(None, map(counted.get, _keys(source, description))):
        rate = (one.successes + strength * rate) / (one.successes + one.failures + strength)
    room = 1.0 - prior if rate > prior else prior
    return min(1.0, max(0.0, priority + most * (rate - prior) / room))


def weighed_goals(
    observation: Observation, state: AwarenessState, settings: LearningSettings | None
) -> Observation:
    """The observation with the priorities of its goals moved by what was learned, if anything was.

    Priorities that changes of goals set stay as they are.
    """
    tallies = state.self_model.tallies
    if settings is None or not tallies or not observation.goals:
        return observation

    def moved(goal: ObservedGoal) -> ObservedGoal:
        fields = (goal.priority, goal.source, goal.description)
        return goal.model_copy(update={"priority": learned_priority(*fields, tallies, settings)})

    return observation.model_copy(update={"goals": tuple(map(moved, observation.goals))})


if not TYPE_CHECKING:  # else any wrong name would pass as one that has moved

    def __getattr__(name: str) -> Any:
        """Names that are in `coag.awareness` now."""
        if name in ("DynamicEngine", "SharedEngine", "SharedWorld", "RecordArchive", "Archive"):
            warn(f"{name} is in coag.awareness now.", DeprecationWarning, stacklevel=2)
            return getattr(import_module("coag.awareness"), name)
        raise AttributeError(f"module 'coag.awareness.dynamics' has no attribute {name!r}")
