"""The engine for long runs: what it does alone, and all of it together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    ArchivedItem,
    AwarenessEngine,
    AwarenessState,
    ConversationAdapter,
    DecaySettings,
    DynamicEngine,
    DynamicsSettings,
    FoundBy,
    FoundItem,
    GoalStatus,
    ItemKind,
    Observation,
    ProjectionSettings,
    RecordArchive,
    Resource,
)
from coag.errors import AwarenessError, RecordStoreError
from coag.schema import SteppingClock, estimate_tokens
from coag.store import HashEmbedder, InMemoryStore

EAGER = DynamicsSettings(decay=DecaySettings(every=1, threshold=-0.5, half_life=1.0))
"""A thing leaves two steps after its mention, or when nothing names it any more: the attention that
the adapter pays to a change of topic is there for five."""


def engine(dynamics: DynamicsSettings | None = None) -> DynamicEngine:
    kept = RecordArchive(InMemoryStore(HashEmbedder()), clock=SteppingClock())
    return DynamicEngine(ConversationAdapter(), dynamics, archive=kept, clock=SteppingClock())


async def talk(about: DynamicEngine, *topics: str) -> None:
    for topic in topics:
        await about.step({"topics": [topic]})


TURNS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "topics": st.lists(st.sampled_from(["Python", "cooking", "cats"]), max_size=2),
            "goals": st.lists(st.sampled_from(["Learn it", "Cook it"]), max_size=2),
            "questions": st.lists(st.sampled_from(["Why?", "How?"]), max_size=1),
            "sentiment": st.sampled_from(["neutral", "frustrated"]),
        },
    ),
    max_size=8,
)


@given(TURNS)
def test_with_nothing_switched_on_it_is_the_plain_engine(turns: list[dict[str, object]]) -> None:
    plain = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
    dynamic = engine()

    async def said() -> list[str]:
        return [await dynamic.step(turn) for turn in turns]

    assert asyncio.run(said()) == [plain.step(turn) for turn in turns]
    assert dynamic.state == plain.state


async def test_a_topic_that_left_is_a_callback_when_it_returns() -> None:
    long = engine(EAGER)
    await talk(long, "Python", *["cooking"] * 6)
    assert [one.name for one in long.state.world.entities] == ["cooking"]
    told = await long.step({"topics": ["python"]})
    assert "Callback to earlier topic" in told
    python = next(one for one in long.state.world.entities if one.name == "Python")
    assert (python.first_step, python.last_step, python.mentions) == (1, 8, 2)


async def test_a_faded_goal_leaves_and_goes_on_as_the_same_goal_when_it_is_named() -> None:
    quick = DecaySettings(every=1, explicit_half_life=1.0)
    long = engine(DynamicsSettings(decay=quick))
    await long.step({"goals": ["Learn Python"]})
    first = long.state.goals.goals[0]
    await talk(long, *["cooking"] * 5)
    assert long.state.goals.goals == ()
    await long.step({"goals": ["learn python"]})
    (again,) = long.state.goals.goals
    assert (again.id, again.created_step) == (first.id, 1)
    assert again.status is GoalStatus.ACTIVE


async def test_without_an_archive_what_faded_is_lost() -> None:
    long = DynamicEngine(ConversationAdapter(), EAGER, clock=SteppingClock())
    await talk(long, "Python", *["cooking"] * 6, "Python")
    python = next(one for one in long.state.world.entities if one.name == "Python")
    assert python.mentions == 1


async def test_goals_are_shown_by_effective_priority_and_kept_by_their_own() -> None:
    slow = DecaySettings(explicit_half_life=4.0)
    long = engine(DynamicsSettings(decay=slow))
    await long.update(Observation.parse({"goals": [{"description": "Sleep", "priority": 0.8}]}))
    await talk(long, *["cooking"] * 4)
    assert "[explicit] Sleep (p=0.4)" in long.inject()
    assert long.state.goals.goals[0].priority == 0.8


async def test_goals_of_a_sort_that_fails_start_lower() -> None:
    long = engine(DynamicsSettings.all_on())
    for number in range(5):
        wanted = {"description": f"Build {number}", "source": "inferred", "priority": 0.6}
        await long.update(Observation.parse({"goals": [wanted]}))
        given_up = {"goal": f"Build {number}", "status": "abandoned"}
        await long.update(Observation.parse({"goal_changes": [given_up]}))
    await long.update(
        Observation.parse(
            {"goals": [{"description": "Build 9", "source": "inferred", "priority": 0.6}]}
        )
    )
    assert 0.4 <= long.state.goals.find("Build 9").priority < 0.5


async def test_what_lies_ahead_is_in_the_injection() -> None:
    long = engine(DynamicsSettings(projection=ProjectionSettings()))
    for left in (50, 40, 30, 20):
        battery = Resource(name="battery", capacity=100, remaining=left)
        await long.update(Observation(resources=(battery,)))
    assert "[threat] battery runs out in about 2 steps: 20 left" in long.inject()
    full = Resource(name="battery", capacity=100, remaining=100)
    await long.update(Observation(resources=(full,)))
    assert "runs out" not in long.inject()


async def test_an_archive_that_cannot_be_reached_leaves_the_state_as_it_was() -> None:
    store = InMemoryStore(HashEmbedder())

    class Breaking(RecordArchive):
        async def put(self, items: Sequence[ArchivedItem]) -> None:
            if items:
                await store.close()
            await super().put(items)

    long = DynamicEngine(
        ConversationAdapter(), EAGER, archive=Breaking(store), clock=SteppingClock()
    )
    await talk(long, "Python", *["cooking"] * 5)
    before = long.state
    with pytest.raises(RecordStoreError):
        await talk(long, "cooking")
    assert long.state == before


async def test_it_goes_on_from_a_kept_state_as_it_would_have() -> None:
    turns = ["Python", *["cooking"] * 7, "Python", *["cats"] * 7, "cooking"]
    store = InMemoryStore(HashEmbedder())

    def on(state: AwarenessState | None = None) -> DynamicEngine:
        kept = RecordArchive(store, scope="b", clock=SteppingClock())
        return DynamicEngine(
            ConversationAdapter(), EAGER, archive=kept, clock=SteppingClock(), state=state
        )

    through = engine(EAGER)
    await talk(through, *turns)
    first = on()
    await talk(first, *turns[:8])
    second = on(AwarenessState.model_validate_json(first.state.model_dump_json()))
    await talk(second, *turns[8:])
    assert second.state.model_copy(update={"at": through.state.at}) == through.state
    assert second.inject() == through.inject()


async def test_bad_input_leaves_the_state_as_it_was() -> None:
    long = engine(DynamicsSettings.all_on())
    await talk(long, "Python")
    before = long.state
    with pytest.raises(AwarenessError):
        await long.step({"topics": 3})
    with pytest.raises(AwarenessError):
        await long.update(
            Observation.parse({"goal_changes": [{"goal": "nothing", "status": "completed"}]})
        )
    with pytest.raises(ValueError, match="-1"):
        await long.step({"topics": ["a"]}, budget=-1)
    assert long.state == before


async def test_calls_at_the_same_time_wait_for_each_other() -> None:
    long = engine(EAGER)
    await asyncio.gather(*(long.step({"topics": [f"topic {n % 3}"]}) for n in range(9)))
    assert long.state.step == 9


class Shelf:
    """An archive that finds by name only, and at once."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], ArchivedItem] = {}

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        for item in items:
            self.items |= {(item.kind, name): item for name in item.names}

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        assert kind is not None
        item = self.items.get((kind, " ".join(text.casefold().split())))
        return (FoundItem(item=item, by=FoundBy.NAME),) if item else ()


@pytest.mark.parametrize(
    ("topics", "asks", "frustrated", "turns"),
    [
        (2, True, False, 400),
        pytest.param(1, True, True, 1000, marks=pytest.mark.long),
        pytest.param(3, False, False, 1000, marks=pytest.mark.long),
    ],
)
def test_a_dialogue_of_a_thousand_turns_stays_bounded(
    topics: int, asks: bool, frustrated: bool, turns: int
) -> None:
    shelf = Shelf()
    long = DynamicEngine(
        ConversationAdapter(), DynamicsSettings.all_on(), archive=shelf, clock=SteppingClock()
    )
    sizes: list[int] = []

    async def said() -> None:
        for turn in range(turns):
            told = await long.step(
                {
                    "topics": [f"topic {turn}", "weather", f"topic {turn - 40}"][:topics],
                    "goals": [f"Understand matter {turn}"],
                    "questions": [f"What is matter {turn}?"] if asks else [],
                    "sentiment": "frustrated" if frustrated else "neutral",
                    "assumptions": [f"Matter {turn} counts"],
                },
                300,
            )
            assert estimate_tokens(told) <= 300
            if turn % (turns // 20) == turns // 20 - 1:
                sizes.append(len(long.state.model_dump_json()))

    asyncio.run(said())
    goals = long.state.goals.goals
    assert len(goals) <= 200
    assert len(long.state.world.entities) <= 400
    assert max(sizes[10:]) <= 1.2 * max(sizes[:10])
    kept = {one.description for one in goals}
    kept |= {item.name for item in shelf.items.values() if item.kind == "goal"}
    assert kept >= {f"Understand matter {turn}" for turn in range(turns)}
