"""What all domains have in common: the adapter's members, what every domain shows, analyses."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import compress
from operator import attrgetter, is_not
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BeforeValidator

from coag.awareness.dynamics import best
from coag.awareness.fields import Foreign, ForeignText, Share
from coag.awareness.goals import Goal, GoalSource, GoalStatus
from coag.awareness.injection import InjectionBlock, InjectionItem, render_injection
from coag.awareness.names import all_forms
from coag.awareness.observation import GoalChange, Observation, ObservedGoal, ParsedValue
from coag.awareness.state import (
    AttentionItem,
    AwarenessState,
    Belief,
    Entity,
    InteractionProtocol,
    ScanPattern,
)
from coag.schema import Value, folded

# ---- The members of a domain (SAGEN table 2) ----


class DomainAdapter(ABC):
    """A domain. It holds no state, so that another process can continue from a stored one.

    `parse_observation` must be written. What is declared as class attributes, its name at least,
    may be computed instead by the members that give it. The text for prompts is made of the blocks
    that every domain shares and of `domain_blocks`; override `format_for_injection` only to render
    otherwise.
    """

    name: ClassVar[str]
    """The domain, e.g. `conversation`."""
    entity_types: ClassVar[tuple[str, ...]] = ()
    """The types that entities may have; none: any."""
    relationship_types: ClassVar[tuple[str, ...]] = ()
    """The types that relationships may have; none: any."""
    patterns: ClassVar[tuple[tuple[str, str], ...]] = ()
    """What to watch for: names with descriptions."""
    protocol: ClassVar[InteractionProtocol] = InteractionProtocol()
    """The contract that a new state starts with."""

    @property
    def domain_name(self) -> str:
        """See `name`."""
        return self.name

    def define_entity_types(self) -> tuple[str, ...]:
        """See `entity_types`."""
        return self.entity_types

    def define_relationship_types(self) -> tuple[str, ...]:
        """See `relationship_types`."""
        return self.relationship_types

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """See `patterns`."""
        return tuple(ScanPattern(name=name, description=text) for name, text in self.patterns)

    def define_protocol_defaults(self) -> InteractionProtocol:
        """See `protocol`."""
        return self.protocol

    @abstractmethod
    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What raw input means in this state, which is only read.

        Raises:
            ObservationError: It breaks the domain's schema; the error names the place.
        """

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        """The state as text of at most `budget` tokens, the tags included."""
        return render_injection((*standard_blocks(state), *self.domain_blocks(state)), budget)

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """What this domain shows besides what every domain shows."""
        del state
        return ()


# ---- Caches of what follows from entities, and names known from the state ----

_Derived = TypeVar("_Derived")


class PerEntity(Generic[_Derived]):
    """A function of an entity, applied to all entities of a world. A cache: it changes no result.

    From one step to the next most entities are the same objects; only the others are computed.
    """

    def __init__(self, of: Callable[[Entity], _Derived]) -> None:
        self._of = of
        self._last: tuple[tuple[Entity, ...], Sequence[_Derived]] = ((), ())

    def __call__(self, entities: tuple[Entity, ...]) -> Sequence[_Derived]:
        """What follows from each, in their order."""
        known, values = self._last
        if known is entities:
            return values
        derived = list(values[: len(entities)])
        for place in compress(range(len(derived)), map(is_not, known, entities)):
            derived[place] = self._of(entities[place])
        derived.extend(map(self._of, entities[len(derived) :]))
        self._last = (entities, derived)
        return derived


class KnownNames:
    """Recognises names among entities, by the forms by which the engine does.

    A name that the engine recognises by meaning alone is known here once it is an alias.
    """

    def __init__(self) -> None:
        self._forms = PerEntity(lambda one: all_forms(one.name, *one.aliases))

    def find(self, names: Sequence[str], entities: tuple[Entity, ...]) -> dict[str, Entity]:
        """For each name that is known, the entity of these that it means."""
        by_form: dict[str, list[str]] = {}
        for name in names:
            for form in all_forms(name):
                by_form.setdefault(form, []).append(name)
        by_name: dict[str, Entity] = {}
        if not by_form:
            return by_name
        for entity, forms in zip(entities, self._forms(entities), strict=True):
            if not by_form.keys().isdisjoint(forms):
                for name in (name for form in forms for name in by_form.get(form, ())):
                    by_name.setdefault(name, entity)
        return by_name


def count_in(entity: Entity | None, key: str) -> int:
    """A number in an entity's state; 0 if there is none."""
    value = entity.state.get(key) if entity is not None else None
    return value if isinstance(value, int) else 0


def is_named(name: str, text: str) -> bool:
    """Whether a text contains this name as words of its own, ignoring case."""
    return re.search(rf"(?<!\w){re.escape(folded(name))}(?!\w)", folded(text)) is not None


# ---- What every domain shows of a state ----

_Thing = TypeVar("_Thing")
MOST = 100
"""How many of one kind are considered; the others are counted as left out."""
_URGENT = 0.7
"""From this urgency on an attention item shows it."""
_FEW = 3
"""How many closed goals and lessons are shown."""


class Place(IntEnum):
    """Where a block is placed, and what is chosen first.

    Goals, attention, topics, unknowns, trajectory: that is section 4.3 of the paper. Around them
    is what it does not place.
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
    """The blocks of the six modules; entities are for the domain to show."""
    protocol, world, own = state.protocol, state.world, state.self_model
    rules = [f"- {rule}" for rule in protocol.hard_constraints]
    rules += [f"- never do: {action}" for action in own.forbidden]
    watched = [one.name for one in state.attention.scan_patterns]
    visible = state.attention.visible
    attention = ((_attention_text(one), one.urgency) for one in visible[:MOST])
    contract = (f"mode {protocol.mode.value}", protocol.style, protocol.output_format)
    resources = (
        (
            f"{one.name} {_number(one.remaining)} of {_number(one.capacity)}",
            1.0 - one.remaining / one.capacity if one.capacity else 1.0,
        )
        for one in own.resources
    )
    return (
        block("HARD CONSTRAINTS", Place.RULES, ((rule, 1.0) for rule in rules), first=len(rules)),
        *_goal_blocks(state.goals.goals),
        block("ATTENTION", Place.ATTENTION, attention, of=len(visible)),
        latest_block("UNKNOWNS", Place.UNKNOWNS, world.open_unknowns, _belief_text),
        latest_block("ASSUMPTIONS", Place.ASSUMPTIONS, world.open_assumptions, _belief_text),
        latest_block(
            "TRAJECTORY",
            Place.TRAJECTORY,
            state.trajectory.transitions,
            lambda one: f"[{one.type.value}] {one.description}",
            first=5,
        ),
        block("RESOURCES", Place.SELF, resources, inline=True),
        latest_block(
            "LESSONS",
            Place.SELF,
            own.failures[-_FEW:],
            lambda one: f"- {one.action}: {one.lesson or one.reason or 'failed'}",
        ),
        _plain_block("WATCHING FOR", Place.WATCHED, watched, inline=True),
        _plain_block("ESCALATE WHEN", Place.PROTOCOL, [f"- {one}" for one in protocol.escalation]),
        _plain_block("PROTOCOL", Place.PROTOCOL, filter(None, contract), inline=True),
    )


def block(
    heading: str,
    place: Place,
    items: Iterable[tuple[str, float]],
    *,
    of: int = 0,
    first: int = 5,
    inline: bool = False,
) -> InjectionBlock:
    """A block of texts with their urgencies; `of` says how many items exist if more do."""
    made = tuple(InjectionItem(text=text, urgency=urgency) for text, urgency in items)
    more = max(0, of - len(made))
    return InjectionBlock(
        heading=heading, priority=place, items=made, first=first, inline=inline, more=more
    )


def latest_block(
    heading: str,
    place: Place,
    things: Sequence[_Thing],
    text: Callable[[_Thing], str],
    *,
    first: int = 3,
) -> InjectionBlock:
    """A block of the latest things, oldest first: a later one is more urgent."""
    latest = things[-MOST:]
    items = ((text(one), (at + 1) / len(latest)) for at, one in enumerate(latest))
    return block(heading, place, items, of=len(things), first=first)


def _plain_block(
    heading: str, place: Place, texts: Iterable[str], *, inline: bool = False
) -> InjectionBlock:
    """A block of texts that all come last."""
    return block(heading, place, ((text, 0.5) for text in texts), first=0, inline=inline)


def _belief_text(belief: Belief) -> str:
    return f"- {belief.text}"


def _goal_blocks(goals: Sequence[Goal]) -> tuple[InjectionBlock, ...]:
    """Active goals, those that wait or are put off, and the last ones that were closed."""
    names = {goal.id: goal.description for goal in goals}
    unmet = {goal.id for goal in goals if goal.status is not GoalStatus.COMPLETED}
    active = tuple(goal for goal in goals if goal.status is GoalStatus.ACTIVE)
    open_ones = (goal for goal in goals if goal.is_open)
    waiting = tuple(goal for goal in open_ones if goal.status is not GoalStatus.ACTIVE)
    closed = [goal for goal in goals if not goal.is_open]
    closed = sorted(closed, key=lambda goal: goal.closed_step or 0)[-_FEW:]

    def active_text(goal: Goal) -> str:
        part_of = f", part of: {names[goal.parent_id]}" if goal.parent_id else ""
        done = f", done when: {goal.completion_criteria}" if goal.completion_criteria else ""
        details = f"p={_number(goal.priority)}{part_of}{done}"
        return f"[{goal.source.value}] {goal.description} ({details})"

    def waiting_text(goal: Goal) -> str:
        waits = "; ".join(names[one] for one in goal.depends_on if one in unmet)
        why = f" (waits for: {waits})" if waits else ""
        return f"[{goal.status.value}] {goal.description}{why}"

    return (
        block(
            "ACTIVE GOALS",
            Place.GOALS,
            ((active_text(goal), goal.priority) for goal in _first(active)),
            of=len(active),
        ),
        block(
            "WAITING GOALS",
            Place.OTHER_GOALS,
            ((waiting_text(goal), goal.priority) for goal in _first(waiting)),
            of=len(waiting),
        ),
        latest_block(
            "CLOSED GOALS",
            Place.OTHER_GOALS,
            closed,
            lambda goal: f"[{goal.status.value}] {goal.description}",
        ),
    )


def _first(goals: tuple[Goal, ...]) -> tuple[Goal, ...]:
    """The goals of the highest priorities, in their order; of equals those made first."""
    return best(goals[::-1], MOST, attrgetter("priority"))[::-1]


def _attention_text(item: AttentionItem) -> str:
    urgency = f" (urgency={_number(item.urgency)})" if item.urgency >= _URGENT else ""
    return f"[{item.type.value}] {item.description}{urgency}"


def _number(value: float) -> str:
    """The number with two decimals at most: `0.7`, `1.0`, `120`."""
    return str(round(float(value), 2)) if value < 10 else f"{value:.0f}"


# ---- What the analyses of messages have in common, as an observation ----

STATED_PRIORITY = 0.7
"""Of a goal that somebody states, by default (listing 1)."""
QUESTION_PRIORITY = 0.6
"""Of the goal to answer a question (listing 1)."""

ForeignNames = tuple[Foreign, ...]


def from_text(field: str) -> BeforeValidator:
    """Takes a mere text as an object with that text in this field."""
    return BeforeValidator(lambda given: {field: given} if isinstance(given, str) else given)


class StatedGoal(Value):
    """A goal that somebody stated."""

    description: Foreign
    priority: Share = STATED_PRIORITY
    parent: Foreign | None = None
    """The goal that it serves, by its description or id."""
    depends_on: ForeignNames = ()
    """Goals that must be completed first, by description or id."""
    completion_criteria: Foreign | None = None
    """How one can see that it is reached."""


class Analysis(ParsedValue):
    """The analysis of one input, made by hand or by a model."""

    message: ForeignText = ""
    """The input, word for word; it is not kept in the state."""
    goals: tuple[Annotated[StatedGoal, from_text("description")], ...] = ()
    """Goals that were stated; a mere text is a goal of that description."""
    questions: ForeignNames = ()
    """Questions that were asked; each becomes a goal to answer it."""
    answered: ForeignNames = ()
    """Earlier questions that have their answer now, as they were asked."""
    completed: ForeignNames = ()
    """Goals that are reached, by description or id."""
    abandoned: ForeignNames = ()
    """Goals that were given up, by description or id."""
    assumptions: ForeignNames = ()
    """What is assumed without being known."""
    unknowns: ForeignNames = ()
    """What would have to be known and is not."""
    resolved: ForeignNames = ()
    """Earlier assumptions and unknowns that are settled now."""

    def observed_goals(self) -> tuple[ObservedGoal, ...]:
        """The goals that were stated, and those to answer what was asked."""
        stated = (
            ObservedGoal(
                source=GoalSource.SPAWNED if goal.parent else GoalSource.EXPLICIT,
                **goal.model_dump(),
            )
            for goal in self.goals
        )
        questions = (
            ObservedGoal(
                description=f"Answer: {question}",
                source=GoalSource.INFERRED,
                priority=QUESTION_PRIORITY,
            )
            for question in self.questions
        )
        return (*stated, *questions)

    def common_parts(self) -> dict[str, Any]:
        """The parts of an observation that are the same in every domain."""
        done = (*self.completed, *(f"Answer: {question}" for question in self.answered))
        return {
            "goals": self.observed_goals(),
            "goal_changes": (
                *(GoalChange(goal=goal, status=GoalStatus.COMPLETED) for goal in done),
                *(GoalChange(goal=goal, status=GoalStatus.ABANDONED) for goal in self.abandoned),
            ),
            "assumptions": self.assumptions,
            "unknowns": self.unknowns,
            "resolved": self.resolved,
        }


def as_set(names: Iterable[str]) -> str:
    """The names in the paper's notation: `{'cooking', 'pasta carbonara'}`."""
    return "{" + ", ".join(repr(name) for name in names) + "}"
