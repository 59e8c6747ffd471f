from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.awareness import Mark, content_words, says, score

RIGHT = (("learn Python",), ("build a web scraper|scraper",))


def test_the_score_is_f1_over_the_items() -> None:
    found = score([("I want to learn Python",), ("and to cook",), ("and to sleep",)], RIGHT)
    assert found.recall == 0.5
    assert found.value == pytest.approx(2 * 0.5 * (1 / 3) / (0.5 + 1 / 3))
    assert score([("learning Python, building scrapers",)], RIGHT).value == 1


def test_claiming_nothing_is_right_where_nothing_is_to_be_told_and_any_claim_is_wrong() -> None:
    assert score([], ()).value == 1
    assert score([("something",)], ()).value == 0
    assert score([], RIGHT).value == 0


def test_no_answer_is_worth_nothing_even_where_nothing_is_to_be_told() -> None:
    assert score(None, ()).value == 0
    assert score(None, RIGHT).recall == 0


def test_claims_beyond_a_sample_cost_nothing() -> None:
    claims = [("learn Python",), ("build a scraper",), ("cook",)]
    assert score(claims, RIGHT, sampled=True).value == 1
    assert score(claims, RIGHT).value < 1


def test_pairs_count_in_their_order_only() -> None:
    right = (("Python", "cooking"),)
    assert score([("about Python", "then cooking")], right).value == 1
    assert score([("cooking", "Python")], right).value == 0
    assert score([("Python and cooking",)], right).value == 0
    assert score([("Python", "a nap", "cooking")], right).value == 1


@pytest.mark.parametrize(
    ("text", "phrase", "there"),
    [
        ("She is learning Python.", "learn Python", True),
        ("Errors in BeautifulSoup", "BeautifulSoup error", True),
        ("Python", "learn Python", False),
        ("the frustration grows", "frustrated", True),
        ("asked about pasta", "make pasta carbonara", False),
        ("a good carbonara with pasta", "make pasta carbonara", True),
        ("the libraries", "library", True),
        ("anything", "|", False),
    ],
)
def test_a_phrase_is_said_where_its_words_are_whatever_their_endings(
    text: str, phrase: str, there: bool
) -> None:
    assert says(text, phrase) is there


def test_of_words_that_say_little_all_count_where_there_are_no_others() -> None:
    assert content_words("to do") == {"to", "do"}
    assert content_words("to learn") == {"learn"}


def test_marks_are_those_of_the_paper() -> None:
    assert [Mark.of(value).value for value in (0.7, 0.69, 0.3, 0.29)] == ["Y", "~", "~", "-"]


@given(
    st.lists(st.tuples(st.text(max_size=20)), max_size=5),
    st.lists(st.tuples(st.text(min_size=1, max_size=20)), max_size=5),
    st.booleans(),
)
def test_scores_are_shares(
    claims: list[tuple[str]], right: list[tuple[str]], sampled: bool
) -> None:
    found = score(claims, right, sampled=sampled)
    assert 0 <= found.value <= 1
    assert 0 <= found.recall <= 1
