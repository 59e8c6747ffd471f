"""Observe, update, inject: alone, over long runs, and with a world that others change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    ArchivedItem,
    AwarenessEngine,
    AwarenessState,
    CodingAdapter,
    CollaborationMode,
    ConversationAdapter,
    DecaySettings,
    DomainAdapter,
    DynamicEngine,
    DynamicsSettings,
    EngineSettings,
    FoundBy,
    FoundItem,
    InteractionProtocol,
    ItemKind,
    Observation,
    RecordArchive,
    ScanPattern,
    SharedEngine,
    SharedVersion,
    SharedWorld,
    SharedWorldError,
    TransitionType,
    WorldModel,
)
from coag.awareness.names import NameResolver
from coag.errors import AwarenessError, GoalError, ObservationError, RecordStoreError
from coag.schema import SteppingClock, estimate_tokens
from coag.store import HashEmbedder, InMemoryStore

PATTERN = ScanPattern(name="smoke", description="Smoke somewhere")
PYTHON = {"entities": [{"name": "Python", "type": "topic"}]}


def seen(**parts: object) -> Observation:
    return Observation.parse(parts)


# ---- the engine of the paper ----


class PlainAdapter(DomainAdapter):
    """Takes an observation as it is, and notes what it is asked for."""

    name = "plain"
    entity_types = ("topic", "concept")
    relationship_types = ("likes",)
    protocol = InteractionProtocol(mode=CollaborationMode.ADVISORY)

    def __init__(self) -> None:
        self.calls: list[str] = []

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        return (PATTERN,)

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        self.calls.append(f"observed at {state.step}")
        return Observation.parse(raw)

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        self.calls.append(f"rendered at {state.step} in {budget}")
        return f"{state.step}: {', '.join(one.name for one in state.world.entities)}"[: budget * 4]


def plain(state: AwarenessState | None = None, **more: Any) -> AwarenessEngine:
    return AwarenessEngine(PlainAdapter(), clock=SteppingClock(), state=state, **more)


def test_a_new_state_is_what_the_domain_starts_with() -> None:
    settings = EngineSettings(trajectory_window=2, sticky=(TransitionType.PIVOT,))
    state = plain(settings=settings).state
    assert (state.domain, state.step, state.at) == ("plain", 0, datetime(2026, 1, 1, tzinfo=UTC))
    assert state.attention.scan_patterns == (PATTERN,)
    assert state.protocol.mode is CollaborationMode.ADVISORY
    assert (state.trajectory.window, state.trajectory.sticky) == (2, (TransitionType.PIVOT,))


def test_a_step_is_its_three_phases() -> None:
    adapter = PlainAdapter()
    engine = AwarenessEngine(adapter)
    assert engine.step(PYTHON, 100) == "1: Python"
    assert adapter.calls == ["observed at 0", "rendered at 1 in 100"]
    assert engine.adapter is adapter
    observation = engine.observe(PYTHON)
    assert engine.state.step == 1
    assert engine.update(observation) is engine.state
    assert (engine.inject(), engine.inject(0)) == ("2: Python", "")


def test_an_engine_takes_the_states_of_its_domain_only() -> None:
    engine = plain()
    with pytest.raises(AwarenessError, match=r"'other'.*'plain'"):
        plain(engine.state.model_copy(update={"domain": "other"}))


EDGE = {"source": "a", "type": "eats", "target": "b"}


@pytest.mark.parametrize(
    ("raw", "error", "path"),
    [
        ({"entities": [{"name": "a", "type": "x"}]}, ObservationError, "entities[0].type"),
        ({"relationships": [EDGE]}, ObservationError, "relationships[0].type"),
        (PYTHON | {"goals": [{"description": "a", "parent": "nobody"}]}, GoalError, "nobody"),
    ],
)
def test_what_cannot_be_taken_leaves_nothing_behind(
    raw: dict[str, object], error: type[AwarenessError], path: str
) -> None:
    engine = plain()
    engine.step(PYTHON)
    before = engine.state
    with pytest.raises(error) as caught:
        engine.step(raw)
    assert path in str(caught.value)
    assert engine.state is before
    assert engine.step({"entities": [{"name": "pasta", "type": "topic"}]}) == "2: Python, pasta"


def test_a_negative_budget_is_refused_before_anything_changes() -> None:
    engine = plain()
    with pytest.raises(ValueError, match="not -1"):
        engine.step(PYTHON, -1)
    with pytest.raises(ValueError, match="not -1"):
        engine.inject(-1)
    assert engine.state.step == 0


# ---- long runs ----

EAGER = DynamicsSettings(decay=DecaySettings(every=1, threshold=-0.5, half_life=1.0))
"""A thing leaves two steps after its mention, unless attention still names it."""


def dynamic(dynamics: DynamicsSettings | None = None, **more: Any) -> DynamicEngine:
    more.setdefault("archive", RecordArchive(InMemoryStore(HashEmbedder()), clock=SteppingClock()))
    return DynamicEngine(ConversationAdapter(), dynamics, clock=SteppingClock(), **more)


async def talk(engine: DynamicEngine, *topics: str) -> None:
    for topic in topics:
        await engine.step({"topics": [topic]})


@given(
    st.lists(
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
)
def test_with_nothing_switched_on_it_is_the_plain_engine(turns: list[dict[str, object]]) -> None:
    simple, long = AwarenessEngine(ConversationAdapter(), clock=SteppingClock()), dynamic()

    async def stepped() -> list[str]:
        return [await long.step(turn) for turn in turns]

    assert asyncio.run(stepped()) == [simple.step(turn) for turn in turns]
    assert long.state == simple.state


async def test_an_archive_that_cannot_be_reached_leaves_the_state_as_it_was() -> None:
    store = InMemoryStore(HashEmbedder())

    class Breaking(RecordArchive):
        async def put(self, items: Sequence[ArchivedItem]) -> None:
            if items:
                await store.close()
            await super().put(items)

    long = dynamic(EAGER, archive=Breaking(store))
    await talk(long, "Python", *["cooking"] * 5)
    before = long.state
    with pytest.raises(RecordStoreError):
        await talk(long, "cooking")
    assert long.state == before


async def test_bad_input_leaves_the_state_of_a_long_run_as_it_was() -> None:
    long = dynamic(DynamicsSettings.all_on())
    await talk(long, "Python")
    before = long.state
    with pytest.raises(AwarenessError):
        await long.step({"topics": 3})
    with pytest.raises(AwarenessError):
        await long.update(seen(goal_changes=[{"goal": "nothing", "status": "completed"}]))
    with pytest.raises(ValueError, match="-1"):
        await long.step({"topics": ["a"]}, budget=-1)
    assert long.state == before


async def test_calls_at_the_same_time_wait_for_each_other() -> None:
    long = dynamic(EAGER)
    await asyncio.gather(*(long.step({"topics": [f"topic {n % 3}"]}) for n in range(9)))
    assert long.state.step == 9


class NamesOnly:
    """An archive that finds by name only, and at once."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], ArchivedItem] = {}

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        for item in items:
            self.items |= {(item.kind, name): item for name in item.names}

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        item = self.items.get((str(kind), " ".join(text.casefold().split())))
        return (FoundItem(item=item, by=FoundBy.NAME),) if item else ()


@pytest.mark.parametrize(
    ("topics", "asks", "frustrated", "turns"),
    [
        (2, True, False, 300),
        pytest.param(1, True, True, 1000, marks=pytest.mark.long),
        pytest.param(3, False, False, 1000, marks=pytest.mark.long),
    ],
)
def test_a_long_dialogue_stays_bounded_and_no_goal_is_lost(
    topics: int, asks: bool, frustrated: bool, turns: int
) -> None:
    archive = NamesOnly()
    long = dynamic(DynamicsSettings.all_on(), archive=archive)
    sizes: list[int] = []

    async def stepped() -> None:
        for turn in range(turns):
            raw: dict[str, object] = {
                "topics": [f"topic {turn}", "weather", f"topic {turn - 40}"][:topics],
                "goals": [f"Understand matter {turn}"],
                "questions": [f"What is matter {turn}?"] if asks else [],
                "sentiment": "frustrated" if frustrated else "neutral",
                "assumptions": [f"Matter {turn} counts"],
            }
            assert estimate_tokens(await long.step(raw, 300)) <= 300
            if turn % (turns // 20) == turns // 20 - 1:
                sizes.append(len(long.state.model_dump_json()))

    asyncio.run(stepped())
    goals = long.state.goals.goals
    assert len(goals) <= 200
    assert len(long.state.world.entities) <= 400
    assert max(sizes[10:]) <= 1.2 * max(sizes[:10])
    there = {one.description for one in goals}
    there |= {item.name for item in archive.items.values() if item.kind == "goal"}
    assert there >= {f"Understand matter {turn}" for turn in range(turns)}


# ---- a shared world ----

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Interrupted(SharedWorld):
    """A world that others change right after it is looked at, as often as is planned."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Callable[[], object]] = []

    @property
    def current(self) -> SharedVersion:
        version = super().current
        if self.others:
            self.others.pop(0)()
        return version


def named(*names: str) -> Observation:
    return seen(entities=[{"name": name, "type": "topic"} for name in names])


def fresh(domain: str = "test") -> AwarenessState:
    return AwarenessState(domain=domain, at=NOW)


def mentions(world: WorldModel) -> dict[str, int]:
    return {one.name: one.mentions for one in world.entities}


def sharing(world: SharedWorld) -> SharedEngine:
    return SharedEngine(ConversationAdapter(), world, clock=SteppingClock())


def test_engines_see_one_world_and_keep_goals_and_selves_of_their_own() -> None:
    world = SharedWorld()
    anna, ben = sharing(world), sharing(world)
    code = SharedEngine(CodingAdapter(), world, clock=SteppingClock())
    anna.step({"topics": ["Python"], "goals": ["Learn Python"]})
    text = ben.step({"topics": ["cooking"], "goals": ["Cook pasta"]})
    code.update(seen(entities=[{"name": "a.py", "type": "file"}]))
    both = {"Python": 1, "cooking": 1, "a.py": 1}
    assert mentions(ben.state.world) == mentions(anna.state.world) == both
    assert [one.description for one in anna.state.goals.goals] == ["Learn Python"]
    assert [one.description for one in ben.state.goals.goals] == ["Cook pasta"]
    assert "Learn Python" not in text
    assert "Python" in ben.inject()


def test_steps_are_later_than_all_that_was_seen_and_attention_moves_along() -> None:
    world = SharedWorld()
    anna, ben = sharing(world), sharing(world)
    ben.step({"sentiment": "angry"})
    for _ in range(6):
        anna.update(named("a"))
    ben.update(named("b"))
    assert ben.state.step == 8
    assert [item.description for item in ben.state.attention.items] == ["User sentiment: angry"]
    anna.update(named("a"))
    steps = {one.name: one.last_step for one in world.current.world.entities}
    assert steps == {"a": 9, "b": 8}


def test_what_another_engine_has_settled_may_be_settled_again() -> None:
    world = SharedWorld()
    anna, ben = sharing(world), sharing(world)
    anna.update(seen(unknowns=["why"]))
    ben.update(seen(resolved=["why"]))
    anna.update(seen(resolved=["Why"]))
    with pytest.raises(ObservationError, match="'who'"):
        anna.update(seen(resolved=["who"]))


def test_an_update_that_fails_changes_neither_the_world_nor_the_engine() -> None:
    world = SharedWorld()
    anna = sharing(world)
    anna.update(named("a"))
    before, version = anna.state, world.current
    with pytest.raises(AwarenessError):
        anna.update(
            seen(
                entities=[{"name": "b", "type": "topic"}],
                goal_changes=[{"goal": "nothing", "status": "completed"}],
            )
        )
    assert anna.state == before
    assert world.current is version


def test_an_engine_that_is_always_too_late_is_an_error() -> None:
    world = SharedWorld()

    def too_late(before: SharedVersion) -> SharedVersion:
        world.change(lambda now: SharedVersion(step=now.step + 1))
        return SharedVersion(step=before.step + 1)

    with pytest.raises(SharedWorldError, match="3 times in a row"):
        world.change(too_late, tries=3)
    with pytest.raises(ValueError, match="tries is at least 1, not 0"):
        world.change(too_late, tries=0)
    with pytest.raises(ValueError, match="step 3 is not after 3"):
        world.change(lambda now: now)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("abcdef"), st.integers(0, 2)), max_size=25
    )
)
def test_no_interleaving_loses_an_update(plan: list[tuple[int, str, int]]) -> None:
    """Each entry is an update of an engine; it is interrupted by so many of the next ones."""
    world = Interrupted()
    states = [fresh(f"engine {number}") for number in range(4)]
    resolvers = [NameResolver() for _ in states]
    todo, busy, done = list(plan), set[int](), list[str]()

    def work() -> None:
        free = next((place for place, one in enumerate(todo) if one[0] not in busy), None)
        if free is None:
            return
        who, name, interrupted = todo.pop(free)
        busy.add(who)
        world.others[:0] = [work] * interrupted
        observation = seen(
            entities=[{"name": name, "type": "topic"}],
            goals=[{"description": f"Know {name}"}],
            assumptions=[f"{name} is {who}"],
        )
        states[who] = world.update(states[who], observation, NOW, resolver=resolvers[who])
        busy.discard(who)
        done.append(name)

    while todo:
        work()
    final = SharedWorld.current.fget(world).world  # pyright: ignore
    assert mentions(final) == {name: done.count(name) for name in set(done)}
    assert {one.text for one in final.assumptions} == {f"{name} is {who}" for who, name, _ in plan}
    for number, one in enumerate(states):
        own = {f"Know {name}" for who, name, _ in plan if who == number}
        assert {each.description for each in one.goals.goals} == own


def test_threads_lose_no_update_either() -> None:
    world = SharedWorld()
    engines = [sharing(world) for _ in range(8)]

    def work(place: int) -> None:
        for step in range(25):
            engines[place].update(named("all", f"only {place} {step}"))

    with ThreadPoolExecutor(len(engines)) as pool:
        list(pool.map(work, range(len(engines))))
    counted = mentions(world.current.world)
    assert counted.pop("all") == world.current.step == 200
    assert counted == {f"only {place} {step}": 1 for place in range(8) for step in range(25)}
