"""Finding the answer in whatever a model wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from coag.models.parsing import Parsed, Problem, json_objects, parse_answer

AnyObject = RootModel[dict[str, Any]]

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, min_size=1, max_size=4)
prose = st.text(
    alphabet=st.characters(exclude_characters="{}<", exclude_categories=["Cs"]), max_size=60
)


class Point(BaseModel):
    x: int
    y: int = 0


@settings(max_examples=60, deadline=None)
@given(value=objects, before=prose, after=prose, indent=st.sampled_from([None, 2]))
def test_object_in_prose_is_found_whatever_it_holds(
    value: dict[str, Any], before: str, after: str, indent: int | None
) -> None:
    text = before + json.dumps(value, indent=indent) + after
    assert list(json_objects(text)) == [value]


@settings(max_examples=60, deadline=None)
@given(value=objects, before=prose, fence=st.sampled_from(["```", "```json", "~~~"]))
def test_object_in_a_fence_is_found(value: dict[str, Any], before: str, fence: str) -> None:
    parsed = parse_answer(f"{before}\n{fence}\n{json.dumps(value)}\n{fence[:3]}\n", AnyObject)
    assert isinstance(parsed, Parsed)
    assert parsed.value.root == value


@settings(deadline=None)
@given(text=st.text())
def test_any_text_gives_a_value_or_a_problem_and_never_an_error(text: str) -> None:
    assert isinstance(parse_answer(text, Point), Parsed | Problem)


@settings(deadline=None)
@given(value=st.builds(Point), cut=st.integers(min_value=1, max_value=30))
def test_cut_off_answer_is_a_problem(value: Point, cut: int) -> None:
    text = value.model_dump_json()
    parsed = parse_answer(text[: -min(cut, len(text))], Point, truncated=True)
    assert isinstance(parsed, Problem)
    assert "shorter" in parsed.text


def test_last_fitting_object_counts() -> None:
    parsed = parse_answer('First {"x": 1}, no: {"x": 2}. {"unrelated": true}', Point)
    assert parsed == Parsed(Point(x=2), repaired=True)


@pytest.mark.parametrize("value", [{"<think>": 1}, {"a": "so I <think> it is", "b": {}}])
def test_a_word_of_thinking_within_an_object_is_a_part_of_it(value: dict[str, Any]) -> None:
    parsed = parse_answer(f"Here:\n{json.dumps(value)}", AnyObject)
    assert isinstance(parsed, Parsed)
    assert parsed.value.root == value


def test_drafts_within_thinking_do_not_count() -> None:
    parsed = parse_answer('<think>{"x": 1} or so</think>\nDone: {"x": "oops"}', Point)
    assert isinstance(parsed, Problem)


def test_json_within_a_json_string_is_unpacked() -> None:
    parsed = parse_answer(json.dumps('{"x": 3}'), Point)
    assert parsed == Parsed(Point(x=3), repaired=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"x":' * 19_000,
        "{" * 20_000 + "}" * 20_000,
        '{"x":' * 90 + "[" * 9,
        '{"x": ' + "9" * 5_000 + "}",
        '{"x": ' + "[" * 50_000,
        '{"x": 1' * 20_000,
    ],
    ids=["nested objects", "braces", "some braces", "huge number", "nested lists", "too long"],
)
def test_hostile_answers_are_problems_and_not_errors(text: str) -> None:
    assert isinstance(parse_answer(text, Point), Problem)


def test_problem_names_place_and_value_and_stays_short() -> None:
    parsed = parse_answer(json.dumps({"x": "far " * 1_000}), Point)
    assert isinstance(parsed, Problem)
    assert parsed.text.startswith("x: ")
    assert "far far" in parsed.text
    assert len(parsed.text) < 300
