"""Making foreign text safe for a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.schema import cleaned, escaped_json, one_line

STEERING = set(map(chr, [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)])) | set(
    "\u200e\u200f\u202a\u202e\u2066\u2069"
)
TEXTS = st.text() | st.text(alphabet="\x1b\x9b[]0;m\x07\\Ax\n\u202e")


@given(TEXTS)
def test_no_character_that_steers_a_terminal_is_left(text: str) -> None:
    assert not STEERING & set(cleaned(text))


@given(st.text(alphabet="aé€😀 \t\n[]/;:{}"))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07red",
        "\x1b]8;;http://x\x1b\\red\x1b]8;;\x1b\\",
        "\x9b1mred",
        "\x1b(Bred",
    ],
)
def test_a_whole_escape_goes_with_its_letters(text: str) -> None:
    assert cleaned(text) == "red"


@given(TEXTS)
def test_json_keeps_its_value_without_steering(text: str) -> None:
    safe = escaped_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(safe) == text
    assert not STEERING & set(safe)


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_line_of_bounded_length(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert len(line) <= limit + len(f" [… {len(text)} more]")
