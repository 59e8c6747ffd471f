from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kits.remembered import remembered

from coag.schema import Event, MemoryKind, Record
from coag.store.lexicon import (
    Leaf,
    Lexicon,
    LexiconError,
    leaf_of,
    query_words,
    same_entry,
    shelf_of,
    throw_away,
)

ALICE = shelf_of(MemoryKind.EPISODIC, "alice")


def taken(record: Record) -> Leaf:
    """What the lexicon takes in of a record."""
    return leaf_of(record, {"scope": record.scope})


def found(lexicon: Lexicon, text: str, scope: str = "alice", limit: int = 10) -> list[str]:
    shelves = [shelf_of(MemoryKind.EPISODIC, scope)]
    return [hit.entry.id for hit in lexicon.matches(query_words(text), shelves, limit)]


def test_rare_words_count_most_and_shares_stay_within_one() -> None:
    lexicon = Lexicon()
    common = [remembered(f"the lamp number {n}") for n in range(10)]
    rare = remembered("the lamp by the aquarium")
    lexicon.put(map(taken, [*common, rare]))

    hits = lexicon.matches(query_words("aquarium lamp"), [ALICE], 5)

    assert hits[0].entry.id == rare.id
    assert len(hits) == 5
    assert 1.0 >= hits[0].share > 2 * hits[1].share >= 0.0


def test_words_are_found_whatever_their_ending_or_accent() -> None:
    lexicon = Lexicon()
    record = remembered("She visited the café yesterday")
    lexicon.put([taken(record)])

    assert found(lexicon, "visiting a Cafe") == [record.id]


def test_nothing_is_found_on_other_shelves_or_for_unknown_words() -> None:
    lexicon = Lexicon()
    lexicon.put([taken(remembered("the lamp"))])

    assert found(lexicon, "lamp", scope="bob") == found(lexicon, "aquarium") == []
    assert found(lexicon, "the of !?") == []
    assert lexicon.matches(("lamp",), [], 5) == []


@pytest.mark.parametrize("query", ['lamp" OR "x', "lamp NEAR(", "shelf : lamp", "lamp*", "-lamp"])
def test_query_is_never_read_as_a_command(query: str) -> None:
    lexicon = Lexicon()
    record = remembered("the lamp")
    lexicon.put([taken(record)])

    assert found(lexicon, query) == [record.id]


def test_many_shelves_can_be_asked_at_once() -> None:
    lexicon = Lexicon()
    records = [remembered("the lamp", scope=f"user {n}") for n in range(300)]
    lexicon.put(map(taken, records))

    hits = lexicon.matches(("lamp",), lexicon.shelves(MemoryKind.EPISODIC), 2000)

    assert {hit.entry.id for hit in hits} == {record.id for record in records}


def test_sources_are_named_only_where_a_shelf_has_several() -> None:
    lexicon = Lexicon()
    lexicon.put([taken(remembered("one", source="Maria Gomez"))])
    words = query_words("What did Maria Gomez say to Bob?")
    assert lexicon.sources_named([ALICE], words) == []

    lexicon.put([taken(remembered("two", source="Bob")), taken(remembered("3", source="Ann"))])
    assert set(lexicon.sources_named([ALICE], words)) == {"Maria Gomez", "Bob"}
    assert lexicon.sources_named([ALICE], query_words("Maria said so")) == []

    lexicon.drop([remembered("two").id, remembered("3").id])
    assert lexicon.sources_named([ALICE], words) == []


def test_record_of_an_episode_keeps_its_place_when_it_is_taken_in_again() -> None:
    lexicon = Lexicon()
    events = [remembered(text, run="r") for text in ("first", "second", "third")]
    lexicon.put(map(taken, events))
    lexicon.put([taken(events[0].model_copy(update={"type": "changed"}))])

    places = {one: entry.place for one, entry in lexicon.entries([e.id for e in events]).items()}

    assert places == {event.id: place for place, event in enumerate(events)}


def test_record_that_moves_to_another_episode_goes_to_its_end() -> None:
    lexicon = Lexicon()
    there = [remembered(f"there {n}", run="there") for n in range(3)]
    here = remembered("here", run="here")
    lexicon.put(map(taken, [here, *there]))

    lexicon.put([taken(here.model_copy(update={"provenance": there[0].provenance}))])

    assert lexicon.entries([here.id])[here.id].place == 3


def test_place_that_a_record_names_counts_for_those_that_follow() -> None:
    lexicon = Lexicon()
    numbered = remembered("named", event=Event(episode="e", order=7))
    later = [remembered(text, event=Event(episode="e")) for text in ("a", "b")]
    lexicon.put(map(taken, [later[0], numbered, later[1]]))

    entries = lexicon.entries([later[0].id, numbered.id, later[1].id])

    assert [entries[r.id].place for r in (later[0], numbered, later[1])] == [0, 7, 8]


@pytest.mark.parametrize("order", [2**80, -(2**80)])
def test_place_beyond_all_numbers_does_no_harm(order: int) -> None:
    lexicon = Lexicon()
    event = remembered("far away", event=Event(episode="e", order=order))
    lexicon.put([taken(event)])

    assert found(lexicon, "far") == [event.id]
    assert set(lexicon.around(lexicon.entries([event.id]).values(), 2)) == {event.id}


def test_a_record_that_was_given_whole_is_kept_whole() -> None:
    record = remembered("the lamp by the aquarium")
    lexicon = Lexicon()
    lexicon.put([leaf_of(record, {}, "the rest"), taken(remembered("bare"))])

    assert lexicon.kept([record.id, "unknown"]) == {record.id: (record.text, "the rest")}


def test_entry_is_the_same_where_only_the_place_was_left_open() -> None:
    entry = taken(remembered("x", run="r")).entry
    lexicon = Lexicon()
    lexicon.put([Leaf(entry, "x")])
    known = lexicon.entries([entry.id])[entry.id]

    assert same_entry(entry, known)
    assert not same_entry(taken(remembered("x", run="r", minutes=1))[0], known)


def test_pending_records_come_in_the_order_of_their_beginning(tmp_path: Path) -> None:
    lexicon = Lexicon(tmp_path / "words")
    lexicon.begin(["z", "a", "m"])
    lexicon.begin(["a", "b"])
    lexicon.drop(["m"])
    lexicon.close()

    again = Lexicon(tmp_path / "words")
    assert again.pending() == ["z", "a", "b"]
    again.close()


def test_write_that_fails_leaves_everything_as_it_was() -> None:
    lexicon = Lexicon()
    lexicon.put([taken(remembered("kept"))])
    lexicon.begin(["x"])

    def broken_off() -> Iterator[Leaf]:
        yield taken(remembered("half"))
        raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        lexicon.put(broken_off())
    assert (lexicon.count(), lexicon.pending(), found(lexicon, "half")) == (1, ["x"], [])
    lexicon.put([taken(remembered("whole"))])
    assert lexicon.count() == 2


def _rubbish(path: Path) -> None:
    path.write_bytes(b"rubbish " * 1000)


def _other_format(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        db.execute("INSERT INTO meta VALUES ('format', '0')")
    db.close()


def _other_tables(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE meta (something TEXT)")
    db.close()


@pytest.mark.parametrize("spoil", [_rubbish, _other_format, _other_tables])
def test_file_that_is_no_index_is_told_to_be_broken(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path / "words")

    with pytest.raises(LexiconError, match="index of words") as caught:
        Lexicon(tmp_path / "words")

    assert caught.value.broken
    throw_away(tmp_path / "words")
    Lexicon(tmp_path / "words").close()


def test_folder_in_the_place_of_the_file_is_an_error_but_not_to_be_thrown_away(
    tmp_path: Path,
) -> None:
    with pytest.raises(LexiconError, match="unable to open") as caught:
        Lexicon(tmp_path)

    assert not caught.value.broken


def test_closed_index_says_so() -> None:
    lexicon = Lexicon()
    lexicon.close()
    lexicon.close()

    with pytest.raises(LexiconError, match="closed"):
        lexicon.count()


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
        given: set[str] = set()
        stood: set[tuple[int, int]] = set()
        for record in records:
            if not given or record.id in given:  # told again: what was told before stands by now
                given, stood = set(), set(self.places.values())
            given.add(record.id)
            self.records[record.id] = record
            self._place(record, stood)
            self.begun.pop(record.id, None)

    def _place(self, record: Record, stood: set[tuple[int, int]]) -> None:
        """Behind all that stood in its episode, what leaves it now included."""
        entry = taken(record).entry
        place = entry.place
        known = self.places.get(record.id)
        if place < 0 and known is not None and known[0] == entry.episode:
            place = known[1]
        elif place < 0:
            place = max((p for episode, p in stood if episode == entry.episode), default=-1) + 1
        self.places[record.id] = (entry.episode, place)
        stood.add((entry.episode, place))

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
        def entries() -> Iterator[Leaf]:
            yield from map(taken, records)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.lexicon.put(entries())

    @rule()
    def reopen(self) -> None:
        self.lexicon.close()
        self.open()

    @invariant()
    def it_knows_what_it_was_told(self) -> None:
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
