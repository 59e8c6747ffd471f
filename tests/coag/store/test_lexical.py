"""The index of words: what it finds, what it keeps of each record, and what a failure leaves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kits.remembered import remembered

from coag.schema import Event, Fact, MemoryKind, Record
from coag.store.lexical import (
    IndexedRecord,
    LexicalHit,
    Lexicon,
    LexiconError,
    indexed,
    indexed_text,
    query_words,
    same_entry,
    shelf_of,
    without_names,
)

ALICE = shelf_of(MemoryKind.EPISODIC, "alice")


def taken(record: Record) -> IndexedRecord:
    """What the lexicon takes in of a record."""
    return indexed(record, {"scope": record.scope})


def found(lexicon: Lexicon, text: str, scope: str = "alice", limit: int = 10) -> list[str]:
    shelves = [shelf_of(MemoryKind.EPISODIC, scope)]
    return [hit.entry.id for hit in lexicon.matches(query_words(text), shelves, limit)]


@pytest.mark.parametrize("order", [2**80, -(2**80)])
def test_place_beyond_all_numbers_does_no_harm(order: int) -> None:
    lexicon = Lexicon()
    event = remembered("far away", event=Event(episode="e", order=order))
    lexicon.put([taken(event)])
    assert found(lexicon, "far") == [event.id]
    assert set(lexicon.around(lexicon.entries([event.id]).values(), 2)) == {event.id}


def test_words_that_are_in_any_text_are_left_out_of_a_query() -> None:
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


def test_episodes_of_other_scopes_and_kinds_are_others() -> None:
    def episode(**what: Any) -> int:
        event = Event(episode="e")
        return indexed(remembered("x", event=event, **what), {})[0].episode

    fact = {"kind": MemoryKind.SEMANTIC}
    assert len({episode(), episode(scope="bob"), episode(**fact)}) == 3
    assert indexed(remembered("x"), {})[0].episode == 0
    assert indexed(remembered("x", run="r"), {})[0].episode != 0
    assert indexed(remembered("x", run="r", kind=MemoryKind.SEMANTIC), {})[0].episode == 0


MANY = 450
"""More records than are looked at for one word."""


def filled(many: int = MANY) -> Lexicon:
    """An index in which "lamp" is common and each number occurs once."""
    lexicon = Lexicon()
    records = (remembered(f"lamp {n} burns") for n in range(many))
    lexicon.put([indexed(record, {}) for record in records])
    return lexicon


def asked(lexicon: Lexicon, text: str) -> list[LexicalHit]:
    return lexicon.matches(query_words(text), [ALICE], 5)


def test_a_question_is_answered_alike_whether_its_common_words_are_remembered_or_not() -> None:
    lexicon = filled()
    first = asked(lexicon, "lamp 17")
    assert first[0].entry.id == remembered("lamp 17 burns").id
    assert asked(lexicon, "lamp 17") == first
    assert asked(filled(), "lamp 17") == first
    oldest = remembered("lamp 0 burns").id  # it has the common word, too
    *_, besides = lexicon.matches(query_words("lamp 17"), [ALICE], 5, [oldest])
    assert besides.entry.id == oldest
    assert 0 < besides.share < first[0].share


def test_a_word_that_became_rare_is_looked_up_again() -> None:
    lexicon = filled()
    asked(lexicon, "lamp")
    lexicon.drop([remembered(f"lamp {n} burns").id for n in range(1, MANY)])
    (only,) = asked(lexicon, "lamp")
    assert only.entry.id == remembered("lamp 0 burns").id
    assert only.share == 1.0


def test_folder_in_the_place_of_the_file_is_an_error_but_not_to_be_thrown_away(
    tmp_path: Path,
) -> None:
    with pytest.raises(LexiconError, match="unable to open") as caught:
        Lexicon(tmp_path)
    assert not caught.value.broken


WORDS = ("apple", "pear", "plum", "fig")
RECORDS = st.builds(
    remembered,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    kind=st.sampled_from(MemoryKind),
    scope=st.sampled_from(["alice", "bob"]),
    source=st.sampled_from(["ann", "ben"]),
    run=st.sampled_from(["", "r1", "r2"]),
    event=st.none() | st.builds(Event, episode=st.just("e"), order=st.none() | st.integers(0, 5)),
)
SOME_RECORDS = st.lists(RECORDS, max_size=4)


class LexiconAgainstAModel(RuleBasedStateMachine):
    """An index on disk, and what it should know."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(prefix="coag-words-"))
        self.records: dict[str, Record] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.begun: dict[str, None] = {}

    @initialize()
    def open(self) -> None:
        self.lexicon = Lexicon(self.folder / "words")

    @rule(records=SOME_RECORDS)
    def put(self, records: list[Record]) -> None:
        self.lexicon.put([taken(record) for record in records])
        places = set(self.places.values())
        for record in {record.id: record for record in records}.values():  # the last of each counts
            self.records[record.id] = record
            self._place(record, places)
            self.begun.pop(record.id, None)

    def _place(self, record: Record, places: set[tuple[int, int]]) -> None:
        """The place after all records of its episode, those that leave it now included."""
        entry = taken(record).entry
        place = entry.place
        known = self.places.get(record.id)
        if place < 0 and known is not None and known[0] == entry.episode:
            place = known[1]
        elif place < 0:
            place = max((p for episode, p in places if episode == entry.episode), default=-1) + 1
        self.places[record.id] = (entry.episode, place)
        places.add((entry.episode, place))

    @rule(records=SOME_RECORDS)
    def drop(self, records: list[Record]) -> None:
        ids = [record.id for record in records]
        self.lexicon.drop(ids)
        for one in ids:
            self.records.pop(one, None)
            self.places.pop(one, None)
            self.begun.pop(one, None)

    @rule(records=SOME_RECORDS)
    def begin(self, records: list[Record]) -> None:
        ids = [record.id for record in records]
        self.lexicon.begin(ids)
        self.begun.update(dict.fromkeys(ids))

    @rule(records=SOME_RECORDS)
    def break_off(self, records: list[Record]) -> None:
        def entries() -> Iterator[IndexedRecord]:
            yield from map(taken, records)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.lexicon.put(entries())

    @rule()
    def reopen(self) -> None:
        self.lexicon.close()
        self.open()

    @invariant()
    def it_equals_the_model(self) -> None:
        assert self.lexicon.count() == len(self.records)
        assert self.lexicon.pending() == list(self.begun)
        entries = self.lexicon.entries([*self.records, "unknown"])
        assert entries.keys() == self.records.keys()
        assert set(self.lexicon.other_than(list(self.records)[1:])) == set(list(self.records)[:1])
        for one, record in self.records.items():
            assert same_entry(taken(record)[0], entries[one])
            assert (entries[one].episode, entries[one].place) == self.places[one]

    @invariant()
    def words_find_exactly_the_records_that_have_them(self) -> None:
        for kind in MemoryKind:
            shelf = shelf_of(kind, "alice")
            for word in WORDS:
                hits = self.lexicon.matches((word,), [shelf], 1000)
                assert {hit.entry.id for hit in hits} == {
                    one
                    for one, record in self.records.items()
                    if (record.kind, record.scope) == (kind, "alice") and word in record.text
                }

    @invariant()
    def neighbours_are_those_of_the_episode_within_reach(self) -> None:
        entries = self.lexicon.entries(list(self.records))
        for entry in list(entries.values())[:4]:
            around = self.lexicon.around([entry], 1)
            assert around.keys() == {
                one
                for one, (episode, place) in self.places.items()
                if entry.episode and episode == entry.episode and abs(place - entry.place) <= 1
            }

    def teardown(self) -> None:
        self.lexicon.close()
        shutil.rmtree(self.folder)


TestLexiconAgainstAModel = LexiconAgainstAModel.TestCase
TestLexiconAgainstAModel.settings = settings(deadline=None, max_examples=15, stateful_step_count=15)
