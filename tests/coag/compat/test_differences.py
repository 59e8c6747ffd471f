"""Where two JSON values differ first, told for a person."""

from __future__ import annotations

from typing import Any

import pytest

from coag.compat.tape import first_difference


@pytest.mark.parametrize(
    ("recorded", "now", "where", "was", "is_now"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, "b", "nothing", "2"),
        ({"a": 1, "b": 2}, {"a": 1}, "b", "2", "nothing"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b", "1", "2"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]", "2", "3"),
        ({"a": "same"}, {"a": "same and more"}, "a", "'same'", "'same and more'"),
        ({"a": "same and more"}, {"a": "same"}, "a", "'same and more'", "'same'"),
    ],
)
def test_the_first_field_that_differs_is_told_with_both_values(
    recorded: Any, now: Any, where: str, was: str, is_now: str
) -> None:
    found = first_difference(recorded, now)
    assert found.where == where
    assert found.recorded.strip("\"'") == was.strip("\"'")
    assert found.now.strip("\"'") == is_now.strip("\"'")


def test_of_long_texts_the_place_where_they_part_is_shown() -> None:
    found = first_difference({"a": "x" * 500 + "left"}, {"a": "x" * 500 + "right"})
    assert "left" in found.recorded
    assert "right" in found.now
    assert len(found.recorded) < 200


def test_what_is_alike_is_told_as_it_is() -> None:
    found = first_difference({"a": 1}, {"a": 1}, "arguments")
    assert (found.where, found.recorded) == ("arguments", found.now)
