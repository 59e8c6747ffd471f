"""Fields of a state, and which field of the truth is meant by one of the belief."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coag.inspector.tracks.beliefs import fields_of, paired

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
    held, so = fields_of(believed), fields_of(true, agent)
    for of, to in paired([held], [so]).items():
        assert of in held
        assert to in so
        assert of[-1] == to[-1]


def test_a_state_is_looked_at_in_bounds() -> None:
    wide = {str(number): number for number in range(10_000)}
    assert len(fields_of(wide)) == 400
    deep: Any = 1
    for _ in range(100):
        deep = {"in": deep}
    assert not fields_of(deep)
    (told,) = fields_of({"text": "x" * 1_000_000}).values()
    assert len(told.value) == 200
