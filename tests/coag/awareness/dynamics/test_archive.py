"""What left rests in a store and returns when it is mentioned again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
    GoalOutcomes,
    GoalSource,
    GoalStatus,
    ItemKind,
    NameResolver,
    Observation,
    RecordArchive,
    Relationship,
    ReturnSettings,
    WorldModel,
    updated,
)
from coag.awareness.archive import archived, recalled, with_goal
from coag.awareness.dynamics import Left, decayed
from coag.errors import AwarenessError
from coag.schema import MemoryKind, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore, Search, open_store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
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


def state(step: int = 100, **modules: object) -> AwarenessState:
    return AwarenessState(domain="test", step=step, at=NOW).model_copy(update=modules)


def seen(**parts: object) -> Observation:
    return Observation.parse(parts)


async def returned(
    given: AwarenessState, observation: Observation, kept: RecordArchive, **settings: float
) -> AwarenessState:
    chosen = ReturnSettings.model_validate(settings)
    return await recalled(given, observation, kept, NameResolver(), chosen)


async def test_a_closed_goal_returns_as_it_left_when_it_is_mentioned() -> None:
    kept = archive()
    gone = decayed(state(goals=GoalGraph(goals=(SCRAPER,))), DecaySettings())
    assert gone.state.goals.goals == ()
    await kept.put(archived(gone.left, GoalGraph(goals=(SCRAPER,)), 100))
    wanted = seen(goals=[{"description": "build a WEB  scraper"}])
    back = await returned(gone.state, wanted, kept)
    assert back.goals.goals == (SCRAPER.model_copy(update={"updated_step": 101}),)
    assert decayed(back, DecaySettings()).state.goals == back.goals


async def test_a_change_of_an_archived_goal_finds_it_by_words_or_id() -> None:
    kept = archive()
    await kept.put([ArchivedGoal(goal=SCRAPER)])
    for reference in ("Build a web scraper", "00000001"):
        change = seen(goal_changes=[{"goal": reference, "status": "active"}])
        back = await returned(state(), change, kept)
        after = updated(back, change, NOW, resolver=NameResolver())
        assert after.goals.get("00000001").status is GoalStatus.ACTIVE


async def test_a_thing_returns_with_its_relationships_by_any_of_its_names() -> None:
    kept = archive()
    edge = Relationship(source="red fox", type="eats", target="hen", step=4)
    await kept.put([ArchivedEntity(entity=FOX, relationships=(edge,))])
    for name in ("Red Fox", "the vixen", "red foxes", "vixen"):
        mention = seen(entities=[{"name": name, "type": "animal"}])
        back = await returned(state(), mention, kept)
        found = back.world.entities == (FOX,) and back.world.relationships == (edge,)
        assert found == (name != "the vixen")
    again = updated(back, mention, NOW, resolver=NameResolver()).world.entities
    assert [(one.mentions, one.last_step, one.state) for one in again] == [(5, 101, {"age": 3})]


def test_a_relationship_leaves_with_each_of_its_ends() -> None:
    edge = Relationship(source="red fox", type="eats", target="hen", step=4)
    hen = Entity(name="hen", type="animal")
    items = archived(Left(entities=(FOX, hen), relationships=(edge,)), GoalGraph(), 9)
    assert items == (
        ArchivedEntity(entity=FOX, relationships=(edge,), step=9),
        ArchivedEntity(entity=hen, relationships=(edge,), step=9),
    )


async def test_what_the_state_has_is_not_looked_for() -> None:
    class Refusing(RecordArchive):
        async def find(
            self, text: str, k: int, kind: ItemKind | None = None
        ) -> Sequence[FoundItem]:
            raise AssertionError(f"{text!r} is known")

    kept = Refusing(InMemoryStore(HashEmbedder()))
    known = state(goals=GoalGraph(goals=(SCRAPER,)), world=WorldModel(entities=(FOX,)))
    mention = seen(
        goals=[{"description": "Build a web scraper"}],
        entities=[{"name": "Vixen", "type": "animal"}],
    )
    assert await returned(known, mention, kept) is known


async def test_another_text_brings_back_what_is_similar_enough_only() -> None:
    kept = archive()
    await kept.put([ArchivedGoal(goal=SCRAPER)])
    mention = seen(goals=[{"description": "Build a good web scraper"}])
    assert (await returned(state(), mention, kept, least_score=0.99)).goals.goals == ()
    assert (await returned(state(), mention, kept, least_score=0.7)).goals.get("00000001")
    stranger = seen(goals=[{"description": "Cook pasta"}])
    assert (await returned(state(), stranger, kept, least_score=0.7)).goals.goals == ()


async def test_by_name_comes_before_by_score() -> None:
    kept = archive()
    other = SCRAPER.model_copy(update={"id": "00000002", "description": "Build a scraper"})
    await kept.put(
        [ArchivedGoal(goal=other), ArchivedGoal(goal=SCRAPER), ArchivedEntity(entity=FOX)]
    )
    found = await kept.find("Build a web scraper", 5)
    assert [(one.by, one.item.name) for one in found] == [
        (FoundBy.NAME, "Build a web scraper"),
        (FoundBy.SCORE, "Build a scraper"),
    ]
    assert len(await kept.find("Build a web scraper", 1)) == 1
    assert await kept.find("  ", 5) == ()


async def test_two_goals_of_one_description_are_two_items_and_the_latest_version_counts() -> None:
    kept = archive()
    twin = SCRAPER.model_copy(update={"id": "00000002"})
    later = SCRAPER.model_copy(update={"updated_step": 50})
    await kept.put([ArchivedGoal(goal=SCRAPER), ArchivedGoal(goal=twin)])
    await kept.put([ArchivedGoal(goal=later)])
    by_id = [one.item for one in await kept.find("00000001", 1)]
    assert by_id == [ArchivedGoal(goal=later)]
    assert len(await kept.find(SCRAPER.description, 5)) == 2


async def test_a_goal_brings_back_what_it_serves_and_waits_for() -> None:
    parent = Goal(id="0000000a", description="Learn Python", created_step=1)
    first = Goal(id="0000000b", description="Install it", created_step=2)
    child = Goal(
        id="0000000c",
        description="Write a script",
        status=GoalStatus.BLOCKED,
        parent_id="0000000a",
        depends_on=("0000000b",),
        created_step=3,
    )
    graph = GoalGraph(goals=(parent, first, child))
    kept = archive()
    await kept.put(archived(Left(goals=graph.goals), graph, 90))
    done = first.model_copy(update={"status": GoalStatus.COMPLETED, "closed_step": 95})
    await kept.put([ArchivedGoal(goal=done)])
    back = await returned(state(), seen(goals=[{"description": "Write a script"}]), kept)
    assert [one.id for one in back.goals.goals] == ["0000000a", "0000000b", "0000000c"]
    script = back.goals.get("0000000c")
    assert script.parent_id == "0000000a"
    assert script.status is GoalStatus.ACTIVE


def test_what_a_returning_goal_named_and_is_nowhere_is_not_named_any_more() -> None:
    goal = Goal(
        id="00000001",
        description="Build",
        parent_id="0000000f",
        depends_on=("0000000e",),
        status=GoalStatus.BLOCKED,
    )
    back = with_goal(GoalGraph(), goal).get("00000001")
    assert (back.parent_id, back.depends_on, back.status) == (None, (), GoalStatus.ACTIVE)


def test_goals_that_wait_for_their_own_children_return_together() -> None:
    child = Goal(id="0000000b", description="Sweep", parent_id="0000000a", created_step=2)
    parent = Goal(
        id="0000000a",
        description="Tidy up",
        depends_on=("0000000b",),
        status=GoalStatus.BLOCKED,
        created_step=1,
    )
    graph = with_goal(GoalGraph(), child, [parent])
    assert graph == GoalGraph(goals=(parent, child))


def test_an_item_that_would_make_a_circle_is_refused() -> None:
    one = Goal(id="0000000a", description="a", parent_id="0000000b")
    other = Goal(id="0000000b", description="b", parent_id="0000000a")
    with pytest.raises(AwarenessError, match=r"'a' \(0000000a\) cannot return .*circle"):
        with_goal(GoalGraph(), one, [other])


async def test_records_tell_where_they_come_from() -> None:
    store = InMemoryStore(HashEmbedder())
    kept = RecordArchive(store, scope="anna", run="run-1", clock=SteppingClock())
    await kept.put([ArchivedGoal(goal=SCRAPER, step=40), ArchivedEntity(entity=FOX, step=41)])
    found = [
        (await store.search(Search(text=None, kind=kind)))[0].record
        for kind in (MemoryKind.EPISODIC, MemoryKind.SEMANTIC)
    ]
    assert [(one.text, one.type, one.scope) for one in found] == [
        ("Build a web scraper", "goal", "anna"),
        ("red fox", "entity", "anna"),
    ]
    assert found[0].event is not None
    assert found[0].event.outcome == "completed"
    assert [one.provenance.cycle for one in found] == [40, 41]
    assert {one.provenance.trust for one in found} == {Trust.UNTRUSTED}
    assert {one.provenance.run for one in found} == {"run-1"}


async def test_scopes_do_not_see_each_other() -> None:
    store = InMemoryStore(HashEmbedder())
    await RecordArchive(store, scope="anna").put([ArchivedGoal(goal=SCRAPER)])
    assert await RecordArchive(store, scope="ben").find(SCRAPER.description, 5) == ()


async def test_a_record_that_was_changed_is_an_error_that_names_it() -> None:
    store = InMemoryStore(HashEmbedder())
    kept = RecordArchive(store)
    await kept.put([ArchivedGoal(goal=SCRAPER)])
    record = (await store.search(Search(text=None, kind=MemoryKind.EPISODIC)))[0].record
    spoilt = {**record.metadata, "awareness_item": "{}"}
    await store.update([record.model_copy(update={"metadata": spoilt})])
    with pytest.raises(AwarenessError, match=record.id):
        await kept.find(SCRAPER.description, 1)


async def test_it_rests_in_a_real_chroma_too(tmp_path: Path) -> None:
    first = open_store(tmp_path, embedder=HashEmbedder())
    await RecordArchive(first).put([ArchivedGoal(goal=SCRAPER), ArchivedEntity(entity=FOX)])
    await RecordArchive(first).put([ArchivedGoal(goal=SCRAPER, step=7)])
    await first.close()
    again = open_store(tmp_path, embedder=HashEmbedder())
    found = await RecordArchive(again).find("build a web scraper", 1)
    assert [one.item for one in found] == [ArchivedGoal(goal=SCRAPER, step=7)]
    assert [one.item for one in await RecordArchive(again).find("Vixen", 1)] == [
        ArchivedEntity(entity=FOX)
    ]
    await again.close()


TEXTS = st.text(min_size=1, max_size=20).filter(
    lambda text: bool(text.strip()) and text.encode("utf-8", "ignore").decode() == text
)


@given(
    st.builds(
        Goal,
        id=st.text("0123456789abcdef", min_size=8, max_size=8),
        description=TEXTS,
        status=st.sampled_from([one for one in GoalStatus if one is not GoalStatus.BLOCKED]),
        source=st.sampled_from(GoalSource),
        priority=st.floats(0, 1),
        completion_criteria=st.none() | TEXTS,
        created_step=st.integers(0, 99),
        outcomes=st.builds(GoalOutcomes, successes=st.integers(0, 9), failures=st.integers(0, 9)),
    )
)
def test_any_goal_returns_as_it_left(goal: Goal) -> None:
    async def there_and_back() -> GoalGraph:
        kept = archive()
        await kept.put(archived(Left(goals=(goal,)), GoalGraph(goals=(goal,)), 99))
        mention = seen(goals=[{"description": goal.description}])
        return (await returned(state(), mention, kept)).goals

    back = asyncio.run(there_and_back())
    assert back.goals == (goal.model_copy(update={"updated_step": 101}),)


@given(
    st.builds(
        Entity,
        name=TEXTS,
        type=st.just("topic"),
        aliases=st.lists(TEXTS, max_size=3).map(tuple),
        state=st.dictionaries(TEXTS, st.none() | st.integers(-9, 9) | TEXTS, max_size=3),
        mentions=st.integers(1, 9),
    ),
    st.integers(0, 3),
)
def test_any_thing_returns_as_it_left_by_any_of_its_names(entity: Entity, which: int) -> None:
    async def there_and_back() -> WorldModel:
        kept = archive()
        await kept.put(archived(Left(entities=(entity,)), GoalGraph(), 99))
        names = (entity.name, *entity.aliases)
        mention = seen(entities=[{"name": names[which % len(names)], "type": "topic"}])
        return (await returned(state(), mention, kept)).world

    assert asyncio.run(there_and_back()).entities == (entity,)


# ---- what left when ----


async def test_what_left_later_than_a_state_is_not_there_for_it() -> None:
    kept = archive()
    goal = ArchivedGoal(goal=SCRAPER, step=120, at=NOW + timedelta(hours=1))
    fox = ArchivedEntity(entity=FOX, step=120, at=NOW + timedelta(hours=1))
    await kept.put([goal, fox])
    both = seen(
        goal_changes=[{"goal": "build a web scraper"}],
        entities=[{"name": "vixen", "type": "animal"}],
    )
    assert await returned(state(), both, kept) == state()
    later = await returned(state(at=NOW + timedelta(hours=1)), both, kept)
    assert [one.id for one in later.goals.goals] == [SCRAPER.id]
    assert [one.name for one in later.world.entities] == ["red fox"]


async def test_an_item_never_takes_the_place_of_one_that_left_later() -> None:
    kept = archive()
    late = ArchivedEntity(entity=FOX, step=120, at=NOW + timedelta(hours=1))
    early = ArchivedEntity(entity=FOX.model_copy(update={"mentions": 1}), step=100, at=NOW)
    for items in ([late], [early]):
        await kept.put(items)
    assert [one.item for one in await kept.find("red fox", 1)] == [late]
    later = early.model_copy(update={"at": NOW + timedelta(hours=2)})
    await kept.put([later])
    assert [one.item for one in await kept.find("red fox", 1)] == [later]
