"""Several engines change one world, and no change is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AwarenessState,
    CodingAdapter,
    ConversationAdapter,
    NameResolver,
    Observation,
    SharedEngine,
    SharedVersion,
    SharedWorld,
    SharedWorldError,
    WorldModel,
)
from coag.errors import AwarenessError, ObservationError
from coag.schema import SteppingClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Interrupted(SharedWorld):
    """A world that others change right after it is looked at, as often as is planned."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Callable[[], object]] = []

    @property
    def current(self) -> SharedVersion:
        seen = super().current
        if self.others:
            self.others.pop(0)()
        return seen


def seen(**parts: object) -> Observation:
    return Observation.parse(parts)


def named(*names: str) -> Observation:
    return seen(entities=[{"name": name, "type": "topic"} for name in names])


def fresh(domain: str = "test") -> AwarenessState:
    return AwarenessState(domain=domain, at=NOW)


def mentions(world: WorldModel) -> dict[str, int]:
    return {one.name: one.mentions for one in world.entities}


def engine(shared: SharedWorld) -> SharedEngine:
    return SharedEngine(ConversationAdapter(), shared, clock=SteppingClock())


def test_engines_see_one_world_and_keep_goals_and_selves_of_their_own() -> None:
    shared = SharedWorld()
    anna, ben = engine(shared), engine(shared)
    anna.step({"topics": ["Python"], "goals": ["Learn Python"]})
    text = ben.step({"topics": ["cooking"], "goals": ["Cook pasta"]})
    assert mentions(ben.state.world) == mentions(anna.state.world) == {"Python": 1, "cooking": 1}
    assert [one.description for one in anna.state.goals.goals] == ["Learn Python"]
    assert [one.description for one in ben.state.goals.goals] == ["Cook pasta"]
    assert "Learn Python" not in text
    assert "Python" in ben.inject()


def test_engines_of_different_domains_can_share_a_world() -> None:
    shared = SharedWorld()
    talk = engine(shared)
    code = SharedEngine(CodingAdapter(), shared, clock=SteppingClock())
    talk.step({"topics": ["scraping"]})
    code.update(seen(entities=[{"name": "scraper.py", "type": "file"}]))
    assert set(mentions(talk.state.world)) == {"scraping", "scraper.py"}


def test_an_update_that_comes_between_is_not_lost_and_neither_is_the_own() -> None:
    shared = Interrupted()
    ben = fresh("ben")
    shared.others.append(lambda: shared.update(ben, named("Python"), NOW, resolver=NameResolver()))
    anna = shared.update(fresh("anna"), named("python"), NOW, resolver=NameResolver())
    assert mentions(shared.current.world) == {"Python": 2}
    assert anna.world == shared.current.world
    assert anna.step == shared.current.step == 2


def test_steps_are_later_than_all_that_was_seen() -> None:
    shared = SharedWorld()
    anna, ben = engine(shared), engine(shared)
    for _ in range(3):
        anna.update(named("a"))
    ben.update(named("b"))
    assert ben.state.step == 4
    anna.update(named("a"))
    steps = {one.name: one.last_step for one in shared.current.world.entities}
    assert steps == {"a": 5, "b": 4}


def test_the_life_of_attention_is_counted_in_the_engines_own_steps() -> None:
    shared = SharedWorld()
    anna, ben = engine(shared), engine(shared)
    anna.update(
        seen(attention_items=[{"type": "threat", "description": "Fire", "ttl": 2, "urgency": 0.9}])
    )
    for _ in range(10):
        ben.update(named("b"))
    anna.update(named("a"))
    assert [one.description for one in anna.state.attention.visible] == ["Fire"]
    anna.update(named("a"))
    assert anna.state.attention.visible == ()


def test_what_another_engine_has_settled_already_is_settled() -> None:
    shared = SharedWorld()
    anna, ben = engine(shared), engine(shared)
    anna.update(seen(unknowns=["Which library?"]))
    ben.update(seen(resolved=["which library?"]))
    anna.update(seen(resolved=["Which library?"], entities=[{"name": "soup", "type": "topic"}]))
    assert anna.state.world.open_unknowns == ()
    with pytest.raises(ObservationError, match="no open assumption"):
        anna.update(seen(resolved=["What else?"]))


def test_an_observation_that_is_refused_changes_nothing_for_anybody() -> None:
    shared = SharedWorld()
    anna = engine(shared)
    anna.update(named("a"))
    before, world = anna.state, shared.current
    with pytest.raises(AwarenessError):
        anna.update(
            seen(
                entities=[{"name": "b", "type": "topic"}],
                goal_changes=[{"goal": "nothing", "status": "completed"}],
            )
        )
    assert anna.state == before
    assert shared.current is world


def test_a_version_rests_on_the_present_one_and_is_later() -> None:
    shared = SharedWorld()
    first = shared.current
    assert shared.swap(first, SharedVersion(step=1))
    assert not shared.swap(first, SharedVersion(step=2))
    with pytest.raises(ValueError, match="step 1 is not after 1"):
        shared.swap(shared.current, SharedVersion(step=1))


def test_who_is_always_too_late_is_told() -> None:
    shared = SharedWorld()

    def too_late(before: SharedVersion) -> SharedVersion:
        shared.swap(before, SharedVersion(step=before.step + 1))
        return SharedVersion(step=before.step + 1)

    with pytest.raises(SharedWorldError, match="3 times in a row"):
        shared.change(too_late, tries=3)
    with pytest.raises(ValueError, match="tries is at least 1, not 0"):
        shared.change(too_late, tries=0)


PLAN = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abcdef"), st.integers(0, 2)), max_size=25
)


@given(PLAN)
def test_no_interleaving_loses_an_update(plan: list[tuple[int, str, int]]) -> None:
    """Each entry is an update of an engine; it is interrupted by so many of the next ones."""
    shared = Interrupted()
    states = [fresh(f"engine {number}") for number in range(4)]
    resolvers = [NameResolver() for _ in states]
    todo, busy, done = list(plan), set[int](), list[str]()

    def work() -> None:
        free = next((place for place, one in enumerate(todo) if one[0] not in busy), None)
        if free is None:
            return
        who, name, interrupted = todo.pop(free)
        busy.add(who)
        shared.others[:0] = [work] * interrupted
        observation = seen(
            entities=[{"name": name, "type": "topic"}],
            goals=[{"description": f"Know {name}"}],
            assumptions=[f"{name} is {who}"],
        )
        states[who] = shared.update(states[who], observation, NOW, resolver=resolvers[who])
        busy.discard(who)
        done.append(name)

    while todo:
        work()
    world = SharedWorld.current.fget(shared).world  # pyright: ignore
    assert sorted(done) == sorted(name for _, name, _ in plan)
    assert mentions(world) == {name: done.count(name) for name in set(done)}
    assert {one.text for one in world.assumptions} == {f"{name} is {who}" for who, name, _ in plan}
    for number, one in enumerate(states):
        own = {f"Know {name}" for who, name, _ in plan if who == number}
        assert {each.description for each in one.goals.goals} == own


def test_threads_lose_no_update_either() -> None:
    shared = SharedWorld()
    engines = [engine(shared) for _ in range(8)]

    def work(place: int) -> None:
        for step in range(25):
            engines[place].update(named("all", f"only {place} {step}"))

    with ThreadPoolExecutor(len(engines)) as pool:
        list(pool.map(work, range(len(engines))))
    counted = mentions(shared.current.world)
    assert counted.pop("all") == 200
    assert counted == {f"only {place} {step}": 1 for place in range(8) for step in range(25)}
    assert shared.current.step == 200
