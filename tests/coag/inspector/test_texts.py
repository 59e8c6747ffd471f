"""Foreign text and values in a bounded number of characters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag._util.json_diff import JsonDifference, merge_patch
from coag.inspector.texts import (
    call_in_a_line,
    changes,
    fields_in_a_line,
    in_a_line,
    value_in_a_line,
)

NOTE = 40
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_characters=".")), JSON, max_size=4)


@given(text=st.text(), value=OBJECTS, limit=st.integers(10, 60))
def test_texts_and_values_of_any_shape_fit_a_line(
    text: str, value: dict[str, Any], limit: int
) -> None:
    written = json.dumps(value) + " and so on"
    for line in (in_a_line(text, limit), fields_in_a_line(written, limit)):
        assert len(line.splitlines()) <= 1
        assert len(line) <= limit + NOTE
    assert len(value_in_a_line(value, limit)) <= limit + NOTE


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"ok": true, "at": [2, 0], "left": 17}', "ok true · at [2, 0] · left 17"),
        (' {"why": null, "who": "an ant"}\nSTATE {}', "who an ant …"),
        ('{"why": null}', '{"why": null}'),
        ("{ no JSON", "{ no JSON"),
        ("[1]", "[1]"),
        ("{" * 10_000, "{" * 300 + " [… 9,700 more]"),
    ],
)
def test_what_came_back_as_an_object_is_shown_by_its_fields(text: str, line: str) -> None:
    assert fields_in_a_line(text) == line


def test_what_is_missing_is_counted() -> None:
    assert in_a_line("a b\n" * 10_000, 7) == "a b a b [… 39,993 more]"
    many = json.dumps({f"f{n}": 1 for n in range(60)})
    assert fields_in_a_line(many, 1_000).endswith("f39 1 · 20 more fields")


def deep(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize("value", [deep(190), "x" * 10**7, {str(n): [n] * 9 for n in range(10**5)}])
def test_large_and_deep_values_fit_a_line(value: Any) -> None:
    assert len(value_in_a_line(value)) < 400


def test_an_action_is_named_with_its_arguments() -> None:
    assert call_in_a_line("move", {"to": "é"}) == 'move {"to": "é"}'
    assert call_in_a_line("sense", {}) == call_in_a_line("sense", None) == "sense"


def test_each_changed_field_is_shown_by_its_path() -> None:
    before = {"a": {"b": 1, "c": [1]}, "gone": "x", "flag": 1}
    after = {**merge_patch(before, {"a": {"b": 2}, "gone": None, "new": {"d": 4}}), "flag": True}
    assert changes(before, after) == (
        JsonDifference("a.b", 1, 2),
        JsonDifference("gone", "x", None),
        JsonDifference("flag", 1, True),
        JsonDifference("new", None, {"d": 4}),
    )


def test_many_and_deep_changes_are_bounded() -> None:
    assert len(changes({}, {str(n): n for n in range(10_000)})) == 200
    one: dict[str, Any] = {}
    other: dict[str, Any] = {"k": 1}
    for _ in range(180):
        one, other = {"k": one}, {"k": other}
    (change,) = changes(one, other)
    assert change.path.count("k") == 21
