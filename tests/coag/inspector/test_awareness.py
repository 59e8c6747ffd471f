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
from coag.inspector.awareness import AwarenessReader, is_aware
from coag.inspector.views import (
    AwarenessView,
    Lane,
    ModuleHistory,
    ModuleState,
    Move,
    StateRow,
)
from coag.schema import TraceRecord
from coag.tracing import RunFolder

made_up = pytest.mark.broken_trace("its records are made up")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run of a real agent that keeps its awareness; only to be read."""
    return asyncio.run(aware_run(tmp_path_factory.mktemp("aware")))


@pytest.fixture(scope="module")
def track(release: RunFolder) -> AwarenessReader:
    return AwarenessReader(index_of(release))


def last_state(logs: Path, *states: AwarenessState, cycle: int | None = None) -> ModuleState:
    return _viewed(logs, *states, cycle=cycle).modules[0][0]


def _viewed(logs: Path, *states: AwarenessState, cycle: int | None = None) -> AwarenessView:
    return AwarenessReader(index_of(kept_run(logs, states))).view(cycle)


def rows(state: ModuleState, kind: str) -> dict[str, StateRow]:
    """The rows of the table of a kind, by the first cell."""
    tables = [table for table in state.tables if table.kind == kind]
    return {row.cells[0]: row for table in tables for row in table.rows}


def lane(history: ModuleHistory, label: str) -> Lane:
    return next(one for one in history.lanes if one.label == label)


# ---- a real run ----


def test_the_goals_of_a_real_run_are_shown_as_the_last_cycle_began(track: AwarenessReader) -> None:
    view = track.view()
    ((state, _),) = view.modules
    goals = rows(state, "goal")
    assert (view.cycle, view.last, state.before) == (8, 8, 7)
    facts = dict(state.facts)
    assert (facts["Goals"], facts["Pursued now"]) == ("4 open, 4 closed", RELEASE)
    assert facts["build minutes"] == "9 of 120"
    assert goals[RELEASE].strong
    publish = goals["Publish the packages"]
    assert publish.depth == 1
    assert publish.cells[4:6] == (RELEASE, "Make the tests green")
    assert goals["Fix the upload on Windows"].move is Move.ADDED
    assert goals["Write the changelog"].cells[1] == "deferred"
    assert [goals[name].since for name in (RELEASE, "Fix the flaky upload test")] == [1, 3]
    assert {name for name, row in goals.items() if row.closed} == {
        "Fix the flaky upload test",
        "Restart the build server",
        "Ask Ada who owns the server",
    }


def test_any_cycle_can_be_looked_at_with_what_changed(track: AwarenessReader) -> None:
    state = track.view(7).modules[0][0]
    changes = {(one.kind, one.name): one for one in state.changes}
    green = changes["goal", "Make the tests green"]
    assert (green.move, green.before, green.after) == (Move.CHANGED, "active", "completed")
    assert changes["goal", "Publish the packages"].before == "blocked"
    assert changes["attention", "The packages can be published"].move is Move.ADDED
    assert changes["attention", "The upload test is flaky"].move is Move.GONE
    assert changes["resource", "build minutes"].after == "20 of 120"
    assert changes["transition", "All tests are green"].after == "progress"
    assert state.changes_of == len(state.changes)


def test_attention_is_ordered_by_urgency_with_its_steps_left(track: AwarenessReader) -> None:
    flaky = rows(track.view(5).modules[0][0], "attention")["The upload test is flaky"]
    assert flaky.cells[1:] == ("threat", "0.9", "", "4 of 6")
    urgencies = [row.cells[2] for row in rows(track.view().modules[0][0], "attention").values()]
    assert urgencies == sorted(urgencies, reverse=True)


def test_the_history_of_a_real_run_has_lanes_and_numbers(track: AwarenessReader) -> None:
    history = track.view().modules[0][1]
    publish = lane(history, "Publish the packages")
    assert [(one.first, one.last, one.state) for one in publish.spans] == [
        (2, 6, "blocked"),
        (7, 8, "active"),
    ]
    flaky = lane(history, "threat: The upload test is flaky")
    assert [(one.first, one.last, one.weight) for one in flaky.spans] == [(3, 6, 0.9)]
    failure = lane(history, "failure")
    assert [(one.first, one.strong) for one in failure.spans] == [(4, True)]
    assert not lane(history, "progress").spans[0].strong
    minutes = history.series[0]
    assert (minutes.name, minutes.capacity) == ("build minutes", 120)
    assert minutes.values == (120, 110, 84, 61, 60, 48, 20, 9)
    assert [one.cycle for one in history.changes] == list(range(2, 9))
    assert [one.cycle for one in history.changes if one.grave] == [3, 4, 8]


def test_the_rest_of_the_state_is_shown_as_tables(track: AwarenessReader) -> None:
    state = track.view().modules[0][0]
    assert rows(state, "failure")["raise_timeout"].cells[1:] == (
        "the server closes first",
        "Look at the server before the client.",
    )
    assert rows(state, "unknown")["Why does the upload time out?"].cells[1] == "settled"
    assert len(rows(state, "thing")) == 2


def test_a_view_leads_to_the_cycles_beside_it(track: AwarenessReader) -> None:
    views = [track.view(cycle) for cycle in (1, 4, 8)]
    assert [(view.before, view.after) for view in views] == [(None, 2), (3, 5), (7, None)]
    assert views[0].modules[0][0].before is None
    with pytest.raises(UnknownNameError, match="1 to 8"):
        track.view(9)


def test_two_modules_of_one_agent_are_kept_apart(tmp_path: Path) -> None:
    modules = [Awareness(ToolAdapter(), name="tools"), Awareness(Reported(), name="plans")]
    run = asyncio.run(aware_run(tmp_path, modules=modules))
    (plans, _), (tools, history) = AwarenessReader(index_of(run)).view().modules
    assert (plans.module, plans.domain, tools.domain) == ("plans", "release", "tools")
    assert history.module == "tools"
    assert dict(plans.facts)["Goals"].startswith("4 open")
    assert list(rows(tools, "goal")) == [RELEASE]


# ---- what is not there, or not readable ----


@made_up
def test_a_run_without_awareness_says_so(release: RunFolder, tmp_path: Path) -> None:
    assert is_aware(index_of(release))
    plain = written_run(tmp_path, cycles_of("clean", "look"))
    for run in (plain, hostile_run(tmp_path), written_run(tmp_path, [], name="empty")):
        assert not is_aware(index_of(run))
        track = AwarenessReader(index_of(run))
        assert not track.aware
        with pytest.raises(ConfigurationError, match="no awareness"):
            track.view()


@made_up
def test_a_state_that_cannot_be_read_is_reported_and_others_are_shown(tmp_path: Path) -> None:
    odd = {**state_of(2).model_dump(mode="json"), "version": 99}
    looped = {**state_of(3).model_dump(mode="json"), "goals": {"goals": [{"id": HARM}]}}
    records: list[TraceRecord] = []
    for cycle, state in enumerate((state_of(1), odd, looped, state_of(4)), 1):
        records += begun(cycle, awareness=kept(state))
    records += begun(5)
    track = AwarenessReader(index_of(written_run(tmp_path, records)))
    troubles = [track.view(cycle).modules[0][0].trouble for cycle in range(1, 6)]
    assert [bool(one) for one in troubles] == [False, True, True, False, True]
    assert "99" in troubles[1]
    assert "holds no state" in troubles[4]
    assert track.view(4).modules[0][0].before is None


# ---- states by hand ----


@made_up
def test_suppressed_attention_is_shown_last_and_that_it_was_suppressed(tmp_path: Path) -> None:
    items = (item(1, urgency=0.9), item(2, urgency=0.2))
    before = state_of(1, attention=Attention(items=items))
    after = state_of(2, attention=Attention(items=items, suppressed=("i1",)))
    state = last_state(tmp_path, before, after)
    attention = rows(state, "attention")
    assert [(name, row.cells[3]) for name, row in attention.items()] == [
        ("item 2", ""),
        ("item 1", "suppressed"),
    ]
    assert dict(state.facts)["Attention"] == "1, 1 suppressed"
    (change,) = state.changes
    assert change.after == "suppressed"


@made_up
def test_something_that_comes_back_after_a_gap_has_two_spans(tmp_path: Path) -> None:
    held = Attention(items=(item(1, ttl=3),))
    parts = [held, held, Attention(), held, held]
    states = [state_of(step, attention=one) for step, one in enumerate(parts, 1)]
    history = _viewed(tmp_path, *states).modules[0][1]
    spans = lane(history, "threat: item 1").spans
    assert [(one.first, one.last) for one in spans] == [(1, 2), (4, 5)]


@made_up
def test_goals_in_a_circle_that_a_log_may_hold_are_shown(tmp_path: Path) -> None:
    raw = state_of(1, goals=GoalGraph(goals=(goal(1), goal(2)))).model_dump(mode="json")
    first, second = raw["goals"]["goals"]
    first["parent_id"], second["parent_id"] = second["id"], first["id"]
    run = written_run(tmp_path, begun(1, awareness=kept(raw)))
    state = AwarenessReader(index_of(run)).view().modules[0][0]
    assert state.trouble or set(rows(state, "goal")) == {"goal 1", "goal 2"}


@made_up
def test_that_something_was_noticed_again_is_no_change(tmp_path: Path) -> None:
    before = state_of(1, attention=Attention(items=(item(1),)), world=_world(1, last_step=1))
    again = Attention(items=(item(1, created_step=2),))
    after = state_of(2, attention=again, world=_world(1, last_step=2, mentions=2))
    assert last_state(tmp_path, before, after).changes_of == 0


@made_up
def test_a_hostile_name_is_shown_as_it_is_but_short(tmp_path: Path) -> None:
    harmful = state_of(
        1,
        goals=GoalGraph(goals=(goal(1, HARM),)),
        attention=Attention(items=(item(1, HARM),)),
        self_model=SelfModel(resources=(Resource(name=HARM, capacity=1, remaining=1),)),
        world=WorldModel(entities=(Entity(name=HARM, type=HARM, state={HARM: HARM}),)),
    )
    state = last_state(tmp_path, harmful)
    names = [next(iter(rows(state, kind))) for kind in ("goal", "attention", "resource", "thing")]
    assert all("<script>" in name and len(name) < 300 for name in names)


def _world(count: int, **fields: Any) -> WorldModel:
    return WorldModel(
        entities=tuple(Entity(name=f"thing {n}", type="thing", **fields) for n in range(count))
    )


# ---- bounds ----


@made_up
def test_a_big_state_is_shown_as_far_as_there_is_room(tmp_path: Path) -> None:
    attention = Attention(items=tuple(item(n, urgency=n / 300) for n in range(300)))
    before = state_of(1)
    after = state_of(
        2, goals=many_goals(400), attention=attention, world=_world(10_000, first_step=2)
    )
    ((state, history),) = _viewed(tmp_path, before, after).modules
    sizes = {table.kind: (len(table.rows), table.of) for table in state.tables}
    assert sizes["goal"] == (200, 400)
    assert sizes["attention"] == (60, 300)
    assert sizes["thing"] == (50, 10_000)
    assert (len(state.changes), state.changes_of) == (60, 10_700)
    assert (len(history.lanes), history.lanes_of) == (48, 700)
    assert history.lanes[-1].label == "threat: item 299"
    assert len(history.changes[0].main) == 5


@made_up
def test_of_a_long_run_some_cycles_are_looked_at_and_all_can_be_shown(tmp_path: Path) -> None:
    def passed(step: int) -> Trajectory:
        one = Transition(step=step, type=TransitionType.FAILURE, description=f"step {step}")
        return Trajectory(transitions=(one,))

    states = [state_of(step, trajectory=passed(step)) for step in range(1, 141)]
    track = AwarenessReader(index_of(kept_run(tmp_path, states)), looks=20)
    view = track.view(50)
    assert (view.every, view.steps_of, len(view.steps)) == (7, 140, 120)
    ((state, history),) = view.modules
    assert history.cycles == (*range(1, 141, 7), 140)
    assert state.before == 49
    assert state.changes[0].name == "step 50"
    assert view.steps[0] <= 50 <= view.steps[-1]


@made_up
def test_of_many_modules_the_first_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    states = {f"module {n}": kept(state_of(1)) for n in range(6)}
    view = AwarenessReader(index_of(written_run(tmp_path, begun(1, **states)))).view()
    assert [state.module for state, _ in view.modules] == [f"module {n}" for n in range(4)]
    assert view.modules_of == 6


# ---- properties ----

_PRESENT = st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=6)


@made_up
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(_PRESENT)
def test_lanes_and_changes_say_exactly_when_something_was_there(
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
    history = view.modules[0][1]
    for number in range(6):
        found = [one for one in history.lanes if one.label == f"threat: item {number}"]
        spans = found[0].spans if found else ()
        cycles = {at for one in spans for at in range(one.first, one.last + 1)}
        assert cycles == {at for at, there in enumerate(present, 1) if number in there}
    for change, was, now in zip(history.changes, present, present[1:], strict=False):
        assert change.counts == (len(now - was), len(now ^ was), len(was - now))
