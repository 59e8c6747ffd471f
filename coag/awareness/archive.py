"""An archive: what left a state is stored there, and returns when it is mentioned again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import Annotated, Any, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import Field, TypeAdapter, ValidationError

from coag.errors import AwarenessError
from coag.schema import (
    Clock,
    Event,
    Fact,
    MemoryKind,
    Moment,
    Provenance,
    RecalledRecord,
    Record,
    SystemClock,
    Trust,
    Value,
    folded,
    record_id,
)
from coag.store import RecordStore, Search

from .dynamics import ReturnSettings
from .fields import Share, Step
from .goals import Goal, GoalGraph
from .names import NameResolver, all_forms
from .observation import Observation, where_wrong
from .state import AwarenessState, Entity, Relationship, WorldModel

# ---- What is archived ----

_Thing = TypeVar("_Thing")
_CONTEXT = 20
"""How many linked goals an archived goal contains."""


class _Archived(Value):
    """What every archived item has."""

    step: Step = 0
    """When it left."""
    at: Moment | None = None
    """The time then."""

    def is_later_than(self, now: datetime) -> bool:
        """Whether it left only after this time: a state of that time must not find it."""
        return self.at is not None and self.at > now


class ArchivedGoal(_Archived):
    """A goal as it left."""

    kind: Literal["goal"] = "goal"
    goal: Goal
    context: tuple[Goal, ...] = ()
    """What it serves and waits for, the nearest first, as they were then."""

    @property
    def name(self) -> str:
        """Its description."""
        return self.goal.description

    @property
    def names(self) -> frozenset[str]:
        """By what it is found: its description and its id."""
        return frozenset((folded(self.goal.description), self.goal.id))


class ArchivedEntity(_Archived):
    """A thing as it left, with the relationships that left with it."""

    kind: Literal["entity"] = "entity"
    entity: Entity
    relationships: tuple[Relationship, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.entity.name

    @property
    def names(self) -> frozenset[str]:
        """By what it is found: the forms of its name and of its other names."""
        return frozenset(all_forms(self.entity.name, *self.entity.aliases))


ItemKind = Literal["goal", "entity"]
ArchivedItem = Annotated[ArchivedGoal | ArchivedEntity, Field(discriminator="kind")]


class FoundBy(StrEnum):
    """How an archived item was found."""

    NAME = "name"
    SCORE = "score"
    """By similarity."""


class FoundItem(Value):
    """An archived item that a text names or resembles."""

    item: ArchivedItem
    by: FoundBy
    score: Share = 1.0
    """How well it fits the text; 1 for a name."""


class Archive(Protocol):
    """Stores items. The latest version of a goal or an entity counts."""

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        """Stores items; one that is stored already is replaced, unless that left later."""
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
    """An archive that separates one person's items from another's."""

    def within(self, scope: str) -> Archive:
        """The same archive for one person, by the scope: see `coag.memory.user_scope`."""
        ...


def archived(before: AwarenessState, after: AwarenessState) -> tuple[ArchivedItem, ...]:
    """What one state has and the next has no more: goals, and things with what related them."""
    old, new, step, at = before.world, after.world, after.step, after.at
    goals = _lost(before.goals.goals, after.goals.goals, lambda one: one.id)
    by_id = {one.id: one for one in before.goals.goals} if goals else {}
    edges: defaultdict[str, list[Relationship]] = defaultdict(list)
    for edge in _lost(old.relationships, new.relationships, lambda one: one.key):
        for end in {edge.source, edge.target}:
            edges[end].append(edge)
    return (
        *(
            ArchivedGoal(goal=one, context=_linked(one, by_id)[:_CONTEXT], step=step, at=at)
            for one in goals
        ),
        *(
            ArchivedEntity(entity=one, relationships=tuple(edges[one.name]), step=step, at=at)
            for one in _lost(old.entities, new.entities, lambda one: one.name)
        ),
    )


def _lost(
    before: tuple[_Thing, ...], after: tuple[_Thing, ...], key: Callable[[_Thing], Hashable]
) -> tuple[_Thing, ...]:
    if before is after:
        return ()
    known = set(map(key, after))
    return tuple(one for one in before if key(one) not in known)


def _linked(goal: Goal, by_id: Mapping[str, Goal]) -> tuple[Goal, ...]:
    """The goals that a goal refers to, directly or through others, the nearest first."""
    goals: dict[str, Goal] = {}
    todo = [goal]
    for one in todo:
        for id in one.references:
            if id in by_id and id not in goals:
                goals[id] = by_id[id]
                todo.append(by_id[id])
    return tuple(goals.values())


# ---- Return ----


async def recalled(
    state: AwarenessState,
    observation: Observation,
    archive: Archive,
    resolver: NameResolver,
    settings: ReturnSettings | None = None,
) -> AwarenessState:
    """The state with what an observation mentions that had left it; to be updated with it next.

    Goals and things that the state has are not looked up. By its name an item always returns, by
    similarity from a score on. A thing returns as it left; a goal counts as named at the coming
    step, and brings back what it serves and waits for. What left later than the state's own time
    is not found, so that an earlier state leads to the same states as before. Whatever the archive
    raises, nothing is changed.
    """
    chosen = settings or ReturnSettings()
    goals, things = _missing(state, observation, resolver)
    graph, world = state.goals, state.world
    for text in goals[: chosen.most_lookups]:
        item = await _found(text, archive, "goal", state.at, chosen.least_score)
        if isinstance(item, ArchivedGoal):
            graph = await _with_archived_goal(graph, item, archive, state)
    for text in things[: max(0, chosen.most_lookups - len(goals))]:
        item = await _found(text, archive, "entity", state.at, chosen.least_score)
        if isinstance(item, ArchivedEntity):
            world = _with_entity(world, item)
    if graph is state.goals and world is state.world:
        return state
    return state.model_copy(update={"goals": graph, "world": world})


def _missing(
    state: AwarenessState, observation: Observation, resolver: NameResolver
) -> tuple[list[str], list[str]]:
    """The goals and the things that are mentioned and that the state does not have."""
    goals = [text for one in observation.goals for text in (one.description, one.parent) if text]
    goals += [on for one in observation.goals for on in one.depends_on]
    goals += [change.goal for change in observation.goal_changes]
    known = {key for one in state.goals.goals for key in (folded(one.description), one.id)}
    goals = [text for text in dict.fromkeys(goals) if folded(text) not in known]
    if not observation.entities:
        return goals, []
    names = resolver.names.take(state.world.entities)
    seen = names.distinct(observation.entities)
    things = [one.name for one in seen if names.find(one.name, one.type) is None]
    resolver.names.put_back(state.world.entities, names)
    return goals, list(dict.fromkeys(things))


async def _found(
    text: str, archive: Archive, kind: ItemKind, now: datetime, least_score: float
) -> ArchivedItem | None:
    """The item that a text names, or else one that is similar enough."""
    for found in await archive.find(text, 1, kind):
        near = found.by is FoundBy.NAME or found.score >= least_score
        if near and not found.item.is_later_than(now):
            return found.item
    return None


async def _with_archived_goal(
    graph: GoalGraph, item: ArchivedGoal, archive: Archive, state: AwarenessState
) -> GoalGraph:
    """The graph with an archived goal, and what it refers to as that was archived last."""
    known = {one.id for one in graph.goals}
    goals = [item.goal]
    for one in item.context:
        if one.id not in known:
            last = await _found(one.id, archive, "goal", state.at, inf)
            now = last.goal if isinstance(last, ArchivedGoal) else one
            goals.append(now if now.id == one.id else one)
    named = {"updated_step": state.step + 1}
    goal, *others = (one.model_copy(update=named) for one in goals)
    return with_goal(graph, goal, others)


def with_goal(graph: GoalGraph, goal: Goal, others: Iterable[Goal] = ()) -> GoalGraph:
    """The graph with a goal again, and with those of the others that it serves or waits for.

    A goal that is there already stays as it is. References to goals that are neither there nor
    among the others are removed. A goal that would serve itself or wait for itself is an error.
    """
    by_id = {one.id: one for one in graph.goals}
    if goal.id in by_id:
        return graph
    missing = {one.id: one for one in others if one.id not in {*by_id, goal.id}}
    new = {one.id: one for one in (goal, *_linked(goal, missing))}
    there = {*by_id, *new}
    by_id |= {id: one.linked_only(there) for id, one in new.items()}
    goals = [one.settled(by_id) if one.id in new else one for one in by_id.values()]
    try:
        return GoalGraph(goals=tuple(sorted(goals, key=lambda one: one.created_step)))
    except ValidationError as error:
        raise AwarenessError(
            f"Goal {goal.description!r} ({goal.id}) cannot return from the archive: "
            f"{where_wrong(error)[1]}. Its item is not one that left this graph; remove it."
        ) from error


def _with_entity(world: WorldModel, item: ArchivedEntity) -> WorldModel:
    """The world with a thing and its relationships again; what is there stays as it is."""
    if world.get(item.entity.name) is not None:
        return world
    there = {one.key for one in world.relationships}
    new = (one for one in item.relationships if one.key not in there)
    edges = (*world.relationships, *new)
    entities = (*world.entities, item.entity)
    return world.model_copy(update={"entities": entities, "relationships": edges})


# ---- An archive whose items are records of long-term memory, in any store ----

_ITEM = "awareness_item"
"""Metadata key under which a record has the whole item as JSON."""
_IS_ITEM = "is_awareness_item"
"""Metadata key by which searches select items."""
_NAMED = "awareness_named "
"""Begins the metadata keys by which an item is found by name."""
_MEMORIES: Mapping[ItemKind, MemoryKind] = {
    "goal": MemoryKind.EPISODIC,
    "entity": MemoryKind.SEMANTIC,
}
_READS: TypeAdapter[ArchivedItem] = TypeAdapter(ArchivedItem)


class RecordArchive:
    """Stores goals as episodic records (what was tried, and how it ended) and things as semantic.

    Args:
        store: Where.
        scope: Whose records.
        run: The run that the records name as their source.
        trust: How far their text may steer the agent; text from others is untrusted.
        clock: Gives the time when a record is made.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        scope: str = "awareness",
        run: str = "",
        trust: Trust = Trust.UNTRUSTED,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._scope = scope
        self._run = run
        self._trust = trust
        self._clock = clock or SystemClock()

    def within(self, scope: str) -> RecordArchive:
        """See `ApartArchive.within`."""
        one = copy(self)
        one._scope = f"{self._scope} of {scope}"
        return one

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        """See `Archive.put`."""
        if not items:
            return
        now = self._clock.now()
        records = {record.id: record for record in (self._record(one, now) for one in items)}
        known = {record.id: record for record in await self._store.get(list(records))}
        await self._store.add([one for id, one in records.items() if id not in known])
        later = [records[id] for id, old in known.items() if _left_at(records[id]) >= _left_at(old)]
        if later:
            await self._store.update(later)

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        """See `Archive.find`; an `AwarenessError` names a record that is no item any more."""
        if not text.strip() or k < 1:
            return ()
        names = {*all_forms(text), folded(text)}
        named = [{f"{_NAMED}{form}": True} for form in sorted(names)]
        where = named[0] if len(named) == 1 else {"$or": named}
        by_name = await self._search(None, k, kind, where)
        items = [FoundItem(item=_item_of(one.record), by=FoundBy.NAME) for one in by_name[:k]]
        if len(items) < k:
            ids = {one.record.id for one in by_name}
            similar = await self._search(text, k + len(ids), kind, {_IS_ITEM: True})
            items += [
                FoundItem(item=_item_of(one.record), by=FoundBy.SCORE, score=one.score)
                for one in similar
                if one.record.id not in ids
            ]
        return tuple(items[:k])

    async def _search(
        self, text: str | None, k: int, kind: ItemKind | None, where: Mapping[str, Any]
    ) -> list[RecalledRecord]:
        """The records in the memory of these items, or in both, best first."""
        hits: list[RecalledRecord] = []
        for memory in _MEMORIES.values() if kind is None else (_MEMORIES[kind],):
            search = Search(text=text, kind=memory, k=k, scopes=(self._scope,), where=where)
            hits += await self._store.search(search)
        return sorted(hits, key=lambda one: -one.score)

    def _record(self, item: ArchivedItem, now: Moment) -> Record:
        kind, event = _MEMORIES[item.kind], None
        if isinstance(item, ArchivedGoal):
            status = item.goal.status
            event = Event(order=item.step, outcome=status.value)
            fact = Fact(subject=f"goal {item.goal.id}", attribute="status", value=status)
        else:
            fact = Fact(subject=item.name, attribute="type", value=item.entity.type)
        return Record(
            id=record_id(kind, self._scope, item.name, fact),
            kind=kind,
            text=item.name,
            scope=self._scope,
            created_at=now,
            provenance=Provenance(
                run=self._run,
                activity="",
                cycle=item.step,
                source="awareness",
                source_kind="agent",
                trust=self._trust,
            ),
            type=item.kind,
            metadata={
                _ITEM: item.model_dump_json(),
                _IS_ITEM: True,
                **{f"{_NAMED}{name}": True for name in sorted(item.names)},
            },
            event=event,
            fact=fact,
        )


def _left_at(record: Record) -> datetime:
    """When what a record holds left; the beginning of time where that is not known."""
    try:
        at = _item_of(record).at
    except AwarenessError:  # a changed record is no item any more: any item may replace it
        at = None
    return at or datetime.min.replace(tzinfo=UTC)


def _item_of(record: Record) -> ArchivedItem:
    try:
        return _READS.validate_json(str(record.metadata.get(_ITEM, "")))
    except ValidationError as error:
        raise AwarenessError(
            f"Record {record.id!r} is marked as an archived item, but its {_ITEM!r} cannot be "
            "read: it was changed, or written by another version. Remove the record by its id."
        ) from error
