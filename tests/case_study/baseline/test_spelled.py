"""Calls that a model spells out in its text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.baseline.agent import spelled_call

NAMES = ("push", "wait")


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('I push.\n```json\n{"name": "push", "arguments": {"button": "red"}}\n```', "push", "red"),
        ('{"function": {"name": "push", "parameters": {"button": "blue"}}}', "push", "blue"),
        ('Utilities: 5 and 3.\nAction: push(button="green")\nAction: wait()', "push", "green"),
        ("**Action:** push(button='green')", "push", "green"),
    ],
)
def test_the_first_call_is_read(text: str, name: str, arguments: str) -> None:
    spelled = spelled_call(text, NAMES)
    assert spelled is not None
    assert (spelled.name, json.loads(spelled.arguments)) == (name, {"button": arguments})
    assert arguments not in spelled.before


def test_a_call_without_arguments_is_read() -> None:
    assert spelled_call("Action: wait()", NAMES) == ("wait", "{}", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I have pushed the button.",
        "I could push(button='red') or wait().",
        "Action: fly(to='the moon')",
        "Action: push('red')",
        "Action: push(button=open('file'))",
        '{"name": "fly", "arguments": {}}',
        '{"name": "push", "arguments": ["red"]}',
        '{"button": "red"}',
    ],
)
def test_what_is_no_call_of_a_tool_is_left_a_text(text: str) -> None:
    assert spelled_call(text, NAMES) is None


@given(st.text())
def test_any_text_is_read_to_its_end(text: str) -> None:
    spelled = spelled_call(text, NAMES)
    assert spelled is None or spelled.name in NAMES
