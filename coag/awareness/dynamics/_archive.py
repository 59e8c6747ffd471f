"""What left a state, kept so that it can return."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field

from coag.awareness._names import forms_of
from coag.awareness._settings import EngineSettings
from coag.awareness.state import Entity, Goal, GoalGraph, Relationship, Share, Step, folded
from coag.schema import Moment, Value

from ._decay import Left

_CONTEXT = 20
"""Goals that an archived one takes along: what it serves and waits for."""


class ArchivedGoal(Value):
    """A goal as it left."""

    kind: Literal["goal"] = "goal"
    goal: Goal
    context: tuple[Goal, ...] = ()
    """What it serves and waits for, the nearest first, as they stood then."""
    step: Step = 0
    """When it left."""
    at: Moment | None = None
    """The time then."""

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.goal.description

    @property
    def names(self) -> frozenset[str]:
        """The forms of all that it is called by: its description and its id."""
        return frozenset((folded(self.goal.description), self.goal.id))


class ArchivedEntity(Value):
    """A thing as it left, with the relationships that left with it."""

    kind: Literal["entity"] = "entity"
    entity: Entity
    relationships: tuple[Relationship, ...] = ()
    step: Step = 0
    """When it left."""
    at: Moment | None = None
    """The time then."""

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.entity.name

    @property
    def names(self) -> frozenset[str]:
        """The forms of all that it is called by: its name and its other names."""
        return frozenset(
            form for name in (self.entity.name, *self.entity.aliases) for form in name_forms(name)
        )


ItemKind = Literal["goal", "entity"]
ArchivedItem = Annotated[ArchivedGoal | ArchivedEntity, Field(discriminator="kind")]


class FoundBy(StrEnum):
    """How an archived item was found."""

    NAME = "name"
    SCORE = "score"
    """By what the text is about."""


class FoundItem(Value):
    """An archived item that a text brought up."""

    item: ArchivedItem
    by: FoundBy
    score: Share = 1.0
    """How well it fits the text; 1 for a name."""


class Archive(Protocol):
    """Where items rest. The latest version of a goal or an entity counts."""

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        """Keeps items; one that is kept already is replaced, unless that left later."""
        ...

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        """At most `k` items, those that the text names first, then the most similar.

        Args:
            text: A goal's description or id, or the name of a thing.
            k: At most so many.
            kind: Goals or things; None for both.
        """
        ...


@runtime_checkable
class ApartArchive(Archive, Protocol):
    """An archive that keeps what is one person's apart from what is another's."""

    def within(self, scope: str) -> Archive:
        """The same archive for one person.

        Args:
            scope: The person's, see `coag.memory.user_scope`.
        """
        ...


def archived(
    left: Left, before: GoalGraph, step: int, at: datetime | None = None
) -> tuple[ArchivedItem, ...]:
    """What of all that left is to be kept: goals, and things with their relationships.

    Args:
        left: What left.
        before: The goals as they were before.
        step: When it left.
        at: The time then.
    """
    goals = tuple(
        ArchivedGoal(goal=goal, context=_context(goal, before), step=step, at=at)
        for goal in left.goals
    )
    edges: dict[str, list[Relationship]] = {}
    for edge in left.relationships:
        for end in dict.fromkeys((edge.source, edge.target)):
            edges.setdefault(end, []).append(edge)
    entities = tuple(
        ArchivedEntity(entity=one, relationships=tuple(edges.get(one.name, ())), step=step, at=at)
        for one in left.entities
    )
    return (*goals, *entities)


def left_later(item: ArchivedItem, now: datetime) -> bool:
    """Whether an item left only after this time: for a state of then it is not there yet."""
    return item.at is not None and item.at > now


def name_forms(name: str) -> frozenset[str]:
    """The forms under which the names of things are compared."""
    return frozenset(form for form in forms_of(name, EngineSettings().generic_words) if form)


def _context(goal: Goal, graph: GoalGraph) -> tuple[Goal, ...]:
    by_id = {one.id: one for one in graph.goals}
    found: dict[str, Goal] = {}
    todo = [goal]
    while todo and len(found) < _CONTEXT:
        one, *todo = todo
        for id in (*((one.parent_id,) if one.parent_id else ()), *one.depends_on):
            if id in by_id and id not in found and len(found) < _CONTEXT:
                found[id] = by_id[id]
                todo.append(by_id[id])
    return tuple(found.values())
