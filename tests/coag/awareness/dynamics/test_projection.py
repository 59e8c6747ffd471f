"""What runs out, stalls, keeps failing or falls due is told before it is too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AttentionType,
    AwarenessState,
    FailureNote,
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
from coag.awareness.projection import criteria_of, project, trends, with_projection, with_readings
from coag.awareness.state import Reading

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = ProjectionSettings()


def goal(description: str = "Tidy up", *, step: int = 0, **fields: object) -> Goal:
    base = Goal(id="00000001", description=description, created_step=step, updated_step=step)
    return Goal.model_validate({**base.model_dump(), **fields})


def state(
    step: int = 0,
    *goals: Goal,
    needs: tuple[Need, ...] = (),
    failures: tuple[FailureNote, ...] = (),
) -> AwarenessState:
    return AwarenessState(
        domain="test",
        step=step,
        at=NOW,
        goals=GoalGraph(goals=goals),
        self_model=SelfModel(needs=needs, failures=failures),
    )


def with_levels(base: AwarenessState, levels: list[float], name: str = "battery") -> AwarenessState:
    """The state after the resource stood so at the latest steps, its own among them."""
    start = base.step - len(levels) + 1
    now = base
    for place, level in enumerate(levels):
        resource = Resource(name=name, capacity=1000, remaining=level)
        now = now.model_copy(
            update={"step": start + place, "self_model": now.self_model.read(resource)}
        )
        now = with_readings(now, SETTINGS)
    return now


def told(given: AwarenessState, settings: ProjectionSettings = SETTINGS) -> list[str]:
    return [item.description for item in project(given, settings)]


def test_a_battery_that_falls_is_told_with_the_steps_that_are_left() -> None:
    low = with_levels(state(20), [50, 45, 40, 35, 30])
    assert told(low) == ["battery runs out in about 6 steps: 30 left"]
    (item,) = project(low)
    assert item.type is AttentionType.THREAT
    assert told(with_levels(state(20), [90, 85, 80, 75, 70])) == []


def test_what_is_nearer_is_more_urgent() -> None:
    levels = [[30.0 - 5 * step, 25.0 - 5 * step, 20.0 - 5 * step] for step in range(4)]
    urgent = [project(with_levels(state(9), one))[0].urgency for one in levels]
    assert urgent == sorted(urgent)
    assert all(0.4 <= one <= 1.0 for one in urgent)


def test_two_readings_and_one_large_step_are_no_trend() -> None:
    assert told(with_levels(state(9), [20, 10])) == []
    assert told(with_levels(state(9), [90, 90, 90, 20, 20, 20])) == []


def test_after_charging_the_trend_begins_anew() -> None:
    charged = with_levels(state(20), [9, 6, 3, 900, 897])
    assert told(charged) == []
    assert trends(charged, SETTINGS)[0].per_step is None
    assert told(with_levels(state(20), [30, 20, 60, 40, 20])) == [
        "battery runs out in about 1 step: 20 left"
    ]


def test_a_resource_that_is_not_used_up_has_no_trend() -> None:
    now = state(3)
    licence = Resource(name="licence", capacity=5, remaining=5, depletable=False)
    now = with_readings(
        now.model_copy(update={"self_model": now.self_model.read(licence)}), SETTINGS
    )
    assert now.self_model.readings == ()
    assert trends(now, SETTINGS) == ()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(0, 1000))
def test_a_resource_that_grows_is_never_warned_of(levels: list[int], need: int) -> None:
    rising = sorted(float(level) for level in levels)
    hungry = goal(step=50, completion_criteria=f"needs {need} battery")
    warned = told(with_levels(state(50, hungry), rising))
    if rising[-1] > rising[-10:][0]:
        assert warned == []
    assert not any("runs out" in text for text in warned)


def test_a_goal_is_not_warned_while_what_it_lacks_grows_by_and_by() -> None:
    hungry = goal(step=20, completion_criteria="needs 30 battery")
    assert told(with_levels(state(20, hungry), [5, 9, 9, 9, 9])) == []
    assert told(with_levels(state(20, hungry), [5, 9, 9, 8, 8])) == [
        "battery has less than the 30 that this needs: Tidy up"
    ]


@given(st.integers(0, 900))
def test_a_resource_that_falls_evenly_is_warned_of_exactly_within_the_horizon(left: int) -> None:
    fall = 7.0
    even = [left + fall * back for back in range(4, -1, -1)]
    warned = bool(told(with_levels(state(50), even)))
    assert warned == (0 < left / fall <= SETTINGS.horizon)


def test_a_goal_that_will_lack_what_it_needs_is_told() -> None:
    dock = goal("Go to the charger", step=20, completion_criteria="docked; needs 30 of battery.")
    assert told(with_levels(state(20, dock), [90, 80, 70, 60])) == [
        "battery in about 3 steps has less than the 30 that this needs: Go to the charger",
        "battery runs out in about 6 steps: 60 left",
    ]
    assert told(with_levels(state(20, dock), [20, 20, 20])) == [
        "battery has less than the 30 that this needs: Go to the charger"
    ]
    assert told(with_levels(state(20, dock), [90, 80, 70, 60], "batteryfoil"))[1:] == []


def test_what_an_action_takes_counts_for_goals_that_name_it() -> None:
    needs = (Need(action="move_to_charger*", resource="Battery", amount=55),)
    named = with_levels(
        state(20, goal("Move to charger now", step=20), needs=needs), [100, 90, 80, 70]
    )
    assert told(named)[0].startswith("battery in about 2 steps has less than the 55")
    other = with_levels(state(20, goal("Sweep", step=20), needs=needs), [100, 90, 80, 70])
    assert told(other) == ["battery runs out in about 7 steps: 70 left"]


def test_a_goal_of_which_nothing_is_heard_stalls_unless_something_that_serves_it_moves() -> None:
    quiet = goal("Tidy up", priority=0.8)
    assert told(state(9, quiet)) == []
    assert told(state(10, quiet)) == ["No progress for 10 steps: Tidy up"]
    child = goal("Sweep", step=8).model_copy(update={"id": "00000002", "parent_id": quiet.id})
    assert told(state(10, quiet, child)) == []
    urgent = [project(state(step, quiet))[0].urgency for step in (10, 20, 100)]
    assert urgent == sorted(urgent)
    assert urgent[0] < urgent[-1] <= 0.8
    deferred = goal("Tidy up", status=GoalStatus.DEFERRED)
    assert told(state(100, deferred)) == []


def test_an_action_that_failed_again_and_again_lately_is_told_with_the_lesson() -> None:
    notes = tuple(
        FailureNote(step=step, action=action, lesson="look first")
        for step, action in ((1, "grab"), (30, "Grab"), (31, "open"), (32, "grab"))
    )
    assert told(state(33, failures=notes)) == ["grab failed 2 times in 20 steps: look first"]
    assert told(state(60, failures=notes)) == []


def test_a_deadline_in_steps_is_told_when_it_is_near_and_when_it_is_over() -> None:
    due = goal("Send it", step=30, completion_criteria="Sent by step 40, signed")
    assert told(state(29, due)) == []
    assert told(state(38, due)) == ["Due in 2 steps: Send it"]
    assert told(state(41, goal("Send it", step=40, completion_criteria="by step 40"))) == [
        "Was due at step 40: Send it"
    ]
    assert project(state(45, due))[0].urgency == 1.0


def test_a_deadline_in_time_is_told_when_it_is_near_and_when_it_is_over() -> None:
    due = goal("Send it", completion_criteria="by 2026-01-01T12:30Z")
    assert told(state(1, due)) == ["Due in 30 min: Send it"]
    late = state(1, due).model_copy(update={"at": NOW + timedelta(hours=1)})
    assert told(late) == ["Was due at 2026-01-01T12:30+00:00: Send it"]
    assert told(state(1, due).model_copy(update={"at": NOW - timedelta(hours=1)})) == []


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("by 2026-03-01", "2026-03-01T23:59:59.999999+00:00"),
        ("Ready by 2026-03-01 08:15.", "2026-03-01T08:15:00+00:00"),
        ("by 2026-03-01T08:15:30+02:00", "2026-03-01T06:15:30+00:00"),
        ("by 2026-13-01", None),
        ("by 0001-01-01T00:00+23:59", None),
        ("by Friday", None),
        ("standby 2026-03-01", None),
    ],
)
def test_deadlines_are_read_where_they_are_times(text: str, by: str | None) -> None:
    read = criteria_of(goal(completion_criteria=text)).by
    assert (read.isoformat() if read else None) == by


@given(st.text(max_size=60) | st.from_regex(r"(by (step )?|needs )[\d:T+-]{1,20} \w*"))
def test_no_criteria_break_the_projection(text: str) -> None:
    said = text.encode("utf-8", "ignore").decode()
    asked = goal(completion_criteria=said if said.strip() else None)
    project(with_levels(state(50, asked), [30, 20, 10]))


def test_warnings_are_renewed_at_each_step_and_gone_when_their_reason_is() -> None:
    low = with_levels(state(20), [30, 20, 10])
    once = with_projection(low)
    twice = with_projection(once)
    assert twice == once
    (item,) = once.attention.items
    assert once.attention.expire(21).items == ()
    lower = with_projection(with_levels(once.model_copy(update={"step": 20}), [29, 19, 9]))
    assert [one.id for one in lower.attention.items] == [item.id]
    silent = once.model_copy(update={"attention": once.attention.suppress(item.id)})
    assert with_projection(silent).attention.visible == ()
    full = low.model_copy(update={"self_model": SelfModel()})
    assert with_projection(full).attention.items == ()


def test_only_the_most_urgent_are_told() -> None:
    goals = tuple(
        goal(f"Goal {place}", priority=place / 20).model_copy(update={"id": f"{place:08x}"})
        for place in range(20)
    )
    assert told(state(50, *goals), ProjectionSettings(most=2)) == [
        "No progress for 50 steps: Goal 19",
        "No progress for 50 steps: Goal 18",
    ]


def test_readings_are_kept_once_a_step_and_as_many_as_the_settings_say() -> None:
    now = with_levels(state(50), [float(level) for level in range(100, 70, -1)])
    assert len(now.self_model.readings) == SETTINGS.readings
    again = with_readings(now, SETTINGS)
    assert again == now
    assert now.self_model.readings[-1] == Reading(resource="battery", step=50, remaining=71)
    assert AwarenessState.model_validate_json(now.model_dump_json()) == now


def test_a_state_that_was_kept_without_readings_still_loads() -> None:
    old = with_levels(state(50), [3.0]).model_dump(mode="json")
    del old["self_model"]["readings"], old["self_model"]["tallies"]
    assert load_state(old).self_model.readings == ()


def test_only_what_is_looked_for_is_told() -> None:
    failures = tuple(FailureNote(step=30, action="pull") for _ in range(3))
    silent = state(31, goal(completion_criteria="by step 35"), failures=failures)
    ahead = {one: project(silent, ProjectionSettings(of=(one,))) for one in Ahead}
    assert [len(found) for found in ahead.values()] == [0, 1, 1, 1]
    together = {one.id for found in ahead.values() for one in found}
    assert together == {one.id for one in project(silent)}
