"""Belief beside truth over the cycles of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.tracked import index_of, snapshot, thought, written_run

from coag.inspector.beliefs import (
    BeliefTrack,
    BeliefView,
    ListChange,
    ListTrack,
    fields_of,
    list_tracks,
    lists_of,
    paired,
    read_beliefs,
)
from coag.schema import TraceRecord

pytestmark = pytest.mark.broken_trace("their records are made up")


def believed(
    tmp_path: Path, *snapshots: tuple[dict[str, Any], Any], limit: int = 500
) -> BeliefView:
    records: list[TraceRecord] = []
    for cycle, (state, environment) in enumerate(snapshots, 1):
        records += [snapshot(cycle, state, environment=environment), *thought(cycle)]
    return read_beliefs(index_of(written_run(tmp_path, records)), "robot", limit=limit)


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


def test_without_a_truth_belief_is_alone(tmp_path: Path) -> None:
    found = believed(tmp_path, ({"battery": 5}, None), ({"battery": 4}, None))
    assert not found.has_truth
    assert track(found, "battery").true_path == ""
    assert track(found, "battery").wrong == 0


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


def test_a_field_that_is_not_always_believed_has_gaps(tmp_path: Path) -> None:
    found = believed(tmp_path, ({}, None), ({"bump": [1, 2]}, None), ({}, None))
    assert [point.believed for point in track(found, "bump").points] == [None, [1, 2], None]
    assert track(found, "bump").numeric


# ---- fields ----

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=30,
)


def pairs(believed: Any, true: Any, agent: str = "robot") -> dict[str, str]:
    found = paired([fields_of(believed)], [fields_of(true, agent)])
    return {".".join(of): ".".join(to) for of, to in found.items()}


def test_fields_with_the_same_key_and_sort_of_value_are_paired() -> None:
    assert pairs({"battery": 5}, {"deep": {"battery": 7}}) == {"battery": "deep.battery"}


def test_the_agent_s_own_element_is_meant_where_others_are_called_alike() -> None:
    world = {
        "robots": [
            {"id": "r1", "name": "other", "position": [0, 0]},
            {"id": "r2", "name": "robot", "position": [1, 2]},
        ],
        "spawn": {"position": [9, 9]},
    }
    assert pairs({"position": [1, 1]}, world) == {"position": "robots[robot].position"}
    assert pairs({"position": [1, 1]}, world, "r1") == {"position": "robots[r1].position"}


def test_what_is_ambiguous_is_not_paired() -> None:
    assert pairs({"battery": 5}, {"a": {"battery": 5}, "b": {"battery": 5}}) == {}
    twice = {"robots": [{"name": "robot", "x": 1}, {"id": "robot", "x": 2}]}
    assert pairs({"x": 1}, twice) == {}


def test_the_same_path_is_meant_before_others() -> None:
    world = {"battery": 5, "spare": {"battery": 9}}
    assert pairs({"battery": 5}, world) == {"battery": "battery"}


def test_values_of_another_sort_are_not_paired() -> None:
    assert pairs({"battery": 5}, {"battery": "full"}) == {}
    assert pairs({"battery": True}, {"battery": 1}) == {}
    assert pairs({"position": [1, 2]}, {"position": [1, 2, 3]}) == {}


def test_a_field_that_is_of_another_sort_only_once_is_not_paired() -> None:
    believed = [fields_of({"door": "open"}), fields_of({"door": "shut"})]
    true = [fields_of({"door": "open"}), fields_of({"door": 3})]
    assert paired(believed, true) == {}


def test_long_lists_and_lists_of_objects_are_no_fields() -> None:
    found = fields_of({"cells": [[1, 2], [3, 4]], "many": [1, 2, 3, 4, 5], "at": [1, 2]})
    assert list(found) == [("at",)]


def test_what_cannot_be_drawn_is_left_out() -> None:
    found = fields_of({"huge": 10**400, "lost": float("nan"), "void": None, "here": 1})
    assert list(found) == [("here",)]


@given(JSON, JSON, st.text(max_size=3))
def test_any_two_states_can_be_paired(believed: Any, true: Any, agent: str) -> None:
    one, other = fields_of(believed), fields_of(true, agent)
    for of, to in paired([one], [other]).items():
        assert of in one
        assert to in other
        assert of[-1] == to[-1]


def test_a_state_is_looked_at_in_bounds() -> None:
    wide = {str(number): number for number in range(10_000)}
    assert len(fields_of(wide)) == 400
    deep: Any = 1
    for _ in range(100):
        deep = {"in": deep}
    assert not fields_of(deep)
    (field,) = fields_of({"text": "x" * 1_000_000}).values()
    assert len(field.value) == 200


# ---- lists ----


def test_lists_of_scalars_and_positions_are_followed_and_nothing_else() -> None:
    state = {
        "position": [1, 2],
        "map": {"dirty": [[0, 1], [2, 2]], "names": ["a", "b", "c", "d", "e"]},
        "people": [{"name": "a"}],
        "long": [[n, n] for n in range(1_000)],
        "none": [],
    }
    assert lists_of(state) == {
        "map.dirty": ("[0, 1]", "[2, 2]"),
        "map.names": ('"a"', '"b"', '"c"', '"d"', '"e"'),
        "none": (),
    }
    assert lists_of("no object") == {}


def test_only_cycles_in_which_a_list_changed_are_given() -> None:
    values = [["a", "b"], ["b", "a"], ["b"], ["b", "c", "c"]]
    moments = [(at, lists_of({"dirty": items})) for at, items in enumerate(values, 1)]
    assert list_tracks(moments) == (
        ListTrack(
            path="dirty",
            changes=(
                ListChange(cycle=1, added=('"a"', '"b"'), length=2),
                ListChange(cycle=3, removed=('"a"',), length=1),
                ListChange(cycle=4, added=('"c"', '"c"'), length=3),
            ),
        ),
    )


def test_lists_that_never_change_or_are_not_always_there_are_told_of_as_far_as_they_are() -> None:
    moments = [(1, lists_of({"a": ["x"], "b": []})), (2, lists_of({})), (3, lists_of({"b": ["y"]}))]
    assert [(one.path, len(one.changes)) for one in list_tracks(moments)] == [("b", 2)]
