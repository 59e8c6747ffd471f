"""Differences of JSON values, and merge patches."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag._util.json_diff import ABSENT, diff_patch, differences, first_difference, merge_patch

KEYS = st.sampled_from(["a", "b", "c"])
LEAVES: st.SearchStrategy[Any] = (
    st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0]) | st.sampled_from(["", "x"])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner | st.none(), max_size=2) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)
STATES = st.dictionaries(KEYS, VALUES, max_size=3)


def written(value: Any) -> str:
    """As JSON, where true is not 1."""
    return json.dumps(value, sort_keys=True)


@given(before=STATES, after=STATES)
def test_merging_a_difference_gives_the_later_state(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    patch = diff_patch(before, after)
    assert written(merge_patch(before, patch)) == written(after)


@given(before=STATES, after=STATES)
def test_a_difference_is_empty_only_between_equal_states(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert (diff_patch(before, after) == {}) == (written(before) == written(after))


@given(state=STATES, patch=st.dictionaries(KEYS, VALUES | st.none(), max_size=3))
def test_merging_leaves_what_it_is_given(state: dict[str, Any], patch: dict[str, Any]) -> None:
    before = written([state, patch])
    merge_patch(state, patch)
    assert written([state, patch]) == before


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merging_follows_the_examples_of_the_standard(
    target: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]
) -> None:
    assert merge_patch(target, patch) == result


@given(before=VALUES, after=VALUES)
def test_two_values_differ_where_their_json_does(before: Any, after: Any) -> None:
    places = list(differences(before, after))
    assert (places == []) == (_numbers(before) == _numbers(after))
    assert first_difference(before, after) == (places[0] if places else None)


def _numbers(value: Any) -> str:
    """As JSON, where 1.0 is 1."""
    return written(value).replace("1.0", "1").replace("0.0", "0")


def test_a_difference_names_the_deepest_place() -> None:
    before = {"a": [{"b": 1}, 2], "c": None, "d": 1}
    after = {"a": [{"b": True}, 2, 3], "d": 1, "e": 0}
    assert [(one.path, one.before, one.after) for one in differences(before, after)] == [
        ("a[0].b", 1, True),
        ("a[2]", ABSENT, 3),
        ("c", None, ABSENT),
        ("e", ABSENT, 0),
    ]
    assert [one.path for one in differences(before, after, in_lists=False)] == ["a", "c", "e"]
    assert [one.path for one in differences({"a": {"b": 1}}, {"a": {"b": 2}}, depth=1)] == ["a"]


def test_a_difference_is_shown_from_just_before_its_place_and_hides_nothing() -> None:
    found = first_difference("x" * 1_000 + "old\u202e", "x" * 1_000 + "new" + "y" * 1_000)
    assert found is not None
    old, new = found.shown()
    assert old == '…"' + "x" * 60 + 'old\\u202e"'
    assert new.startswith('…"' + "x" * 60 + "newyyy")
    assert len(new) < 330
    assert first_difference({}, {"a": 1}).shown() == ("nothing", "1")  # pyright: ignore[reportOptionalMemberAccess] - it differs
