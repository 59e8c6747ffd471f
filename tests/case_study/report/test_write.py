"""What a report is written from, and where to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kits.assessed import kept, made_up

from case_study.assess import Assessment, AssessmentError
from case_study.report import RUN_PAGES, Summary, write_report
from coag.errors import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small assessment."""
    return kept(made_up(tmp_path / "made-up", contenders=("plain", "coag-full"), seeds=3))


def test_page_json_and_markdown_stand_beside_each_other(folder: Path, tmp_path: Path) -> None:
    written = write_report(folder, tmp_path / "out.html", title="A made-up sample")
    assert written.page.read_text().count("<h1>A made-up sample</h1>") == 1
    assert written.markdown.read_text().startswith("# A made-up sample\n")
    assert Summary.model_validate_json(written.json.read_bytes()) == written.summary
    assert json.loads(written.json.read_bytes())["format"] == "case-study-summary/1"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "made-up",
        "out.html",
        "out.json",
        "out.md",
    ]


@pytest.mark.parametrize("name", ["report", "report.md", "report.json"])
def test_an_output_that_is_no_page_is_refused_with_the_way_out(folder: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ends in \.html"):
        write_report(folder, folder / name)


def test_a_folder_without_an_assessment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssessmentError, match="no assessment"):
        write_report(tmp_path, tmp_path / "report.html")


def test_an_assessment_without_a_trial_is_refused(tmp_path: Path) -> None:
    made = made_up(tmp_path / "made-up", contenders=("plain",), seeds=1)
    folder = kept(Assessment(folder=made.folder, plan=made.plan, trials=()))
    with pytest.raises(ConfigurationError, match="no trial yet"):
        write_report(folder, folder / "report.html")


def test_an_output_in_a_folder_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_report(folder, folder / "nowhere" / "report.html")


def test_a_failed_trial_leads_to_the_page_of_its_runs_or_to_the_command(
    folder: Path, tmp_path: Path
) -> None:
    cases = [trial.case for trial in Assessment.read(folder).trials if trial.case]
    for case in cases:
        (folder / case).mkdir(parents=True)
    page = folder / RUN_PAGES / f"{cases[0].replace('/', '-')}.html"
    page.parent.mkdir()
    page.write_text("a page")
    text = write_report(folder, tmp_path / "report.html").page.read_text()
    assert f'href="./made-up/{RUN_PAGES}/{page.name}"' in text
    assert text.count("page of the run") == 1
    assert f"coag report {cases[1]} -o run.html" in text


def test_a_case_outside_of_the_assessment_is_never_linked(folder: Path, tmp_path: Path) -> None:
    made = Assessment.read(folder)
    trials = tuple(
        trial.model_copy(update={"case": "../outside"}) if trial.case else trial
        for trial in made.trials
    )
    (tmp_path / "outside").mkdir()
    (folder / RUN_PAGES).mkdir()
    (folder / RUN_PAGES / "..-outside.html").write_text("a page")
    lines = "".join(f"{trial.model_dump_json()}\n" for trial in trials)
    (folder / "trials" / "all.jsonl").write_text(lines)
    assert "page of the run" not in write_report(folder, folder / "report.html").page.read_text()


def test_asked_for_pages_of_runs_it_makes_none_where_no_run_was_kept(folder: Path) -> None:
    told: list[str] = []
    write_report(folder, folder / "report.html", run_pages=3, on_progress=told.append)
    assert told == []
    assert not (folder / RUN_PAGES).exists()
