"""Adapters: what they have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from heapq import nlargest
from itertools import compress
from operator import is_not
from typing import Generic, TypeVar

from coag.awareness.injection import InjectionBlock, InjectionItem, render_injection
from coag.awareness.observation import Observation
from coag.awareness.resolving import forms_of
from coag.awareness.settings import EngineSettings
from coag.awareness.state import (
    AttentionItem,
    AwarenessState,
    Belief,
    Entity,
    Goal,
    GoalStatus,
    InteractionProtocol,
    ScanPattern,
    folded,
)

# ---- What follows from each entity alone, worked out anew only for those that changed ----


_Found = TypeVar("_Found")


class PerEntity(Generic[_Found]):
    """A function of an entity over all entities of a world. A cache: it changes no result.

    From one step to the next most entities are the same objects; only the others are looked at.
    """

    def __init__(self, of: Callable[[Entity], _Found]) -> None:
        self._of = of
        self._kept: tuple[tuple[Entity, ...], Sequence[_Found]] = ((), ())

    def __call__(self, entities: tuple[Entity, ...]) -> Sequence[_Found]:
        """What follows from each, in their order."""
        known, kept = self._kept
        if known is entities:
            return kept
        found = list(kept[: len(entities)])
        for place in compress(range(len(found)), map(is_not, known, entities)):
            found[place] = self._of(entities[place])
        found.extend(map(self._of, entities[len(found) :]))
        self._kept = (entities, found)
        return found


# ---- Which names an adapter knows from the state, by their form ----


_GENERIC = EngineSettings().generic_words


class KnownNames:
    """Recognises names among entities. What it keeps between calls is a cache.

    Names are compared by the forms by which the engine recognises them; what it recognises by
    meaning alone is known here from the next time on, when it is an alias.
    """

    def __init__(self) -> None:
        self._forms = PerEntity(_forms_of)

    def find(self, names: Sequence[str], entities: tuple[Entity, ...]) -> dict[str, Entity]:
        """For each name that is known, the entity of these that it means."""
        asked: dict[str, list[str]] = {}
        for name in names:
            for form in _forms(name):
                asked.setdefault(form, []).append(name)
        found: dict[str, Entity] = {}
        if not asked:
            return found
        for entity, forms in zip(entities, self._forms(entities), strict=True):
            if not asked.keys().isdisjoint(forms):
                for form in forms:
                    for name in asked.get(form, ()):
                        found.setdefault(name, entity)
        return found


def _forms_of(entity: Entity) -> tuple[str, ...]:
    """The forms of all names of an entity."""
    names = (entity.name, *entity.aliases)
    return tuple(dict.fromkeys(form for name in names for form in _forms(name)))


def _forms(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(form for form in forms_of(name, _GENERIC) if form))


def is_named(name: str, text: str) -> bool:
    """Whether a text has this name in it, as words of its own, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(folded(name))}(?!\w)", folded(text)) is not None


# ---- What every domain shows of a state: one block for each thing that a reader must know ----


_Thing = TypeVar("_Thing")

MOST = 100
"""How many of one kind are considered; the others are counted as left out."""
_URGENT = 0.7
"""From here on an attention item tells its urgency."""
_CLOSED_SHOWN = 3
_LESSONS_SHOWN = 3


class Place(IntEnum):
    """Where a block stands, and what is chosen first.

    Goals, attention, topics, unknowns, trajectory: that is section 4.3 of the paper. Around them
    stands what it does not place.
    """

    RULES = 10
    GOALS = 20
    ERRORS = 30
    ATTENTION = 40
    TOPICS = 50
    UNKNOWNS = 60
    ASSUMPTIONS = 70
    TRAJECTORY = 80
    SELF = 90
    OTHER_GOALS = 100
    KNOWN = 110
    WATCHED = 120
    PROTOCOL = 130


def standard_blocks(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """The blocks of the six modules, as far as there is something in them.

    What a domain knows of its entities is the domain's to show.
    """
    return (
        *_rules(state),
        *_goals(state),
        _attention(state.attention.visible),
        _beliefs("UNKNOWNS", Place.UNKNOWNS, state.world.open_unknowns),
        _beliefs("ASSUMPTIONS", Place.ASSUMPTIONS, state.world.open_assumptions),
        _trajectory(state),
        *_self(state),
        InjectionBlock(
            heading="WATCHING FOR",
            priority=Place.WATCHED,
            items=tuple(InjectionItem(text=one.name) for one in state.attention.scan_patterns),
            first=0,
            inline=True,
        ),
        *_protocol(state.protocol),
    )


def newest_last(things: Sequence[_Thing], texts: Iterable[str]) -> tuple[InjectionItem, ...]:
    """Items for things in the order in which they came: a later one is more urgent."""
    return tuple(
        InjectionItem(text=text, urgency=(place + 1) / len(things))
        for place, text in enumerate(texts)
    )


def _rules(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """What holds whatever is wanted; a rule is never the first to go."""
    lines = [f"- {rule}" for rule in state.protocol.hard_constraints]
    lines += [f"- never do: {action}" for action in state.self_model.forbidden]
    items = tuple(InjectionItem(text=line, urgency=1.0) for line in lines)
    return (
        InjectionBlock(
            heading="HARD CONSTRAINTS", priority=Place.RULES, items=items, first=len(items)
        ),
    )


def _goals(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """Active goals; then those that wait, with what for; then the latest that ended."""
    goals = state.goals.goals
    named = {goal.id: goal.description for goal in goals}
    active = [goal for goal in goals if goal.status is GoalStatus.ACTIVE]
    waiting = [goal for goal in goals if goal.is_open and goal.status is not GoalStatus.ACTIVE]
    closed = sorted(
        (goal for goal in goals if not goal.is_open), key=lambda goal: goal.closed_step or 0
    )
    unmet = {goal.id for goal in goals if goal.status is not GoalStatus.COMPLETED}
    latest = closed[-_CLOSED_SHOWN:]
    return (
        _goal_block(
            "ACTIVE GOALS", Place.GOALS, active, {g.id: _goal_line(g, named) for g in top(active)}
        ),
        _goal_block(
            "WAITING GOALS",
            Place.OTHER_GOALS,
            waiting,
            {g.id: _waiting_line(g, named, unmet) for g in top(waiting)},
        ),
        InjectionBlock(
            heading="CLOSED GOALS",
            priority=Place.OTHER_GOALS,
            items=newest_last(latest, (f"[{g.status.value}] {g.description}" for g in latest)),
            first=_CLOSED_SHOWN,
        ),
    )


def top(goals: Sequence[Goal]) -> list[Goal]:
    """The goals of the highest priorities, in the order in which they were made."""
    if len(goals) <= MOST:
        return list(goals)
    chosen = {goal.id for goal in nlargest(MOST, goals, key=lambda goal: goal.priority)}
    return [goal for goal in goals if goal.id in chosen]


def _goal_block(
    heading: str, place: Place, goals: Sequence[Goal], lines: dict[str, str]
) -> InjectionBlock:
    return InjectionBlock(
        heading=heading,
        priority=place,
        items=tuple(
            InjectionItem(text=lines[goal.id], urgency=goal.priority)
            for goal in goals
            if goal.id in lines
        ),
        more=len(goals) - len(lines),
    )


def _goal_line(goal: Goal, named: dict[str, str]) -> str:
    part_of = f", part of: {named[goal.parent_id]}" if goal.parent_id else ""
    done = f", done when: {goal.completion_criteria}" if goal.completion_criteria else ""
    return f"[{goal.source.value}] {goal.description} (p={_number(goal.priority)}{part_of}{done})"


def _waiting_line(goal: Goal, named: dict[str, str], unmet: set[str]) -> str:
    waits = "; ".join(named[one] for one in goal.depends_on if one in unmet)
    why = f" (waits for: {waits})" if waits else ""
    return f"[{goal.status.value}] {goal.description}{why}"


def _attention(visible: Sequence[AttentionItem]) -> InjectionBlock:
    """What needs attention; the urgency is told where it is high."""
    return InjectionBlock(
        heading="ATTENTION",
        priority=Place.ATTENTION,
        items=tuple(
            InjectionItem(text=_attention_line(item), urgency=item.urgency)
            for item in visible[:MOST]
        ),
        more=max(0, len(visible) - MOST),
    )


def _attention_line(item: AttentionItem) -> str:
    told = f" (urgency={_number(item.urgency)})" if item.urgency >= _URGENT else ""
    return f"[{item.type.value}] {item.description}{told}"


def _beliefs(heading: str, place: Place, beliefs: Sequence[Belief]) -> InjectionBlock:
    latest = beliefs[-MOST:]
    return InjectionBlock(
        heading=heading,
        priority=place,
        items=newest_last(latest, (f"- {one.text}" for one in latest)),
        first=3,
        more=len(beliefs) - len(latest),
    )


def _trajectory(state: AwarenessState) -> InjectionBlock:
    """What happened, oldest first; under want of room the latest stay."""
    kept = state.trajectory.transitions
    latest = kept[-MOST:]
    return InjectionBlock(
        heading="TRAJECTORY",
        priority=Place.TRAJECTORY,
        items=newest_last(latest, (f"[{one.type.value}] {one.description}" for one in latest)),
        more=len(kept) - len(latest),
    )


def _self(state: AwarenessState) -> tuple[InjectionBlock, ...]:
    """What is left of resources, and what the latest mistakes taught."""
    resources = state.self_model.resources
    failures = state.self_model.failures[-_LESSONS_SHOWN:]
    return (
        InjectionBlock(
            heading="RESOURCES",
            priority=Place.SELF,
            items=tuple(
                InjectionItem(
                    text=f"{one.name} {_number(one.remaining)} of {_number(one.capacity)}",
                    urgency=1.0 - one.remaining / one.capacity if one.capacity else 1.0,
                )
                for one in resources
            ),
            inline=True,
        ),
        InjectionBlock(
            heading="LESSONS",
            priority=Place.SELF,
            items=newest_last(
                failures,
                (f"- {one.action}: {one.lesson or one.reason or 'failed'}" for one in failures),
            ),
            first=_LESSONS_SHOWN,
        ),
    )


def _protocol(protocol: InteractionProtocol) -> tuple[InjectionBlock, ...]:
    told = (f"mode {protocol.mode.value}", protocol.style, protocol.output_format)
    return (
        InjectionBlock(
            heading="ESCALATE WHEN",
            priority=Place.PROTOCOL,
            items=tuple(InjectionItem(text=f"- {rule}") for rule in protocol.escalation),
            first=0,
        ),
        InjectionBlock(
            heading="PROTOCOL",
            priority=Place.PROTOCOL,
            items=tuple(InjectionItem(text=one) for one in told if one),
            first=0,
            inline=True,
        ),
    )


def _number(value: float) -> str:
    """The number with two decimals at most: `0.7`, `1.0`, `120`."""
    return str(round(float(value), 2)) if value < 10 else f"{value:.0f}"


# ---- The seven members that a domain has (SAGEN table 2) ----


class DomainAdapter(ABC):
    """A domain. It keeps nothing, so that a state goes on in another process as in this one.

    Five members must be written. The text for prompts is made of the blocks that every domain
    shares and of `domain_blocks`; override `format_for_injection` only to render otherwise.
    """

    @property
    @abstractmethod
    def domain_name(self) -> str:
        """The domain, e.g. `conversation`."""

    @abstractmethod
    def define_entity_types(self) -> tuple[str, ...]:
        """The types that entities may have; none: any."""

    @abstractmethod
    def define_relationship_types(self) -> tuple[str, ...]:
        """The types that relationships may have; none: any."""

    @abstractmethod
    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """What to watch for, whatever happens."""

    @abstractmethod
    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What raw input says where things stand so; the state is only read.

        Raises:
            ObservationError: It breaks the domain's schema; the error names the place.
        """

    def define_protocol_defaults(self) -> InteractionProtocol:
        """The contract that a new state starts with."""
        return InteractionProtocol()

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        """The state as text of at most `budget` tokens, the tags included.

        Raises:
            ValueError: The budget is negative.
        """
        return render_injection((*standard_blocks(state), *self.domain_blocks(state)), budget)

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """What this domain shows besides what every domain shows."""
        del state
        return ()
