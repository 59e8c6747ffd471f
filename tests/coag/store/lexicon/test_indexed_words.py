from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import remembered

from coag.schema import Event, Fact, MemoryKind, Trust
from coag.store import folded
from coag.store.lexicon import indexed_text, leaf_of, query_words, shelf_of, without_names


def test_words_that_stand_in_any_text_are_left_out_of_a_query() -> None:
    assert query_words("What is the name of Ann's dog, and where did it run?") == (
        "name",
        "ann",
        "dog",
        "run",
    )


def test_each_word_of_a_query_counts_once_and_their_number_is_bounded() -> None:
    assert query_words("Lamp, lamp LAMP_lamp") == ("lamp",)
    assert len(query_words(" ".join(f"word{n}" for n in range(1000)))) == 64
    assert query_words("x" * 65) == query_words("") == ()


@given(st.text())
def test_words_of_a_query_are_letters_and_digits_only(text: str) -> None:
    words = query_words(text)

    assert all(word.isalnum() for word in words)
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("text", "names", "left"),
    [
        ("What did Bob say?", ["Bob"], "What did say?"),
        ("bob's and BOB\u2019s hat", ["Bob"], "and hat"),
        ("Bobby met Ann-Bob", ["Bob"], "Bobby met Ann-"),
        ("Dr. (B) said", ["Dr. (B)"], "said"),
        ("nobody", [], "nobody"),
    ],
)
def test_names_are_taken_out_of_a_query(text: str, names: list[str], left: str) -> None:
    assert " ".join(without_names(text, names).split()) == left


def test_a_record_is_found_by_its_text_its_metadata_its_date_and_its_fact() -> None:
    record = remembered(
        "It fell.",
        metadata={"caption": "a lamp", "watts": 40, "lit": True},
        event=Event(
            at=datetime(2024, 5, 7, tzinfo=UTC),
            situation="dusk",
            action="push",
            outcome="shards",
            place="hall",
        ),
        fact=Fact(subject="lamp", value="broken"),
    )

    assert indexed_text(record) == "It fell. a lamp dusk push shards hall 7 May 2024 lamp broken"


def test_an_entry_tells_what_ranking_needs() -> None:
    asked = remembered("Is it lit?  ", trust=Trust.UNTRUSTED, event=Event(episode="e", order=3))
    entry, text, *_ = leaf_of(asked, {"scope": "alice"})

    assert (entry.asks, entry.trusted, entry.length, entry.place) == (True, False, 3, 3)
    assert text == "Is it lit?  "
    assert entry.flat() == {"scope": "alice"}


def test_episodes_of_other_scopes_and_kinds_are_others() -> None:
    def episode(**what: Any) -> int:
        event = Event(episode="e")
        return leaf_of(remembered("x", event=event, **what), {})[0].episode

    fact = {"kind": MemoryKind.SEMANTIC}
    assert len({episode(), episode(scope="bob"), episode(**fact)}) == 3
    assert leaf_of(remembered("x"), {})[0].episode == 0
    assert leaf_of(remembered("x", run="r"), {})[0].episode != 0
    assert leaf_of(remembered("x", run="r", kind=MemoryKind.SEMANTIC), {})[0].episode == 0


def test_shelves_tell_kinds_and_scopes_apart() -> None:
    shelves = {shelf_of(kind, scope) for kind in MemoryKind for scope in ("a", "b", "")}

    assert len(shelves) == 6
    assert all(shelf.isalnum() and shelf[0] in "es" for shelf in shelves)


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert folded(folded(text)) == folded(text) == folded(f" {text}\t")
