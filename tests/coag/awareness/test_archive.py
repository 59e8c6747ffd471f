"""What left is stored and returns when it is mentioned again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    ArchivedEntity,
    ArchivedGoal,
    AwarenessState,
    DecaySettings,
    Entity,
    FoundBy,
    FoundItem,
    Goal,
    GoalGraph,
    GoalSource,
    GoalStatus,
    ItemKind,
    Observation,
    RecordArchive,
    Relationship,
    ReturnSettings,
    WorldModel,
)
from coag.awareness.archive import archived, recalled, with_goal
from coag.awareness.dynamics import decayed
from coag.awareness.goals import GoalOutcomes
from coag.awareness.names import NameResolver
from coag.awareness.updating import updated
from coag.errors import AwarenessError
from coag.schema import MemoryKind, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore, Search

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
SCRAPER = Goal(
    id="00000001",
    description="Build a web scraper",
    status=GoalStatus.COMPLETED,
    priority=0.7,
    created_step=3,
    updated_step=9,
    closed_step=9,
    outcomes=GoalOutcomes(successes=2, failures=1),
)
FOX = Entity(name="red fox", type="animal", state={"age": 3}, aliases=("vixen",), mentions=4)


def archive() -> RecordArchive:
    return RecordArchive(InMemoryStore(HashEmbedder()), clock=SteppingClock())


def state(**modules: object) -> AwarenessState:
    return AwarenessState(domain="test", step=100, at=NOW).model_copy(update=modules)


def wants(description: str) -> Observation:
    return Observation.parse({"goals": [{"description": description}]})


def mentions(name: str, type: str = "animal") -> Observation:
    return Observation.parse({"entities": [{"name": name, "type": type}]})


async def returned(
    before: AwarenessState, observation: Observation, store: RecordArchive, **settings: float
) -> AwarenessState:
    chosen = ReturnSettings.model_validate(settings)
    return await recalled(before, observation, store, NameResolver(), chosen)


async def test_a_closed_goal_returns_as_it_left_when_it_is_mentioned() -> None:
    store, graph = archive(), GoalGraph(goals=(SCRAPER,))
    before = state(goals=graph)
    gone = decayed(before, DecaySettings())
    assert gone.goals.goals == ()
    await store.put(archived(before, gone))
    back = await returned(gone, wants("build a WEB  scraper"), store)
    assert back.goals.goals == (SCRAPER.model_copy(update={"updated_step": 101}),)
    assert decayed(back, DecaySettings()).goals == back.goals


@pytest.mark.parametrize("reference", ["Build a web scraper", "00000001"])
async def test_a_change_of_an_archived_goal_finds_it_by_words_or_id(reference: str) -> None:
    store = archive()
    await store.put([ArchivedGoal(goal=SCRAPER)])
    change = Observation.parse({"goal_changes": [{"goal": reference, "status": "active"}]})
    back = await returned(state(), change, store)
    after = updated(back, change, NOW, resolver=NameResolver())
    assert after.goals.get("00000001").status is GoalStatus.ACTIVE


async def test_a_thing_returns_with_its_relationships_by_any_of_its_names() -> None:
    edge = Relationship(source="red fox", type="eats", target="hen", step=4)
    hen = Entity(name="hen", type="animal")
    world = WorldModel(entities=(FOX, hen), relationships=(edge,))
    items = archived(state(world=world), state())
    when: dict[str, Any] = {"step": 100, "at": NOW}
    assert items == tuple(
        ArchivedEntity(entity=one, relationships=(edge,), **when) for one in (FOX, hen)
    )
    store = archive()
    await store.put(items[:1])
    for name in ("Red Fox", "red foxes", "vixen"):
        back = await returned(state(), mentions(name), store)
        assert (back.world.entities, back.world.relationships) == ((FOX,), (edge,))
    (again,) = updated(back, mentions("vixen"), NOW, resolver=NameResolver()).world.entities
    assert (again.mentions, again.last_step, again.state) == (5, 101, {"age": 3})
    assert (await returned(state(), mentions("the vixen"), store)).world.entities == ()


async def test_what_the_state_has_is_not_looked_up() -> None:
    class Refusing(RecordArchive):
        async def find(
            self, text: str, k: int, kind: ItemKind | None = None
        ) -> Sequence[FoundItem]:
            raise AssertionError(f"{text!r} is known")

    known = state(goals=GoalGraph(goals=(SCRAPER,)), world=WorldModel(entities=(FOX,)))
    both = wants("Build a web scraper").plus(entities=mentions("Vixen").entities)
    assert await returned(known, both, Refusing(InMemoryStore(HashEmbedder()))) is known


async def test_a_name_comes_before_similarity_which_counts_from_a_score_on() -> None:
    store = archive()
    other = SCRAPER.model_copy(update={"id": "00000002", "description": "Build a scraper"})
    items = [ArchivedGoal(goal=other), ArchivedGoal(goal=SCRAPER), ArchivedEntity(entity=FOX)]
    await store.put(items)
    found = await store.find("Build a web scraper", 5)
    assert [(one.by, one.item.name) for one in found] == [
        (FoundBy.NAME, "Build a web scraper"),
        (FoundBy.SCORE, "Build a scraper"),
    ]
    assert len(await store.find("Build a web scraper", 1)) == 1
    assert await store.find("  ", 5) == ()
    near = wants("Build a good web scraper")
    assert (await returned(state(), near, store, least_score=0.99)).goals.goals == ()
    assert len((await returned(state(), near, store, least_score=0.7)).goals.goals) == 1
    assert (await returned(state(), wants("Cook pasta"), store)).goals.goals == ()


async def test_two_goals_of_one_description_are_two_items_and_the_latest_version_counts() -> None:
    store = archive()
    twin = SCRAPER.model_copy(update={"id": "00000002"})
    newer = SCRAPER.model_copy(update={"updated_step": 50})
    await store.put([ArchivedGoal(goal=SCRAPER), ArchivedGoal(goal=twin)])
    await store.put([ArchivedGoal(goal=newer)])
    assert [one.item for one in await store.find("00000001", 1)] == [ArchivedGoal(goal=newer)]
    assert len(await store.find(SCRAPER.description, 5)) == 2


LEARN = Goal(id="0000000a", description="Learn Python", created_step=1)
INSTALL = Goal(id="0000000b", description="Install it", created_step=2)
WRITE = Goal(
    id="0000000c",
    description="Write a script",
    status=GoalStatus.BLOCKED,
    parent_id="0000000a",
    depends_on=("0000000b",),
    created_step=3,
)


async def test_a_goal_brings_back_what_it_serves_and_waits_for() -> None:
    graph, store = GoalGraph(goals=(LEARN, INSTALL, WRITE)), archive()
    await store.put(archived(state(goals=graph), state()))
    done = INSTALL.model_copy(update={"status": GoalStatus.COMPLETED, "closed_step": 95})
    await store.put([ArchivedGoal(goal=done, at=NOW)])
    back = (await returned(state(), wants("Write a script"), store)).goals
    assert [one.id for one in back.goals] == [LEARN.id, INSTALL.id, WRITE.id]
    script = back.get(WRITE.id)
    assert (script.parent_id, script.status) == (LEARN.id, GoalStatus.ACTIVE)


def test_references_of_a_returning_goal_are_kept_where_they_lead_somewhere() -> None:
    alone = with_goal(GoalGraph(), WRITE).get(WRITE.id)
    assert (alone.parent_id, alone.depends_on, alone.status) == (None, (), GoalStatus.ACTIVE)
    part = INSTALL.model_copy(update={"parent_id": LEARN.id})
    waiting = {"depends_on": (INSTALL.id,), "status": GoalStatus.BLOCKED}
    goal = LEARN.model_copy(update=waiting)
    assert with_goal(GoalGraph(), part, [goal]) == GoalGraph(goals=(goal, part))
    circular = LEARN.model_copy(update={"parent_id": INSTALL.id})
    with pytest.raises(AwarenessError, match=r"\(0000000b\) cannot return .*circle"):
        with_goal(GoalGraph(), part, [circular])


async def test_records_name_their_source_and_scopes_do_not_see_each_other() -> None:
    store = InMemoryStore(HashEmbedder())
    anna = RecordArchive(store, scope="anna", run="run-1", clock=SteppingClock())
    await anna.put([ArchivedGoal(goal=SCRAPER, step=40), ArchivedEntity(entity=FOX, step=41)])
    for kind, step, text, type, outcome in (
        (MemoryKind.EPISODIC, 40, "Build a web scraper", "goal", "completed"),
        (MemoryKind.SEMANTIC, 41, "red fox", "entity", None),
    ):
        record = (await store.search(Search(text=None, kind=kind)))[0].record
        assert (record.text, record.type, record.scope) == (text, type, "anna")
        assert (record.event and record.event.outcome) == outcome
        source = record.provenance
        assert (source.cycle, source.trust, source.run) == (step, Trust.UNTRUSTED, "run-1")
    assert await RecordArchive(store, scope="ben").find(SCRAPER.description, 5) == ()


async def test_a_record_that_was_changed_is_an_error_that_names_it() -> None:
    store = InMemoryStore(HashEmbedder())
    await RecordArchive(store).put([ArchivedGoal(goal=SCRAPER)])
    record = (await store.search(Search(text=None, kind=MemoryKind.EPISODIC)))[0].record
    spoilt = {**record.metadata, "awareness_item": "{}"}
    await store.update([record.model_copy(update={"metadata": spoilt})])
    with pytest.raises(AwarenessError, match=record.id):
        await RecordArchive(store).find(SCRAPER.description, 1)
    await RecordArchive(store).put([ArchivedGoal(goal=SCRAPER)])
    assert len(await RecordArchive(store).find(SCRAPER.description, 1)) == 1


TEXTS = st.text(min_size=1, max_size=20).filter(
    lambda text: bool(text.strip()) and text.encode("utf-8", "ignore").decode() == text
)
GOALS = st.builds(
    Goal,
    id=st.text("0123456789abcdef", min_size=8, max_size=8),
    description=TEXTS,
    status=st.sampled_from([one for one in GoalStatus if one is not GoalStatus.BLOCKED]),
    source=st.sampled_from(GoalSource),
    priority=st.floats(0, 1),
    completion_criteria=st.none() | TEXTS,
    outcomes=st.builds(GoalOutcomes, successes=st.integers(0, 9), failures=st.integers(0, 9)),
)
ENTITIES = st.builds(
    Entity,
    name=TEXTS,
    type=st.just("topic"),
    aliases=st.lists(TEXTS, max_size=3).map(tuple),
    state=st.dictionaries(TEXTS, st.none() | st.integers(-9, 9) | TEXTS, max_size=3),
    mentions=st.integers(1, 9),
)


@given(GOALS, ENTITIES, st.integers(0, 3))
def test_anything_returns_as_it_left_by_any_of_its_names(
    goal: Goal, entity: Entity, which: int
) -> None:
    names = (entity.name, *entity.aliases)
    topic = mentions(names[which % len(names)], "topic")

    async def there_and_back() -> AwarenessState:
        store = archive()
        full = state(goals=GoalGraph(goals=(goal,)), world=WorldModel(entities=(entity,)))
        await store.put(archived(full, state()))
        both = wants(goal.description).plus(entities=topic.entities)
        return await returned(state(), both, store)

    back = asyncio.run(there_and_back())
    assert back.goals.goals == (goal.model_copy(update={"updated_step": 101}),)
    assert back.world.entities == (entity,)


async def test_what_left_later_than_a_state_is_not_found_by_it() -> None:
    store = archive()
    late: dict[str, Any] = {"step": 120, "at": LATER}
    items: list[Any] = [ArchivedGoal(goal=SCRAPER, **late), ArchivedEntity(entity=FOX, **late)]
    await store.put(items)
    both = wants(SCRAPER.description).plus(entities=mentions("vixen").entities)
    assert await returned(state(), both, store) == state()
    back = await returned(state(at=LATER), both, store)
    assert [one.id for one in back.goals.goals] == [SCRAPER.id]
    assert [one.name for one in back.world.entities] == ["red fox"]


async def test_an_item_never_replaces_one_that_left_later() -> None:
    store = archive()
    late = ArchivedEntity(entity=FOX, step=120, at=LATER)
    early = ArchivedEntity(entity=FOX.model_copy(update={"mentions": 1}), step=100, at=NOW)
    latest = early.model_copy(update={"at": LATER + timedelta(hours=1)})
    for item, expected in ((late, late), (early, late), (latest, latest)):
        await store.put([item])
        assert [one.item for one in await store.find("red fox", 1)] == [expected]
