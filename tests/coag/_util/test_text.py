"""Making foreign text safe for a terminal."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag._util.text import (
    cleaned,
    clip,
    ellipsis,
    escaped_json,
    one_line,
    visible,
    without_unseen,
)

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
    assert len(line) <= limit + len(f" [… {len(text):,} more]")


def test_no_character_that_is_not_seen_is_left() -> None:
    """Of formats, only the Arabic number signs and hieroglyphs with a shape of their own stay."""
    stays = set(
        map(chr, [9, 10, *range(0x600, 0x606), 0x6DD, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD])
    )
    stays |= set(map(chr, range(0x13430, 0x13440)))
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    shown = [c for c in map(chr, range(sys.maxunicode + 1)) if visible(c) == c and c not in stays]
    assert [c for c in shown if unicodedata.category(c) in hidden] == []
    assert not {"\u115f", "\u3164", "\ufe0f", "\U000e0100"} & set(shown)


@given(st.text(st.characters(exclude_categories=["C", "Z", "M", "Lo"]), max_size=150))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text == without_unseen(text)


def test_what_is_not_seen_is_written_out_or_taken_out() -> None:
    text = "a\x1b[2J\u202eb\u200b\ufeff\U000e0041\ud800\xa0c\n\t"
    assert visible(text) == "a\\x1b[2J\\u202eb\\u200b\\ufeff\\U000e0041\\ud800\\xa0c\n\t"
    assert without_unseen(text) == "a[2Jb c\n\t"


def test_joiners_stay_where_a_script_needs_them_and_only_if_asked_for() -> None:
    persian, emoji, hidden = (
        "\u0645\u06cc\u200c\u062e",
        "\U0001f469\u200d\U0001f4bb",
        "de\u200dlete",
    )
    assert visible(persian, joined=True) == persian
    assert visible(emoji, joined=True) == emoji
    assert visible(hidden, joined=True) == visible(hidden) == "de\\u200dlete"
    assert visible(persian) == "\u0645\u06cc\\u200c\u062e"


def test_a_cut_says_how_much_is_missing() -> None:
    assert visible("abcdef", 4) == clip("abcdef", 4) == "abcd [… 2 more]"
    assert clip("a" * 2_005, 5) == "aaaaa [… 2,000 more]"
    assert clip("abc", 3) == clip("abc", None) == ellipsis("abc", 3) == "abc"
    assert [ellipsis("abcdef", limit) for limit in (4, 1, 0)] == ["abc…", "…", "…"]
