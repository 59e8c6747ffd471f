from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import remembered

from coag.schema import MemoryKind
from coag.store.lexicon import LexicalHit, Lexicon, leaf_of, query_words, shelf_of
from coag.store.lexicon.lexicon import CommonWords

ALICE = shelf_of(MemoryKind.EPISODIC, "alice")
MANY = 450
"""More records than are looked at for one word."""


def filled(many: int = MANY) -> Lexicon:
    """An index in which "lamp" is common and each number stands once."""
    lexicon = Lexicon()
    records = (remembered(f"lamp {n} burns") for n in range(many))
    lexicon.put([leaf_of(record, {}) for record in records])
    return lexicon


def asked(lexicon: Lexicon, text: str) -> list[LexicalHit]:
    return lexicon.matches(query_words(text), [ALICE], 5)


def test_a_question_is_answered_alike_whether_its_common_words_are_remembered_or_not() -> None:
    lexicon = filled()

    first = asked(lexicon, "lamp 17")

    assert first[0].entry.id == remembered("lamp 17 burns").id
    assert asked(lexicon, "lamp 17") == first
    assert asked(filled(), "lamp 17") == first


def test_common_words_alone_find_the_newest_again_and_again() -> None:
    lexicon = filled()

    first = asked(lexicon, "lamp burns")

    assert len(first) == 5
    assert asked(lexicon, "lamp burns") == first


def test_a_word_that_became_rare_is_looked_up_anew() -> None:
    lexicon = filled()
    asked(lexicon, "lamp")
    lexicon.drop([remembered(f"lamp {n} burns").id for n in range(1, MANY)])

    (only,) = asked(lexicon, "lamp")

    assert only.entry.id == remembered("lamp 0 burns").id
    assert only.share == 1.0


@given(st.integers(1, 10_000), st.integers(0, 20_000))
def test_what_is_remembered_holds_while_the_index_stays_about_as_large(
    before: int, after: int
) -> None:
    words = CommonWords()
    words.hold_for(before)
    words.keep("lamp", [ALICE], 500)

    words.hold_for(after)

    held = words.among(["lamp", "fig"], [ALICE])
    assert held == ({"lamp": 500} if abs(after - before) <= 0.02 * before else {})
    assert words.among(["lamp"], []) == {}
