"""What runs out, stalls, keeps failing or falls due is raised before it is too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.aware_runs import goal as made

from coag.awareness import (
    AttentionType,
    AwarenessState,
    Goal,
    GoalGraph,
    GoalStatus,
    Need,
    ProjectionSettings,
    Resource,
    SelfModel,
    load_state,
)
from coag.awareness.dynamics import Ahead
from coag.awareness.projection import deadline_of, project, with_readings, with_warnings
from coag.awareness.state import FailureNote

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = ProjectionSettings()


def goal(description: str = "Tidy up", *, step: int = 0, number: int = 1, **fields: Any) -> Goal:
    return made(number, description, created_step=step, updated_step=step, **fields)


def state(step: int = 0, *goals: Goal, **own: object) -> AwarenessState:
    graph, me = GoalGraph(goals=goals), SelfModel.model_validate(own)
    return AwarenessState(domain="test", step=step, at=NOW, goals=graph, self_model=me)


def with_levels(
    base: AwarenessState, *levels: float, name: str = "battery", depletable: bool = True
) -> AwarenessState:
    """The state after the resource had these levels at the latest steps."""
    for step, level in enumerate(levels, base.step - len(levels) + 1):
        resource = Resource(name=name, capacity=1000, remaining=level, depletable=depletable)
        read = {"step": step, "self_model": base.self_model.read(resource)}
        base = with_readings(base.model_copy(update=read), SETTINGS)
    return base


def warnings(now: AwarenessState, settings: ProjectionSettings = SETTINGS) -> list[str]:
    return [item.description for item in project(now, settings)]


HUNGRY = goal("Dock", step=20, completion_criteria="docked; needs 30 of battery.")
LACKS = "battery has less than the 30 that this needs: Dock"


SOON = "battery in about 3 steps has less than the 30 that this needs: Dock"


def out(steps: str, left: int) -> str:
    return f"battery runs out in about {steps}: {left} left"


@pytest.mark.parametrize(
    ("goals", "levels", "expected"),
    [
        ((), (50, 45, 40, 35, 30), [out("6 steps", 30)]),
        ((), (90, 85, 80, 75, 70), []),
        ((), (20, 10), []),
        ((), (90, 90, 90, 20, 20, 20), []),
        ((), (9, 6, 3, 900, 897), []),
        ((), (30, 20, 60, 40, 20), [out("1 step", 20)]),
        ((HUNGRY,), (90, 80, 70, 60), [SOON, out("6 steps", 60)]),
        ((HUNGRY,), (20, 20, 20), [LACKS]),
        ((HUNGRY,), (5, 9, 9, 9, 9), []),
        ((HUNGRY,), (5, 9, 9, 8, 8), [LACKS]),
    ],
)
def test_a_resource_that_falls_is_warned_of_with_the_steps_that_are_left(
    goals: tuple[Goal, ...], levels: tuple[float, ...], expected: list[str]
) -> None:
    low = with_levels(state(20, *goals), *levels)
    assert warnings(low) == expected
    assert all(item.type is AttentionType.THREAT for item in project(low))


def test_a_goal_needs_the_resource_that_it_names_and_no_other() -> None:
    other = with_levels(state(20, HUNGRY), 90, 80, 70, 60, name="batteryfoil")
    assert warnings(other) == ["batteryfoil runs out in about 6 steps: 60 left"]


def test_what_is_nearer_is_more_urgent() -> None:
    levels = [(30.0 - 5 * step, 25.0 - 5 * step, 20.0 - 5 * step) for step in range(4)]
    urgent = [project(with_levels(state(9), *one))[0].urgency for one in levels]
    assert urgent == sorted(urgent)
    assert all(0.4 <= one <= 1.0 for one in urgent)


def test_a_resource_that_is_not_used_up_has_no_trend() -> None:
    now = with_levels(state(3), 5, 4, 3, name="licence", depletable=False)
    assert (now.self_model.readings, warnings(now)) == ((), [])


def test_what_an_action_takes_counts_for_goals_that_name_it() -> None:
    needs = (Need(action="move_to_charger*", resource="Battery", amount=55),)
    first = [
        warnings(with_levels(state(20, goal(text, step=20), needs=needs), 100, 90, 80, 70))[0]
        for text in ("Move to charger now", "Sweep")
    ]
    assert first[0].startswith("battery in about 2 steps has less than the 55")
    assert first[1] == "battery runs out in about 7 steps: 70 left"


def test_a_goal_that_is_not_mentioned_stalls_unless_something_that_serves_it_moves() -> None:
    quiet = goal("Tidy up", priority=0.8)
    assert warnings(state(9, quiet)) == []
    assert warnings(state(10, quiet)) == ["No progress for 10 steps: Tidy up"]
    part = goal("Sweep", step=8, parent_id=quiet.id, number=2)
    assert warnings(state(10, quiet, part)) == []
    urgent = [project(state(step, quiet))[0].urgency for step in (10, 20, 100)]
    assert urgent[0] < urgent[1] < urgent[2] <= 0.8
    assert warnings(state(100, goal("Tidy up", status=GoalStatus.DEFERRED))) == []


def test_an_action_that_failed_repeatedly_is_raised_with_its_lesson() -> None:
    notes = tuple(
        FailureNote(step=step, action=action, lesson="look first")
        for step, action in ((1, "grab"), (30, "Grab"), (31, "open"), (32, "grab"))
    )
    assert warnings(state(33, failures=notes)) == ["grab failed 2 times in 20 steps: look first"]
    assert warnings(state(60, failures=notes)) == []


@pytest.mark.parametrize(
    ("criteria", "step", "hours", "expected"),
    [
        ("Sent by step 40, signed", 29, 0, []),
        ("Sent by step 40, signed", 38, 0, ["Due in 2 steps: Send it"]),
        ("by step 40", 41, 0, ["Was due at step 40: Send it"]),
        ("by 2026-01-01T12:30Z", 30, 0, ["Due in 30 min: Send it"]),
        ("by 2026-01-01T12:30Z", 30, 1, ["Was due at 2026-01-01T12:30+00:00: Send it"]),
        ("by 2026-01-01T12:30Z", 30, -1, []),
    ],
)
def test_a_deadline_is_raised_when_it_is_near_and_when_it_is_over(
    criteria: str, step: int, hours: int, expected: list[str]
) -> None:
    due = state(step, goal("Send it", step=step, completion_criteria=criteria))
    assert warnings(due.model_copy(update={"at": NOW + timedelta(hours=hours)})) == expected


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("by 2026-03-01", "2026-03-01T23:59:59.999999+00:00"),
        ("Ready by 2026-03-01 08:15.", "2026-03-01T08:15:00+00:00"),
        ("by 2026-03-01T08:15:30+02:00", "2026-03-01T06:15:30+00:00"),
        *((text, None) for text in ("by 2026-13-01", "by 0001-01-01T00:00+23:59")),
        *((text, None) for text in ("by Friday", "standby 2026-03-01")),
    ],
)
def test_deadlines_are_read_where_they_are_times(text: str, by: str | None) -> None:
    read = deadline_of(goal(completion_criteria=text))
    assert (read.isoformat() if isinstance(read, datetime) else None) == by


@given(st.text(max_size=60) | st.from_regex(r"(by (step )?|needs )[\d:T+-]{1,20} \w*"))
def test_no_criteria_break_the_projection(text: str) -> None:
    plain = text.encode("utf-8", "ignore").decode()
    one = goal(completion_criteria=plain if plain.strip() else None)
    project(with_levels(state(50, one), 30, 20, 10))


def with_projection(now: AwarenessState) -> AwarenessState:
    return with_warnings(now, project(now))


def test_warnings_are_renewed_at_each_step_and_gone_when_their_reason_is() -> None:
    low = with_levels(state(20), 30, 20, 10)
    once = with_projection(low)
    assert with_projection(once) == once
    (item,) = once.attention.items
    assert once.attention.expire(21).items == ()
    lower = with_projection(with_levels(once.model_copy(update={"step": 20}), 29, 19, 9))
    assert [one.id for one in lower.attention.items] == [item.id]
    silent = once.model_copy(update={"attention": once.attention.suppress(item.id)})
    assert with_projection(silent).attention.visible == ()
    assert with_projection(once.model_copy(update={"self_model": SelfModel()})).attention == (
        state().attention
    )


def test_only_the_most_urgent_of_what_is_looked_for_are_raised() -> None:
    goals = (goal(f"Goal {place}", priority=place / 20, number=place) for place in range(20))
    assert warnings(state(50, *goals), ProjectionSettings(most=2)) == [
        "No progress for 50 steps: Goal 19",
        "No progress for 50 steps: Goal 18",
    ]
    failures = tuple(FailureNote(step=30, action="pull") for _ in range(3))
    silent = state(31, goal(completion_criteria="by step 35"), failures=failures)
    ahead = [project(silent, ProjectionSettings(of=(one,))) for one in Ahead]
    assert [len(found) for found in ahead] == [0, 1, 1, 1]
    assert {one.id for found in ahead for one in found} == {one.id for one in project(silent)}


def test_readings_are_kept_once_a_step_as_many_as_the_settings_say_and_may_be_missing() -> None:
    now = with_levels(state(50), *map(float, range(100, 70, -1)))
    readings = now.self_model.readings
    assert with_readings(now, SETTINGS) == now
    assert (len(readings), readings[-1].step, readings[-1].remaining) == (10, 50, 71)
    assert AwarenessState.model_validate_json(now.model_dump_json()) == now
    old = now.model_dump(mode="json")
    del old["self_model"]["readings"], old["self_model"]["tallies"]
    assert load_state(old).self_model.readings == ()
