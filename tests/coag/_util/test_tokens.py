"""Estimating and cutting by tokens."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from coag._util.text import cut_to_tokens, estimate_tokens

ROOM_FOR_A_NOTE = 10
"""Tokens; no note of what was cut is longer."""


@given(text=st.text(), budget=st.integers(0, 200))
def test_a_cut_text_keeps_to_its_budget(text: str, budget: int) -> None:
    assert estimate_tokens(cut_to_tokens(text * 20, budget)) <= budget


@given(text=st.text(), budget=st.integers(0, 200))
def test_a_text_within_its_budget_is_left_alone(text: str, budget: int) -> None:
    assume(estimate_tokens(text) <= budget)
    assert cut_to_tokens(text, budget) == text


@given(text=st.text(min_size=1, alphabet="aé€😀"), budget=st.integers(ROOM_FOR_A_NOTE, 30))
def test_what_is_kept_is_the_beginning(text: str, budget: int) -> None:
    whole = text * 200
    kept, note, _ = cut_to_tokens(whole, budget).partition(" [… ")
    assert note
    assert whole.startswith(kept)


@given(left=st.text(), right=st.text())
def test_an_estimate_grows_with_the_text(left: str, right: str) -> None:
    assert estimate_tokens(left) <= estimate_tokens(left + right)


def test_a_text_counts_a_token_for_four_bytes_begun() -> None:
    assert [estimate_tokens("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_a_broken_character_can_be_counted_and_cut() -> None:
    assert estimate_tokens("\udc80" * 100) == 75
    assert estimate_tokens(cut_to_tokens("\udc80" * 100, 20)) <= 20
