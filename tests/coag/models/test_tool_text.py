"""Calls that were written as text: read where the whole text is calls, and never else."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.models.native import TextRelease
from coag.models.parsing import calls_in_text

NAMES = {"add", "dig_up", "say"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
CALL = st.tuples(st.sampled_from(sorted(NAMES)), st.dictionaries(st.text(), JSON, max_size=3))
CALLS = st.lists(CALL, min_size=1, max_size=4)
KEYS = st.sampled_from(["arguments", "parameters"])


def as_object(call: tuple[str, Any], key: str) -> dict[str, Any]:
    return {"name": call[0], key: call[1]}


def as_function(call: tuple[str, Any], key: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": as_object(call, key)}


def as_text_arguments(call: tuple[str, Any], key: str) -> dict[str, Any]:
    return {"name": call[0], key: json.dumps(call[1])}


FORMS = st.sampled_from([as_object, as_function, as_text_arguments])


def one_after_the_other(objects: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(one) for one in objects)


def with_commas(objects: list[dict[str, Any]]) -> str:
    return " , ".join(json.dumps(one, ensure_ascii=False) for one in objects)


def as_list(objects: list[dict[str, Any]]) -> str:
    return json.dumps(objects, indent=2)


def tagged(objects: list[dict[str, Any]]) -> str:
    return "\n".join(f"<tool_call>\n{json.dumps(one)}\n</tool_call>" for one in objects)


def tagged_otherwise(objects: list[dict[str, Any]]) -> str:
    return "".join(f"<function_call>{json.dumps(one)}</function_call>" for one in objects)


def in_one_tag(objects: list[dict[str, Any]]) -> str:
    return f"<tools>{json.dumps(objects)}</tools>"


def fenced(objects: list[dict[str, Any]]) -> str:
    return f"```json\n{as_list(objects)}\n```"


def doubled(objects: list[dict[str, Any]]) -> str:
    return f"{{{json.dumps(objects[0])}}}" if len(objects) == 1 else as_list(objects)


def fenced_tags(objects: list[dict[str, Any]]) -> str:
    return f"```\n{tagged(objects)}\n```"


WRITINGS = st.sampled_from(
    [
        one_after_the_other,
        with_commas,
        as_list,
        tagged,
        tagged_otherwise,
        in_one_tag,
        fenced,
        fenced_tags,
        doubled,
    ]
)


@given(CALLS, FORMS, KEYS, WRITINGS, st.sampled_from(["", " ", "\n\n"]))
def test_calls_are_read_however_they_are_written(
    calls: list[tuple[str, Any]], form: Any, key: str, writing: Any, blank: str
) -> None:
    if writing in (tagged, tagged_otherwise, in_one_tag, fenced_tags):
        calls = [(n, a) for n, a in calls if "</" not in json.dumps(a)] or [("add", {})]
    text = blank + writing([form(call, key) for call in calls]) + blank
    read = calls_in_text(text, NAMES)
    assert [(name, json.loads(arguments)) for name, arguments in read] == calls


@given(CALLS, WRITINGS, st.text(alphabet="abc .!", min_size=1).filter(str.strip))
def test_a_text_beside_calls_makes_it_a_text(
    calls: list[tuple[str, Any]], writing: Any, prose: str
) -> None:
    written = writing([as_object(call, "arguments") for call in calls])
    assert calls_in_text(f"{prose} {written}", NAMES) == ()
    assert calls_in_text(f"{written} {prose}", NAMES) == ()


@given(CALLS, WRITINGS)
def test_one_unknown_name_makes_all_of_it_an_answer(
    calls: list[tuple[str, Any]], writing: Any
) -> None:
    ghost: tuple[str, Any] = ("ghost", {})
    objects = [as_object(call, "arguments") for call in [*calls, ghost]]
    assert calls_in_text(writing(objects), NAMES) == ()


@given(JSON)
def test_json_that_is_no_call_is_an_answer(value: Any) -> None:
    if not (isinstance(value, dict) and "name" in value):
        assert calls_in_text(json.dumps(value), NAMES) == ()


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    for begun in ("", "{", "[", "<", "```", "<tool_call>", '{"name": "add", "arguments": '):
        assert isinstance(calls_in_text(begun + text, NAMES), tuple)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "<tool_call></tool_call>",
        "``````",
        "```json```",
        '{"name": "add", "arguments": {}, "answer": 42}',
        '{"name": ["add"], "arguments": {}}',
        "[]",
        "{}",
        "[[]]",
        '<tool_call>{"name": "add"}</tools>',
    ],
)
def test_these_are_no_calls(text: str) -> None:
    assert calls_in_text(text, NAMES) == ()


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 4_000,
        "<tool_call>" * 2_000 + "</tool_call>" * 2_000,
        "<tool_call></tool_call>" * 2_000,
        "```" + " " * 45_000 + "x",
        "```" * 15_000,
        "{}" * 22_000,
        '{"a":1}' * 6_000,
        "[" * 45_000,
        '{"a":' * 9_000,
        "{" + "," * 45_000 + "}",
        "<" + " " * 45_000,
    ],
)
def test_what_a_model_repeats_without_end_is_soon_read(text: str) -> None:
    begun = time.thread_time()
    assert calls_in_text(text, NAMES) == ()
    assert time.thread_time() - begun < 5


# ---- showing a text while it is written ----


@given(st.text(), st.lists(st.integers(1, 9), max_size=20))
def test_a_text_is_released_whole_and_in_order(text: str, sizes: list[int]) -> None:
    pieces: list[str] = []
    release = TextRelease(pieces.append, NAMES)
    rest = text
    for size in sizes:
        release.take(rest[:size])
        rest = rest[size:]
    release.take(rest)
    release.end(text)
    assert "".join(pieces) == text


@given(CALLS, WRITINGS, st.integers(1, 9))
def test_of_a_call_nothing_is_released(
    calls: list[tuple[str, Any]], writing: Any, size: int
) -> None:
    calls = [(name, {}) for name, _ in calls]
    text = writing([as_object(call, "arguments") for call in calls])
    pieces: list[str] = []
    release = TextRelease(pieces.append, NAMES)
    for begin in range(0, len(text), size):
        release.take(text[begin : begin + size])
    release.end(text)
    assert pieces == []
