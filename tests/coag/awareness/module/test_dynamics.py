"""A module over long runs: it looks ahead, fades, learns, and rests what left it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.happenings import answered, asked, executed, failed, percept, returned, situation
from kits.shelves import FailingShelf, SilentShelf, shelf

from coag.awareness import (
    Archive,
    Awareness,
    AwarenessSettings,
    AwarenessState,
    DecaySettings,
    DynamicsSettings,
    LearningSettings,
    Observation,
    ObservedGoal,
    PerceptAdapter,
    ProjectionSettings,
    RecordArchive,
    Resource,
    SelfModel,
    ToolAdapter,
)
from coag.awareness.module import AGENT_DYNAMICS
from coag.schema import ExecutionStatus, Outcome, Percept, PerceptKind, Phase, SteppingClock, Trust
from coag.store import HashEmbedder, InMemoryStore

TANK = SelfModel(resources=(Resource(name="battery", capacity=100, remaining=100),))
ORDERS = ToolAdapter(entities={"order_id": "order"})
OFF = DynamicsSettings()
QUICK = DynamicsSettings(decay=DecaySettings(every=1, threshold=-0.8, closed_goal_steps=3))


def narrow(archive: Archive | None = None) -> Awareness:
    """With room for one order besides the tool."""
    kept = AwarenessSettings(kept_entities=2)
    return Awareness(ORDERS, settings=kept, archive=archive, clock=SteppingClock())


def decaying(archive: Archive) -> Awareness:
    """Whose things fade after a few steps."""
    return Awareness(ORDERS, dynamics=QUICK, archive=archive)


async def lived(module: Awareness, *events: Percept | Outcome) -> Awareness:
    for event in events:
        await module.observe(event)
    return module


async def shown(module: Awareness) -> str:
    section = await module.contribute(Phase.REASONING, situation("", Phase.REASONING), 400)
    return "" if section is None else section.text


def attention(module: Awareness) -> list[tuple[str, str]]:
    return [(one.type.value, one.description) for one in module.state.attention.visible]


def names(module: Awareness) -> list[str]:
    return [one.name for one in module.state.world.entities if one.type != "tool"]


def order(number: int) -> Percept:
    return returned("look", f"order {number}", {"order_id": number})


def reading(battery: int) -> Percept:
    return returned("sense", f"{battery} left", {"battery": battery})


def sensed(battery: int) -> tuple[Outcome, Percept]:
    """A cycle that ends with a reading."""
    return executed("sense"), reading(battery)


# ---- looking ahead ----


async def test_a_resource_that_runs_low_is_told_of_in_cycles_without_any_setting() -> None:
    module = await lived(Awareness(self_model=TANK), asked("Clean up."))
    for left in (40, 30, 20, 10):
        await lived(module, *sensed(left))
    assert attention(module) == [("threat", "battery runs out in about 1 step: 10 left")]
    await lived(module, *sensed(100))
    assert attention(module) == []


async def test_what_lies_ahead_counts_cycles_however_many_percepts_a_cycle_brings() -> None:
    quiet, busy = Awareness(self_model=TANK), Awareness(self_model=TANK)
    for left in (40, 30, 20):
        await lived(quiet, *sensed(left))
        await lived(busy, *sensed(left))
        await lived(busy, *(percept(PerceptKind.SIGNAL, f"tick {n}") for n in range(5)))
    ahead = ("threat", "battery runs out in about 2 steps: 20 left")
    assert ahead in attention(quiet)
    assert ahead in attention(busy)


async def test_nothing_lies_ahead_where_that_is_switched_off() -> None:
    module = Awareness(self_model=TANK, dynamics=OFF)
    for left in (40, 30, 20, 10):
        await lived(module, *sensed(left))
    assert attention(module) == []
    assert module.save_state()["standing"]["readings"] == []


class Errands(PerceptAdapter):
    """Each message is an errand with a date of its own."""

    @property
    def domain_name(self) -> str:
        return "errands"

    def define_entity_types(self) -> tuple[str, ...]:
        return ()

    def define_relationship_types(self) -> tuple[str, ...]:
        return ()

    def define_scan_patterns(self) -> tuple[()]:
        return ()

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        errand = ObservedGoal(description="Post it", completion_criteria="by step 3")
        return Observation(goals=(errand,) if percept.kind is PerceptKind.MESSAGE else ())


async def test_a_deadline_counts_cycles_too() -> None:
    module = await lived(
        Awareness(Errands()), asked("Go."), executed("walk"), percept(PerceptKind.SIGNAL, "noon")
    )
    assert ("threat", "Due in 2 steps: Post it") in attention(module)


async def test_a_stall_and_a_repeated_failure_are_told_of_once() -> None:
    module = await lived(Awareness(dynamics=DynamicsSettings.all_on()), asked("Open it."))
    for _ in range(12):
        await lived(module, failed("pull", "stuck"))
    assert sorted(attention(module)) == [
        ("anomaly", "No progress for a while on: Open it."),
        ("threat", "pull fails again and again: find out why, or take another way"),
    ]


async def test_a_goal_that_nobody_works_on_is_no_stall() -> None:
    module = await lived(Awareness(), asked("Learn Python."), asked("Cook pasta."))
    for n in range(15):
        await lived(module, executed("look"), order(n))
    assert attention(module) == []


async def test_a_mistake_that_is_kept_once_counts_each_time_it_is_made() -> None:
    module = await lived(Awareness(dynamics=DynamicsSettings.all_on()), asked("Open it."))
    for _ in range(5):
        await lived(module, failed("pull", "stuck"))
    own = module.state.self_model
    assert [one.action for one in own.failures] == ["pull"]
    assert {(one.of.value, one.name): one.failures for one in own.tallies} == {
        ("source", "explicit"): 5,
        ("type", "open"): 5,
    }
    (threat,) = module.state.attention.visible
    assert threat.urgency == pytest.approx(0.9)


# ---- fading and learning ----


async def test_by_default_nothing_fades_that_there_is_room_for() -> None:
    module = await lived(Awareness(ORDERS), asked("Find it."), order(1))
    for _ in range(100):
        await lived(module, executed("wait"), returned("wait", "waited"))
    assert names(module) == ["order:1"]


async def test_with_decay_things_fade_and_goals_are_shown_by_what_they_count_now() -> None:
    module = await lived(
        Awareness(ORDERS, dynamics=DynamicsSettings(decay=DecaySettings())),
        asked("Learn Python."),
        order(1),
        asked("Cook pasta."),
    )
    for _ in range(60):
        await lived(module, executed("wait"))
    text = await shown(module)
    assert names(module) == []
    assert "Learn Python. (p=0.4)" in text
    assert {one.priority for one in module.state.goals.goals} == {0.8}


async def test_the_goal_that_is_pursued_never_fades() -> None:
    quick = DynamicsSettings(decay=DecaySettings(every=1, explicit_half_life=0.5))
    module = await lived(Awareness(dynamics=quick), asked("Find it."))
    for _ in range(100):
        await lived(module, executed("wait"))
    assert module.goal is not None


async def test_goals_of_a_kind_that_failed_count_less() -> None:
    module = Awareness(dynamics=DynamicsSettings(learning=LearningSettings()))
    await lived(module, asked("Open the door."))
    for _ in range(10):
        await lived(module, failed("pull", "stuck"))
    await lived(module, asked("Open the window."))
    assert module.goal is not None
    assert 0.7 < module.goal.priority < 0.75


# ---- the archive ----


@pytest.mark.parametrize("module", [lambda: decaying(shelf()), lambda: narrow(shelf())])
async def test_what_leaves_by_decay_or_by_a_bound_returns_when_it_is_mentioned(
    module: Callable[[], Awareness],
) -> None:
    made = module()
    await lived(made, asked("Find them."), order(1))
    for n in range(2, 9):
        await lived(made, order(n))
    assert "order:1" not in names(made)
    await lived(made, order(1))
    found = made.state.world.get("order:1")
    assert found is not None
    assert (found.first_step, found.mentions) == (2, 2)


async def test_a_deferred_goal_that_left_is_taken_up_when_it_is_asked_for_again() -> None:
    chosen = AwarenessSettings(kept_goals=1)
    module = Awareness(settings=chosen, archive=shelf())
    await lived(module, asked("Book it."), answered(by="transfer_to_booker"))
    first = module.state.goals.goals[0]
    await lived(module, asked("Cook pasta."))
    assert [one.description for one in module.state.goals.goals] == ["Cook pasta."]
    await lived(module, asked("Book it."))
    assert module.goal is not None
    assert (module.goal.id, module.goal.status.value) == (first.id, "active")


async def test_an_archive_that_fails_changes_nothing_and_gets_it_all_once_it_is_back() -> None:
    broken = FailingShelf()
    with_it, without = narrow(broken), narrow()
    for n in (1, 2, 3):
        event = order(n)
        await lived(without, event)
        with pytest.raises(OSError, match="locked"):
            await with_it.observe(event)
        assert with_it.state == without.state
    broken.broken = False
    await lived(with_it, executed("wait"))
    assert [one.name for one in broken.items] == ["order:1", "order:2"]


def serving(scope: str) -> Percept:
    return asked("Go on.").model_copy(update={"memory_scope": scope, "state_patch": {}})


async def test_what_one_person_left_behind_returns_for_no_other() -> None:
    module = narrow(RecordArchive(InMemoryStore(HashEmbedder())))
    mentions: list[int] = []
    for scope in ("user:ann", "user:bob", "user:ann"):
        module.reset_state()
        await lived(module, serving(scope), order(1), *map(order, range(2, 5)), order(1))
        found = module.state.world.get("order:1")
        assert found is not None
        mentions.append(found.mentions)
    assert mentions[:2] == [2, 2]
    assert mentions[2] > 2


async def test_what_one_person_left_behind_does_not_return_after_a_reset() -> None:
    module = narrow(RecordArchive(InMemoryStore(HashEmbedder())))
    await lived(module, serving("user:ann"), *map(order, range(1, 5)))
    module.reset_state()
    await lived(module, asked("Go on."), order(1))
    found = module.state.world.get("order:1")
    assert found is not None
    assert found.mentions == 1


async def test_an_archive_that_keeps_nobody_apart_is_left_alone_where_people_are() -> None:
    kept = FailingShelf()
    kept.broken = False
    module = narrow(kept)
    await lived(module, serving("user:ann"), *map(order, range(1, 5)))
    assert kept.items == []


async def test_an_archive_that_never_answers_costs_time_and_no_step() -> None:
    silent, without = narrow(SilentShelf()), narrow()
    for event in (order(1), order(2)):
        await lived(without, event)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await silent.observe(event)
    assert silent.state == without.state


async def test_text_that_returns_is_trusted_as_little_as_text_from_outside() -> None:
    module, trusts = narrow(shelf()), list[str]()
    for n in (1, 2, 1):
        await lived(module, returned("look", "", {"order_id": n}, trust=Trust.USER))
        trusts.append(module.save_state()["standing"]["trust"])
    assert trusts == [Trust.USER, Trust.USER, Trust.UNTRUSTED]


async def test_what_left_later_is_not_there_for_a_state_of_earlier() -> None:
    rest = shelf()
    events = [order(n) for n in (1, 2, 3, 1)]
    late = await lived(narrow(rest), *events)
    early = await lived(narrow(rest), *events[:2])
    alone = await lived(narrow(), *events[:2])
    assert early.state == alone.state
    again = await lived(narrow(rest), *events)
    assert again.state == late.state


# ---- a state follows from what happened ----

EVENTS = st.one_of(
    st.builds(asked, st.sampled_from(["Find it.", "Cook pasta.", "Learn Python."])),
    st.builds(executed, st.sampled_from(["look", "move"]), st.sampled_from(ExecutionStatus)),
    st.builds(failed, st.sampled_from(["look", "move"]), st.sampled_from(["stuck", "dark"])),
    st.builds(answered, st.just("Done."), by=st.sampled_from(["respond", "transfer_to_bob"])),
    st.builds(order, st.integers(1, 6)),
    st.builds(reading, st.integers(0, 100)),
)


def _made(archive: Archive) -> Awareness:
    return Awareness(
        ORDERS,
        clock=SteppingClock(),
        self_model=TANK,
        settings=AwarenessSettings(kept_goals=2, kept_entities=3),
        dynamics=DynamicsSettings(
            decay=DecaySettings(every=2, threshold=-1.0, closed_goal_steps=3),
            learning=LearningSettings(),
            projection=ProjectionSettings(),
        ),
        archive=archive,
    )


@given(st.lists(EVENTS, max_size=25), st.integers(0, 25))
@settings(max_examples=40, deadline=None)
def test_a_run_that_is_taken_up_anywhere_or_lived_again_comes_to_the_same(
    events: list[Percept | Outcome], at: int
) -> None:
    async def live() -> None:
        whole, first = await lived(_made(shelf()), *events), shelf()
        broken_off = await lived(_made(first), *events[:at])
        taken_up = _made(first)
        taken_up.load_state(json.loads(json.dumps(broken_off.save_state())))
        assert taken_up.save_state() == broken_off.save_state()
        await lived(taken_up, *events[at:])
        assert taken_up.save_state() == whole.save_state()
        assert await shown(taken_up) == await shown(whole)

    asyncio.run(live())


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("cycles", "dynamics"),
    [
        pytest.param(1000, None, marks=pytest.mark.long),
        (400, None),
        (400, DynamicsSettings.all_on()),
    ],
)
async def test_a_thousand_cycles_stay_bounded(
    cycles: int, dynamics: DynamicsSettings | None
) -> None:
    module = Awareness(ORDERS, self_model=TANK, dynamics=dynamics)
    sizes: list[int] = []
    for n in range(cycles):
        found: dict[str, Any] = {"order_id": n, "note": "n" * 50, "battery": 100 - n % 90}
        events: list[Percept | Outcome] = [
            executed("look"),
            returned("look", f"order {n}", found),
        ]
        if n % 5 == 0:
            events = [asked(f"Find order {n}."), failed(f"tool{n}", f"no {n}"), *events]
        await lived(module, *events)
        if n % 25 == 24:
            sizes.append(len(json.dumps(module.save_state())))
    assert max(sizes[8:]) < 1.1 * max(sizes[:8])
    assert sizes[-1] < 100_000


def test_what_is_on_in_an_agent_looks_ahead_and_does_no_more() -> None:
    assert DynamicsSettings(projection=ProjectionSettings()) == AGENT_DYNAMICS


# ---- beginning anew ----


async def test_a_module_that_is_reset_is_as_it_was_made() -> None:
    module = await lived(Awareness(ORDERS, self_model=TANK), asked("Find it."), order(1))
    module.reset_state()
    fresh = Awareness(ORDERS, self_model=TANK)
    assert module.state.model_copy(update={"at": fresh.state.at}) == fresh.state
    assert module.save_state()["standing"] == fresh.save_state()["standing"]
