"""Belief beside truth over the cycles of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.tracked import index_of, snapshot, thought, written_run

from coag.inspector.beliefs import BeliefTrack, BeliefView, ListChange, ListTrack, read_beliefs
from coag.schema import TraceRecord

pytestmark = pytest.mark.broken_trace("their records are made up")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=30,
)


def believed(
    tmp_path: Path, *states: tuple[dict[str, Any], Any], agent: str = "robot", limit: int = 500
) -> BeliefView:
    """What is found in a run whose cycles begin with these states and environments."""
    records: list[TraceRecord] = []
    for cycle, (state, environment) in enumerate(states, 1):
        records += [snapshot(cycle, state, environment=environment), *thought(cycle)]
    name = f"run-{len(list(tmp_path.iterdir()))}"
    return read_beliefs(index_of(written_run(tmp_path, records, name=name)), agent, limit=limit)


def track(found: BeliefView, path: str) -> BeliefTrack:
    return next(each for each in found.tracks if each.path == path)


def test_belief_and_truth_are_shown_for_each_cycle(tmp_path: Path) -> None:
    world = {"robots": [{"name": "robot", "battery": 90}]}
    found = believed(tmp_path, ({"battery": 90}, world), ({"battery": 80}, world))
    battery = track(found, "battery")
    assert found.has_truth
    assert battery.true_path == "robots[robot].battery"
    assert battery.numeric
    assert [(p.cycle, p.believed, p.true) for p in battery.points] == [(1, 90, 90), (2, 80, 90)]
    assert battery.wrong == 1


def test_an_environment_that_is_not_repeated_is_as_it_was(tmp_path: Path) -> None:
    states = [({"battery": 5}, {"battery": 5}), ({"battery": 5}, None), ({"battery": 4}, None)]
    battery = track(believed(tmp_path, *states), "battery")
    assert [point.true for point in battery.points] == [5, 5, 5]
    assert battery.wrong == 1


def test_without_a_truth_belief_is_alone_and_has_gaps(tmp_path: Path) -> None:
    found = believed(tmp_path, ({}, None), ({"bump": [1, 2]}, None), ({}, None))
    bump = track(found, "bump")
    assert [point.believed for point in bump.points] == [None, [1, 2], None]
    assert (found.has_truth, bump.true_path, bump.wrong, bump.numeric) == (False, "", 0, True)


def test_fields_with_a_truth_come_first_and_then_those_that_change(tmp_path: Path) -> None:
    one = ({"still": 1, "moves": 1, "checked": 1}, {"checked": 1})
    other = ({"still": 1, "moves": 2, "checked": 1}, None)
    paths = [each.path for each in believed(tmp_path, one, other).tracks]
    assert paths == ["checked", "moves", "still"]


def test_of_a_long_run_some_cycles_are_looked_at(tmp_path: Path) -> None:
    states = [({"battery": n}, {"battery": n} if n % 7 == 0 else None) for n in range(50)]
    found = believed(tmp_path, *states, limit=10)
    battery = track(found, "battery")
    assert found.every == 5
    assert [point.cycle for point in battery.points] == list(range(1, 51, 5))
    assert [point.true for point in battery.points] == [n // 7 * 7 for n in range(0, 50, 5)]


# ---- which truth a field is about ----


WORLD = {
    "robots": [
        {"id": "r1", "name": "other", "position": [0, 0]},
        {"id": "r2", "name": "robot", "position": [1, 2]},
    ],
    "spawn": {"position": [9, 9]},
}
TWICE = {"robots": [{"name": "robot", "x": 1}, {"id": "robot", "x": 2}]}


@pytest.mark.parametrize(
    ("state", "world", "agent", "path"),
    [
        ({"battery": 5}, {"deep": {"battery": 7}}, "robot", "deep.battery"),
        ({"battery": 5}, {"battery": 5, "spare": {"battery": 9}}, "robot", "battery"),
        ({"position": [1, 1]}, WORLD, "robot", "robots[robot].position"),
        ({"position": [1, 1]}, WORLD, "r1", "robots[r1].position"),
        ({"battery": 5}, {"a": {"battery": 5}, "b": {"battery": 5}}, "robot", ""),
        ({"x": 1}, TWICE, "robot", ""),
        ({"battery": 5}, {"battery": "full"}, "robot", ""),
        ({"battery": True}, {"battery": 1}, "robot", ""),
        ({"position": [1, 2]}, {"position": [1, 2, 3]}, "robot", ""),
    ],
)
def test_the_truth_of_a_field_is_the_plain_one_or_none(
    tmp_path: Path, state: dict[str, Any], world: Any, agent: str, path: str
) -> None:
    (found,) = believed(tmp_path, (state, world), agent=agent).tracks
    assert found.true_path == path


def test_a_field_that_is_of_another_sort_only_once_is_not_paired(tmp_path: Path) -> None:
    states = [({"door": "open"}, {"door": "open"}), ({"door": "shut"}, {"door": 3})]
    assert track(believed(tmp_path, *states), "door").true_path == ""


def test_only_what_can_be_drawn_is_a_field_and_states_are_looked_at_in_bounds(
    tmp_path: Path,
) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"in": deep}
    state = {
        "cells": [[1, 2], [3, 4]],
        "many": [1, 2, 3, 4, 5],
        "huge": 10**400,
        "void": None,
        "deep": deep,
        "at": [1, 2],
        "text": "x" * 1_000_000,
    }
    found = believed(tmp_path, (state, None))
    assert [each.path for each in found.tracks] == ["at", "text"]
    assert len(track(found, "text").points[0].believed) == 200
    wide = {str(number): number for number in range(10_000)}
    assert len(believed(tmp_path, (wide, None)).tracks) == 48


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), JSON, st.text(max_size=3))
def test_any_two_states_can_be_compared(
    tmp_path: Path, state: dict[str, Any], true: Any, agent: str
) -> None:
    for found in believed(tmp_path, (state, true), (state, None), agent=agent).tracks:
        assert not found.true_path or found.true_path.endswith(found.path.split(".")[-1])
        assert len(found.points) == 2


# ---- lists ----


def test_only_cycles_in_which_a_list_changed_are_given(tmp_path: Path) -> None:
    values = [["a", "b"], ["b", "a"], ["b"], ["b", "c", "c"]]
    states: list[tuple[dict[str, Any], Any]] = [({"map": {"dirty": one}}, None) for one in values]
    changes = (
        ListChange(cycle=1, added=('"a"', '"b"'), length=2),
        ListChange(cycle=3, removed=('"a"',), length=1),
        ListChange(cycle=4, added=('"c"', '"c"'), length=3),
    )
    assert believed(tmp_path, *states).lists == (ListTrack(path="map.dirty", changes=changes),)


def test_lists_of_scalars_and_positions_are_followed_and_nothing_else(tmp_path: Path) -> None:
    first = {
        "position": [1, 2],
        "dirty": [[0, 1], [2, 2]],
        "people": [{"name": "a"}],
        "long": [[n, n] for n in range(1_000)],
        "none": [],
        "same": ["x"],
    }
    last = {"position": [1], "dirty": [[0, 1]], "people": [], "long": [], "none": ["y"]}
    last["same"] = ["x"]
    found = believed(tmp_path, (first, None), ({}, None), (last, None)).lists
    assert [(one.path, len(one.changes)) for one in found] == [("dirty", 2), ("none", 2)]
    assert found[0].changes[0].added == ("[0, 1]", "[2, 2]")
