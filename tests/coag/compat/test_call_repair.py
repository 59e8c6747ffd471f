"""Arguments of tool calls as models write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.compat import repair_arguments

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


def is_part(part: Any, whole: Any) -> bool:
    """True if an object has nothing but what the whole has, each value as it was."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)  # pyright: ignore[reportUnknownVariableType] - JSON
    return bool(part == whole)


@pytest.mark.parametrize(
    "written",
    [
        '```json\n{"city": "Rome"}\n```',
        '```\n{"city": "Rome"}',
        'I call it with {"city": "Rome"}.',
        '"{\\"city\\": \\"Rome\\"}"',
        "{'city': 'Rome'}",
        '{"city": "Rome",}',
        '{city: "Rome"}',
        '{"city": "Rome"',
        '```json\n{"city": "Rome"\n```',
        {"city": "Rome"},
    ],
)
def test_object_is_found_in_what_models_write(written: object) -> None:
    repaired = repair_arguments(written)
    assert json.loads(repaired.text) == {"city": "Rome"}


@pytest.mark.parametrize("written", [None, "", "  ", "null"])
def test_nothing_is_no_arguments(written: object) -> None:
    assert repair_arguments(written).text == "{}"


@pytest.mark.parametrize(
    "written",
    [
        "[1, 2]",
        '"Rome"',
        "3",
        "true",
        ["Rome"],
        '[{"city": "Rome"}]',
        "[" * 100_000,
        "1" * 5_000,
        object(),
        '{"city": "Ro',
        '{"count": 10',
        '{"cities": ["Rome"',
        '{"city": "Rome", "unit"',
        '{"city": "Rome",',
        '{"outer": {"city": "Rome"}, "unit": "cel',
        '{"city": "Rome"}{"city": "Oslo"}',
        "Rome, please",
        "{",
        "{,}",
    ],
)
def test_what_cannot_be_read_for_sure_stays_an_error(written: object) -> None:
    repaired = repair_arguments(written)
    assert repaired.fault
    with pytest.raises(json.JSONDecodeError):
        json.loads(repaired.text)


def test_no_bracket_is_added_where_the_answer_was_cut_off() -> None:
    repaired = repair_arguments('{"city": "Rome"', truncated=True)
    with pytest.raises(json.JSONDecodeError):
        json.loads(repaired.text)


@given(OBJECTS, st.booleans())
def test_an_object_stays_as_it_was_written(value: dict[str, Any], truncated: bool) -> None:
    written = json.dumps(value)
    repaired = repair_arguments(written, truncated=truncated)
    assert (repaired.text, repaired.fault) == (written, None)


@given(st.text() | VALUES.map(json.dumps) | VALUES, st.booleans())
def test_result_is_an_object_or_what_every_parser_refuses(written: object, truncated: bool) -> None:
    text = repair_arguments(written, truncated=truncated).text
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return
    assert isinstance(value, dict)


@given(OBJECTS, st.data())
def test_cut_off_object_brings_no_value_that_was_not_meant(
    value: dict[str, Any], data: st.DataObject
) -> None:
    written = json.dumps(value)
    cut = written[: data.draw(st.integers(1, len(written)))]
    text = repair_arguments(cut).text
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return
    assert is_part(found, value)
