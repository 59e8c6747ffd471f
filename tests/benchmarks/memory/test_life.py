"""The simulated year: the same for the same seed, judged by hand where that is easy."""

import json

import pytest

from benchmarks.memory._life import (
    LifeContender,
    Shown,
    all_lives,
    judged,
    live,
    measure_lives,
    our_lives,
)
from benchmarks.memory._outdated import measure_outdated
from benchmarks.memory._year import DailyQuestion, Note, Sort, Year
from coag.schema import SystemClock


def note(name: str, sort: Sort, value: str = "") -> Note:
    topic = "" if sort is Sort.JUNK else "Ann, town"
    at = SystemClock().now()
    text = f"Ann lives in {value}."
    return Note(name=name, sort=sort, text=text, source="", at=at, topic=topic, value=value)


TOLD = {
    "old": note("old", Sort.FACT, "Bari"),
    "new": note("new", Sort.FACT, "Cork"),
    "lie": note("lie", Sort.PLANTED, "Dover"),
    "talk": note("talk", Sort.JUNK),
}
QUESTION = DailyQuestion(
    sort=Sort.FACT,
    text="Where does Ann live?",
    topic="Ann, town",
    right="Cork",
    outdated=frozenset({"Bari"}),
    planted=frozenset({"Dover"}),
)


def verdict(*shown: Shown) -> dict[str, float | bool | None]:
    return judged(QUESTION, shown, TOLD)


def test_the_same_seed_gives_the_same_year_and_another_one_another() -> None:
    assert list(Year(1, 30).days()) == list(Year(1, 30).days())
    assert list(Year(1, 30).days()) != list(Year(2, 30).days())


def test_what_is_asked_was_told_before_and_is_right() -> None:
    told = dict[tuple[str, str], Note]()
    for day in Year(3, 120).days():
        told |= {(one.topic, one.value): one for one in day.notes if one.trusted}
        for question in day.questions:
            assert (question.topic, question.right) in told
            assert question.right not in question.outdated | question.planted


def test_what_is_right_and_first_is_a_hit_and_neither_stale_nor_planted() -> None:
    found = verdict(Shown(name="new"), Shown(name="old"), Shown(name="lie"), Shown(name="talk"))
    assert (found["hit"], found["stale"], found["planted"], found["junk"]) == (1, 0, 0, 0.25)


def test_what_stands_above_what_is_right_is_stale_or_planted() -> None:
    assert verdict(Shown(name="old"), Shown(name="new"))["stale"]
    assert verdict(Shown(name="lie"))["planted"]


def test_a_gist_that_lost_what_was_asked_is_no_hit() -> None:
    assert verdict(Shown(name="new", text="Ann lives in Cork."))["hit"]
    assert not verdict(Shown(name="new", text="Ann lives somewhere."))["hit"]


def test_a_memory_lives_a_few_days_and_leaves_something_on_disk() -> None:
    plain = LifeContender(name="plain")
    (life,) = all_lives([plain], seeds=range(1), days=4, processes=1)
    assert life.measures["hit"] == 1.0
    assert life.measures["notes"] > 4
    assert life.measures["disk MB"] > 0.0
    again = live(plain, 0, 4)
    same = {"seconds": 0, "disk MB": 0}  # a page of SQLite more or less
    assert {**again.measures, **same} == {**life.measures, **same}


def test_each_mechanism_is_off_once() -> None:
    off = {one.name for one in our_lives() if " without " in one.name}
    assert "companion without gist" in off
    assert len(off) == 14


def test_the_tables_say_where_no_effect_was_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure_lives(range(6), 2, 1, ["plain", "companion without gist", "assistant"], as_json=False)
    shown = capsys.readouterr().out
    assert "no effect (+0.0)" in shown
    assert "| assistant" in shown


def test_a_held_out_life_has_the_same_questions_in_other_words_and_is_told_otherwise() -> None:
    usual, other = list(Year(1, 30).days()), list(Year(1, 30, held_out=True).days())
    words = {note.text for day in other for note in day.notes if note.sort is Sort.FACT}
    assert words
    assert not words & {note.text for day in usual for note in day.notes}


def test_what_replaced_what_is_counted_by_sort_of_pair(capsys: pytest.CaptureFixture[str]) -> None:
    measure_outdated(as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["change, like wording"][0] >= 14
    assert found["both true, other subject"][0] == 0
    assert found["what strangers state, left out"] == [0, 16]
    measure_outdated(as_json=False)
    assert "marked as outdated" in capsys.readouterr().out


@pytest.mark.parametrize(("seed", "held_out"), [(6, False), (18, True)])
def test_a_year_ends_where_all_values_of_a_fact_were_said(seed: int, held_out: bool) -> None:
    assert sum(1 for _ in Year(seed, held_out=held_out).days()) == 365
