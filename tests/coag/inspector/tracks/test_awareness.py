"""Where agents stood, read from the traces of real runs and of made-up ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.aware_runs import (
    RELEASE,
    Reported,
    aware_run,
    begun,
    goal,
    item,
    kept,
    kept_run,
    many_goals,
    state_of,
)
from kits.hostile import HARM, hostile_run
from kits.tracked import cycles_of, index_of, written_run

from coag.awareness import (
    Attention,
    Awareness,
    AwarenessState,
    Entity,
    GoalGraph,
    GoalStatus,
    Resource,
    SelfModel,
    ToolAdapter,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
)
from coag.errors import ConfigurationError, UnknownNameError
from coag.inspector.tracks import AwarenessTrack, is_aware
from coag.inspector.views import AwarenessView, Lane, Move, Stand
from coag.schema import TraceRecord
from coag.tracing import RunFolder

made_up = pytest.mark.broken_trace("its records are made up")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run of a real agent that keeps where it stands; only to be read."""
    return asyncio.run(aware_run(tmp_path_factory.mktemp("aware")))


@pytest.fixture(scope="module")
def track(release: RunFolder) -> AwarenessTrack:
    return AwarenessTrack(index_of(release))


def shown(logs: Path, *states: AwarenessState, cycle: int | None = None) -> Stand:
    """What is told of the last of some states, or of a cycle."""
    return _viewed(logs, *states, cycle=cycle).stands[0]


def _viewed(logs: Path, *states: AwarenessState, cycle: int | None = None) -> AwarenessView:
    return AwarenessTrack(index_of(kept_run(logs, states))).view(cycle)


def lane(lanes: tuple[Lane, ...], label: str) -> Lane:
    return next(one for one in lanes if one.label == label)


# ---- a real run ----


def test_the_goals_of_a_real_run_are_told_as_the_last_cycle_began(track: AwarenessTrack) -> None:
    view = track.view()
    (stand,) = view.stands
    goals = {goal.description: goal for goal in stand.goals}
    assert (view.cycle, view.last, stand.before) == (8, 8, 7)
    assert (stand.goals_open, stand.goals_closed) == (4, 4)
    assert goals[RELEASE].pursued
    assert goals["Publish the packages"].parent == goals[RELEASE].id
    assert goals["Publish the packages"].waits_for == (goals["Make the tests green"].id,)
    assert goals["Fix the upload on Windows"].move is Move.ADDED
    assert goals["Write the changelog"].status == "deferred"
    assert [goals[name].since for name in (RELEASE, "Fix the flaky upload test")] == [1, 3]


def test_any_cycle_can_be_looked_at_with_what_changed(track: AwarenessTrack) -> None:
    stand = track.view(7).stands[0]
    told = {(one.kind, one.name): one for one in stand.changes}
    green = told["goal", "Make the tests green"]
    assert (green.move, green.before, green.after) == (Move.CHANGED, "active", "completed")
    assert told["goal", "Publish the packages"].before == "blocked"
    assert told["attention", "The packages can be published"].move is Move.ADDED
    assert told["attention", "The upload test is flaky"].move is Move.GONE
    assert told["resource", "build minutes"].after == "20 of 120"
    assert told["transition", "All tests are green"].after == "progress"
    assert stand.changes_of == len(stand.changes)


def test_attention_is_told_by_urgency_with_what_is_left_of_its_time(track: AwarenessTrack) -> None:
    flaky = track.view(5).stands[0].attention[0]
    assert (flaky.type, flaky.description, flaky.urgency) == (
        "threat",
        "The upload test is flaky",
        0.9,
    )
    assert (flaky.ttl, flaky.left, flaky.since) == (6, 4, 3)
    urgencies = [one.urgency for one in track.view().stands[0].attention]
    assert urgencies == sorted(urgencies, reverse=True)


def test_the_course_of_a_real_run_has_lanes_marks_and_numbers(track: AwarenessTrack) -> None:
    course = track.view().courses[0]
    publish = lane(course.goals, "Publish the packages")
    assert [(one.first, one.last, one.state) for one in publish.spans] == [
        (2, 6, "blocked"),
        (7, 8, "active"),
    ]
    flaky = lane(course.attention, "The upload test is flaky")
    assert [(one.first, one.last, one.weight) for one in flaky.spans] == [(3, 6, 0.9)]
    marks = {one.type: (one.sticky, one.at) for one in course.marks}
    assert marks["failure"] == (True, ((4, 1),))
    assert marks["progress"][0] is False
    minutes = course.series[0]
    assert (minutes.name, minutes.capacity) == ("build minutes", 120)
    assert minutes.values == (120, 110, 84, 61, 60, 48, 20, 9)
    assert [one.cycle for one in course.changes] == list(range(2, 9))


def test_the_rest_of_the_state_is_told_as_tables(track: AwarenessTrack) -> None:
    listings = {one.title: one for one in track.view().stands[0].listings}
    assert listings["Mistakes and lessons"].rows[0][:3] == (
        "raise_timeout",
        "the server closes first",
        "Look at the server before the client.",
    )
    unknown = listings["Not known"].rows[0]
    assert unknown == ("Why does the upload time out?", "3", "settled, 6")
    assert listings["Things, the last mentioned first"].of == 2


def test_cycles_beside_one_are_told(track: AwarenessTrack) -> None:
    assert [track.beside(cycle) for cycle in (1, 4, 8)] == [(None, 2), (3, 5), (7, None)]
    assert track.view(1).stands[0].before is None
    with pytest.raises(UnknownNameError, match="1 to 8"):
        track.view(9)


def test_two_modules_of_one_agent_are_kept_apart(tmp_path: Path) -> None:
    modules = [Awareness(ToolAdapter(), name="tools"), Awareness(Reported(), name="plans")]
    run = asyncio.run(aware_run(tmp_path, modules=modules))
    view = AwarenessTrack(index_of(run)).view()
    assert [one.module for one in view.stands] == [one.module for one in view.courses]
    plans, tools = view.stands
    assert (plans.module, plans.domain, tools.domain) == ("plans", "release", "tools")
    assert plans.goals_open == 4
    assert [goal.description for goal in tools.goals] == [RELEASE]


# ---- what is not there, or not readable ----


@made_up
def test_a_run_without_awareness_says_so(tmp_path: Path) -> None:
    index = index_of(written_run(tmp_path, cycles_of("clean", "look")))
    assert not is_aware(index)
    track = AwarenessTrack(index)
    assert not track.aware
    with pytest.raises(ConfigurationError, match="no awareness"):
        track.view()


@made_up
def test_a_hostile_run_and_an_empty_one_have_none(tmp_path: Path) -> None:
    for run in (hostile_run(tmp_path), written_run(tmp_path, [], name="empty")):
        index = index_of(run)
        assert not is_aware(index)
        assert not AwarenessTrack(index).aware


def test_a_run_with_awareness_is_known_by_its_first_snapshot(release: RunFolder) -> None:
    assert is_aware(index_of(release))


@made_up
def test_a_state_that_cannot_be_read_is_told_and_others_are_shown(tmp_path: Path) -> None:
    odd = {**state_of(2).model_dump(mode="json"), "version": 99}
    looped = {**state_of(3).model_dump(mode="json"), "goals": {"goals": [{"id": HARM}]}}
    records: list[TraceRecord] = []
    for cycle, state in enumerate((state_of(1), odd, looped, state_of(4)), 1):
        records += begun(cycle, awareness=kept(state))
    records += begun(5)
    track = AwarenessTrack(index_of(written_run(tmp_path, records)))
    troubles = [track.view(cycle).stands[0].trouble for cycle in range(1, 6)]
    assert [bool(one) for one in troubles] == [False, True, True, False, True]
    assert "99" in troubles[1]
    assert "holds no state" in troubles[4]
    assert track.view(4).stands[0].before is None


# ---- states by hand ----


@made_up
def test_suppressed_attention_is_told_last_and_that_it_was_suppressed(tmp_path: Path) -> None:
    items = (item(1, urgency=0.9), item(2, urgency=0.2))
    before = state_of(1, attention=Attention(items=items))
    after = state_of(2, attention=Attention(items=items, suppressed=("i1",)))
    stand = shown(tmp_path, before, after)
    assert [(one.description, one.suppressed) for one in stand.attention] == [
        ("item 2", False),
        ("item 1", True),
    ]
    assert (stand.attention_of, stand.suppressed) == (2, 1)
    (change,) = stand.changes
    assert (change.before, change.after) == ("shown", "suppressed")


@made_up
def test_what_comes_back_after_a_gap_is_there_since_then(tmp_path: Path) -> None:
    held = Attention(items=(item(1, ttl=3),))
    parts = [held, held, Attention(), held, held]
    states = [state_of(step, attention=one) for step, one in enumerate(parts, 1)]
    view = _viewed(tmp_path, *states)
    assert view.stands[0].attention[0].since == 4
    assert [(one.first, one.last) for one in view.courses[0].attention[0].spans] == [(1, 2), (4, 5)]


@made_up
def test_that_something_was_noticed_again_is_no_change(tmp_path: Path) -> None:
    before = state_of(1, attention=Attention(items=(item(1),)), world=_world(1, last_step=1))
    again = Attention(items=(item(1, created_step=2),))
    after = state_of(2, attention=again, world=_world(1, last_step=2, mentions=2))
    assert shown(tmp_path, before, after).changes_of == 0


@made_up
def test_a_hostile_name_is_told_as_it_is_but_short(tmp_path: Path) -> None:
    harmful = state_of(
        1,
        goals=GoalGraph(goals=(goal(1, HARM),)),
        attention=Attention(items=(item(1, HARM),)),
        self_model=SelfModel(resources=(Resource(name=HARM, capacity=1, remaining=1),)),
        world=WorldModel(entities=(Entity(name=HARM, type=HARM, state={HARM: HARM}),)),
    )
    stand = shown(tmp_path, harmful)
    texts = (stand.goals[0].description, stand.attention[0].description, stand.resources[0].name)
    assert all("<script>" in text and len(text) < 300 for text in texts)


def _world(count: int, **fields: Any) -> WorldModel:
    return WorldModel(
        entities=tuple(Entity(name=f"thing {n}", type="thing", **fields) for n in range(count))
    )


# ---- bounds ----


@made_up
def test_a_big_state_is_told_as_far_as_there_is_room(tmp_path: Path) -> None:
    attention = Attention(items=tuple(item(n, urgency=n / 300) for n in range(300)))
    before = state_of(1)
    after = state_of(
        2, goals=many_goals(400), attention=attention, world=_world(10_000, first_step=2)
    )
    view = _viewed(tmp_path, before, after)
    (stand,), (course,) = view.stands, view.courses
    assert (len(stand.goals), stand.goals_open) == (200, 400)
    assert (len(stand.attention), stand.attention_of) == (60, 300)
    assert (len(stand.changes), stand.changes_of) == (60, 10_700)
    (things,) = stand.listings
    assert (len(things.rows), things.of) == (50, 10_000)
    assert (len(course.goals), course.goals_of) == (24, 400)
    assert (len(course.attention), course.attention_of) == (24, 300)
    assert course.attention[-1].label == "item 299"
    assert len(course.changes[0].told) == 5


@made_up
def test_of_a_long_run_some_cycles_are_looked_at_and_all_can_be_shown(tmp_path: Path) -> None:
    def passed(step: int) -> Trajectory:
        one = Transition(step=step, type=TransitionType.FAILURE, description=f"step {step}")
        return Trajectory(transitions=(one,))

    states = [state_of(step, trajectory=passed(step)) for step in range(1, 141)]
    track = AwarenessTrack(index_of(kept_run(tmp_path, states)), looks=20)
    view = track.view(50)
    assert (view.every, view.steps_of, len(view.steps)) == (7, 140, 120)
    assert view.courses[0].cycles == (*range(1, 141, 7), 140)
    assert view.stands[0].before == 49
    assert view.stands[0].changes[0].name == "step 50"
    assert view.steps[0] <= 50 <= view.steps[-1]


@made_up
def test_of_many_modules_the_first_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    states = {f"module {n}": kept(state_of(1)) for n in range(6)}
    view = AwarenessTrack(index_of(written_run(tmp_path, begun(1, **states)))).view()
    assert [one.module for one in view.stands] == [f"module {n}" for n in range(4)]
    assert view.modules_left_out == 2


# ---- properties ----

_PRESENT = st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=6)


@made_up
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(_PRESENT)
def test_lanes_and_changes_tell_exactly_when_something_was_there(
    tmp_path_factory: pytest.TempPathFactory, present: list[set[int]]
) -> None:
    states = [
        state_of(
            step,
            attention=Attention(items=tuple(item(n) for n in sorted(there))),
            goals=GoalGraph(
                goals=tuple(
                    goal(n, status=GoalStatus.COMPLETED if n in there else GoalStatus.ACTIVE)
                    for n in range(6)
                )
            ),
        )
        for step, there in enumerate(present, 1)
    ]
    view = _viewed(tmp_path_factory.mktemp("present"), *states)
    course = view.courses[0]
    for number in range(6):
        found = [one for one in course.attention if one.id == f"i{number}"]
        spans = found[0].spans if found else ()
        cycles = {at for one in spans for at in range(one.first, one.last + 1)}
        assert cycles == {at for at, there in enumerate(present, 1) if number in there}
    for change, was, now in zip(course.changes, present, present[1:], strict=False):
        assert (change.added, change.gone) == (len(now - was), len(was - now))
        assert change.changed == len(now ^ was)
