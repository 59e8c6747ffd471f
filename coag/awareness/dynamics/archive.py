"""What has faded is archived, and comes back when it is mentioned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import Field, TypeAdapter, ValidationError

from coag.awareness.observation import Observation, where_wrong
from coag.awareness.resolving import NameResolver, forms_of, told_apart
from coag.awareness.settings import EngineSettings
from coag.awareness.state import (
    AwarenessState,
    Entity,
    Goal,
    GoalGraph,
    GoalStatus,
    Relationship,
    Share,
    Step,
    WorldModel,
    folded,
)
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
    record_id,
)
from coag.store import RecordStore, Search

from .decay import Left
from .settings import ReturnSettings

# ---- What left a state, kept so that it can return ----


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


# ---- What is mentioned again returns from the archive ----


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


# ---- An archive whose items are records of long-term memory, in any store ----


_ITEM = "awareness_item"
"""Metadata key under which a record has the whole item as JSON; filters tell by the next one."""
_IS_ITEM = "is_awareness_item"
_NAMED = "awareness_named "
"""Begins the metadata keys that say how an item is called."""
_MEMORIES: Mapping[ItemKind, MemoryKind] = {
    "goal": MemoryKind.EPISODIC,
    "entity": MemoryKind.SEMANTIC,
}
_READS: TypeAdapter[ArchivedItem] = TypeAdapter(ArchivedItem)


class RecordArchive:
    """Keeps goals as episodic records (what was tried, and how it ended) and things as semantic.

    What `put` gave back rests in the store; whoever reads the store finds it there as any record.

    Args:
        store: Where.
        scope: Whose records.
        run: What the records are said to stem from.
        trust: How far their text may steer the agent; what others said is untrusted.
        clock: Tells when a record is made.
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
        """See `Archive.put`.

        Raises:
            RecordStoreError: The store cannot be reached.
        """
        if not items:
            return
        now = self._clock.now()
        records = {record.id: record for record in (self._record(one, now) for one in items)}
        known = {record.id: record for record in await self._store.get(list(records))}
        await self._store.add([one for id, one in records.items() if id not in known])
        again = [
            one
            for id, one in records.items()
            if id in known and _left_at(one) >= _left_at(known[id])
        ]
        if again:
            await self._store.update(again)

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        """See `Archive.find`.

        Raises:
            AwarenessError: A record has been changed, so that it is no item any more.
            RecordStoreError: The store cannot be reached.
        """
        if not text.strip() or k < 1:
            return ()
        names = name_forms(text) | {folded(text)}
        named = [{f"{_NAMED}{form}": True} for form in sorted(names)]
        where = named[0] if len(named) == 1 else {"$or": named}
        by_name = await self._search(None, k, kind, where)
        found = [FoundItem(item=_item_of(one.record), by=FoundBy.NAME) for one in by_name[:k]]
        if len(found) < k:
            told = {one.record.id for one in by_name}
            similar = await self._search(text, k + len(told), kind, {_IS_ITEM: True})
            found += [
                FoundItem(item=_item_of(one.record), by=FoundBy.SCORE, score=one.score)
                for one in similar
                if one.record.id not in told
            ]
        return tuple(found[:k])

    async def _search(
        self, text: str | None, k: int, kind: ItemKind | None, where: Mapping[str, Any]
    ) -> list[RecalledRecord]:
        """What the memory of these items has, or both have, best first."""
        found: list[RecalledRecord] = []
        for memory in _MEMORIES.values() if kind is None else (_MEMORIES[kind],):
            asked = Search(text=text, kind=memory, k=k, scopes=(self._scope,), where=where)
            found += await self._store.search(asked)
        return sorted(found, key=lambda one: -one.score)

    def _record(self, item: ArchivedItem, now: Moment) -> Record:
        kind = _MEMORIES[item.kind]
        fact, event = _fact_of(item), None
        if isinstance(item, ArchivedGoal):
            event = Event(order=item.step, outcome=item.goal.status.value)
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


def _fact_of(item: ArchivedItem) -> Fact:
    """What makes two items of one text two records: the goal's id, or the thing's name."""
    if isinstance(item, ArchivedGoal):
        return Fact(subject=f"goal {item.goal.id}", attribute="status", value=item.goal.status)
    return Fact(subject=item.entity.name, attribute="type", value=item.entity.type)


def _left_at(record: Record) -> datetime:
    """When what a record holds left; the beginning of time where that is not known."""
    try:
        left = _item_of(record).at
    except AwarenessError:  # a changed record is no item any more: any item may take its place
        left = None
    return left or datetime.min.replace(tzinfo=UTC)


def _item_of(record: Record) -> ArchivedItem:
    try:
        return _READS.validate_json(str(record.metadata.get(_ITEM, "")))
    except ValidationError as error:
        raise AwarenessError(
            f"Record {record.id!r} is marked as an archived item, but its {_ITEM!r} cannot be "
            "read: it was changed, or written by another version. Remove the record by its id."
        ) from error
