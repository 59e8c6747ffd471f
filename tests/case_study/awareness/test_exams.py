from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from case_study.awareness import DATA, PAPER, exams_in, exams_named, questions_named
from coag.errors import ConfigurationError, UnknownNameError

Keys = dict[str, Any]
Save = Callable[[object], None]


def test_the_papers_dialogue_comes_first_and_ten_others_follow() -> None:
    exams = exams_in(DATA)
    assert exams[0].name == PAPER
    assert len(exams) >= 11


def test_an_exam_knows_its_messages_and_its_right_answers(data: Path) -> None:
    _, fence = exams_in(data)
    (goals,) = questions_named(["explicit_goals"])
    assert fence.messages == ("I want to paint the fence.", "What colour?")
    assert fence.right(goals) == (("paint the fence",),)


def test_a_key_without_a_question_is_refused_by_name(data: Path, keys: Keys, save: Save) -> None:
    del keys["a fence"]["answers"]["urgency"]
    save(keys)
    with pytest.raises(ConfigurationError, match=r"'a fence': no answer to 'urgency'"):
        exams_in(data)


def test_an_answer_to_no_question_is_refused_with_the_known_ones(
    data: Path, keys: Keys, save: Save
) -> None:
    keys["a fence"]["answers"]["weather"] = []
    save(keys)
    with pytest.raises(UnknownNameError, match=r"question named 'weather'.*urgency"):
        exams_in(data)


def test_answers_for_no_dialogue_and_a_dialogue_without_answers_are_refused(
    data: Path, keys: Keys, save: Save
) -> None:
    save({**keys, "a wall": keys["a fence"]})
    with pytest.raises(ConfigurationError, match="'a wall', which is no dialogue"):
        exams_in(data)
    del keys["a fence"]
    save(keys)
    with pytest.raises(ConfigurationError, match="no answers for 'a fence'"):
        exams_in(data)


def test_answers_of_the_wrong_form_and_missing_replies_are_refused(
    data: Path, keys: Keys, save: Save
) -> None:
    keys["a fence"]["answers"]["callbacks"] = [["fence", "paint"]]
    save(keys)
    with pytest.raises(ConfigurationError, match=r"'callbacks' is one phrase, not \['fence'"):
        exams_in(data)
    keys["a fence"]["answers"]["callbacks"] = []
    keys["a fence"]["replies"] = ["Good."]
    save(keys)
    with pytest.raises(ConfigurationError, match="1 replies to 2 turns"):
        exams_in(data)


def test_a_file_that_is_something_else_or_not_there_is_refused_with_its_place(
    data: Path, save: Save
) -> None:
    save({"a fence": {"replies": 1}})
    with pytest.raises(ConfigurationError, match=r"wrong at a fence > replies"):
        exams_in(data)
    (data / "questions.json").unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        exams_in(data)


def test_an_unknown_dialogue_or_question_is_refused_with_the_known_ones(data: Path) -> None:
    exams = exams_in(data)
    with pytest.raises(UnknownNameError, match=r"dialogue named 'a wall'.*a fence"):
        exams_named(exams, ["a wall"])
    with pytest.raises(UnknownNameError, match="question named 'weather'"):
        questions_named(["weather"])
    assert [exam.name for exam in exams_named(exams, ["a fence"])] == ["a fence"]
