from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kits.ponds import Noted

from case_study.assess import NO_MODEL, Alone, Assessment, AssessmentError, How, sweep

Begin = Callable[..., Path]


def _trials(folder: Path) -> Path:
    return folder / "trials" / "small-pond.jsonl"


def test_trials_of_a_model_include_those_of_contenders_that_ask_none(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "sleeper", models=("scripted:water", "scripted:ice"), seeds=(0,))
    found = sweep(folder, Alone(), at_once, noted)
    assert len(found.trials) == 3
    assert [each.job.model for each in found.of_model("scripted:ice")] == [NO_MODEL, "scripted:ice"]


def test_a_later_line_of_the_same_job_replaces_an_earlier_one(
    pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", seeds=(0,))
    sweep(folder, Alone(), at_once, noted)
    line = json.loads(_trials(folder).read_text())
    with _trials(folder).open("a") as file:
        file.write(json.dumps({**line, "attempts": 2}) + "\n")
    (trial,) = Assessment.read(folder).trials
    assert trial.attempts == 2


def test_a_folder_without_an_assessment_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(AssessmentError, match=r"no assessment.*case-study assess -o"):
        Assessment.read(tmp_path)


@pytest.mark.parametrize("text", ["", "{", '{"contenders": []}', "[1]", "\x00"])
def test_a_damaged_plan_is_named_with_what_is_wrong(text: str, pond: Begin) -> None:
    folder = pond("fisher")
    (folder / "assessment.json").write_text(text)
    with pytest.raises(AssessmentError, match=r"assessment\.json cannot be read as the plan"):
        Assessment.read(folder)


@pytest.mark.parametrize("line", ["{}", "no json", '{"job": 3}', "\x1b[2J"])
def test_a_damaged_trial_is_named_with_its_line(
    line: str, pond: Begin, at_once: How, noted: Noted
) -> None:
    folder = pond("fisher")
    sweep(folder, Alone(), at_once, noted)
    with _trials(folder).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(AssessmentError, match=r"small-pond\.jsonl, line 3, is no trial"):
        Assessment.read(folder)


def test_a_trial_of_another_assessment_is_refused(pond: Begin, at_once: How, noted: Noted) -> None:
    folder = pond("fisher")
    sweep(folder, Alone(), at_once, noted)
    text = _trials(folder).read_text()
    _trials(folder).write_text(text.replace('"seed":1', '"seed":77'))
    with pytest.raises(AssessmentError, match=r"fisher, none, seed 77 belongs to no job"):
        Assessment.read(folder)
