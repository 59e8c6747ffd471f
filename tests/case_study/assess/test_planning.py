from __future__ import annotations

from pathlib import Path

import pytest
from kits.ponds import Noted, pond_plan

from case_study.assess import (
    Alone,
    Assessment,
    AssessmentError,
    How,
    Trial,
    begun,
    machine_class,
    read_plan,
    sweep,
    versions,
)
from coag.schema import SteppingClock


def test_the_same_plan_is_gone_on_with(tmp_path: Path) -> None:
    first = begun(tmp_path / "a", pond_plan("fisher"))
    again = begun(tmp_path / "a", pond_plan("fisher", command="typed again"))
    assert again == first == read_plan(tmp_path / "a")


def test_another_plan_is_told_apart_from_the_one_that_is_there(tmp_path: Path) -> None:
    begun(tmp_path / "a", pond_plan("fisher", fewer_seeds={"fisher": 2}))
    asked = pond_plan("fisher", "sleeper", seeds=(0, 1, 2), place="served")
    with pytest.raises(AssessmentError) as refused:
        begun(tmp_path / "a", asked)
    told = str(refused.value)
    for part in (
        "place there local, asked for served",
        "contenders there fisher, asked for fisher, sleeper",
        "seeds there 0-1, asked for 0-2",
        "fewer seeds there fisher=2, asked for none",
        "--extend",
    ):
        assert part in told
    assert read_plan(tmp_path / "a").place == "local"


def test_an_assessment_is_added_to_and_keeps_its_trials(
    tmp_path: Path, at_once: How, noted: Noted
) -> None:
    folder = tmp_path / "a"
    begun(folder, pond_plan("fisher"))
    sweep(folder, Alone(), at_once, noted)
    asked = pond_plan("sleeper", "fisher", seeds=(1, 2), fewer_seeds={"sleeper": 1})
    plan = begun(folder, asked, extend=True)
    assert (plan.contenders, plan.seeds) == (("fisher", "sleeper"), (0, 1, 2))
    assert plan.without_model == ("fisher",)
    assert plan.fewer_seeds == {"sleeper": 1}
    assert len(Assessment.read(folder).missing) == 2
    assert sweep(folder, Alone(), at_once, noted).complete


def test_the_command_of_an_assessment_that_was_added_to_tells_all_of_it(tmp_path: Path) -> None:
    begun(tmp_path, pond_plan("fisher", command="assess --seeds 2"))
    asked = pond_plan("fisher", seeds=(0, 1, 2), command="assess --seeds 3")
    for _ in range(2):
        plan = begun(tmp_path, asked, extend=True)
        assert plan.command == "assess --seeds 2, then assess --seeds 3 --extend"


def test_nothing_is_added_while_another_process_is_at_it(
    tmp_path: Path, at_once: How, noted: Noted
) -> None:
    before = begun(tmp_path, pond_plan("fisher"))

    def add(trial: Trial) -> None:
        with pytest.raises(AssessmentError, match="Another process is sweeping"):
            begun(tmp_path, pond_plan("sleeper"), extend=True)

    noted.after_each = add
    sweep(tmp_path, Alone(), at_once, noted)
    assert read_plan(tmp_path) == before


def test_a_plan_that_a_kill_left_half_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "assessment.json.tmp").write_text('{"domain"')
    assert begun(tmp_path, pond_plan("fisher")) == read_plan(tmp_path)


def test_a_model_takes_the_place_of_none(tmp_path: Path) -> None:
    begun(tmp_path / "a", pond_plan("fisher", models=("none",)))
    plan = begun(tmp_path / "a", pond_plan("sleeper", models=("scripted:ice",)), extend=True)
    assert plan.models == ("scripted:ice",)


def test_what_makes_trials_incomparable_cannot_be_added(tmp_path: Path) -> None:
    begun(tmp_path / "a", pond_plan("fisher"))
    with pytest.raises(AssessmentError, match=r"token budget there none, asked for 50"):
        begun(tmp_path / "a", pond_plan("fisher", token_budget=50), extend=True)


def test_other_code_that_goes_on_is_noted_with_the_number_of_trials_before(
    tmp_path: Path, at_once: How, noted: Noted
) -> None:
    folder = tmp_path / "a"
    begun(folder, pond_plan("fisher", versions={"sources": "old"}))
    begun(folder, pond_plan("fisher", versions={"sources": "new"}))
    assert read_plan(folder).resumptions == ()
    sweep(folder, Alone(), at_once, noted)
    clock = SteppingClock()
    plan = begun(folder, pond_plan("fisher", versions={"sources": "new"}), clock=clock)
    (noted_then,) = plan.resumptions
    assert (noted_then.versions, noted_then.trials) == ({"sources": "new"}, 2)
    again = begun(folder, pond_plan("fisher", versions={"sources": "new"}), clock=clock)
    assert again.resumptions == plan.resumptions


def test_a_folder_with_other_things_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(AssessmentError, match="holds no assessment"):
        begun(tmp_path, pond_plan("fisher"))
    with pytest.raises(AssessmentError, match="is a file"):
        begun(tmp_path / "thesis.tex", pond_plan("fisher"))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_versions_tell_the_code_and_the_machine_is_not_named() -> None:
    found = versions()
    assert found["coag"]
    assert len(found["sources"]) == 12
    assert "core" in machine_class()
