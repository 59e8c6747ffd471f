"""The folder of a run, and finding it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.schema import MemoryKind, Provenance, Record, Redactor, SteppingClock, Trust
from coag.tracing import (
    Recipe,
    RunFolder,
    RunInfo,
    find_run,
    installed_versions,
    list_runs,
    read_run,
)

RunMaker = Callable[..., RunFolder]
NOW = SteppingClock().now()


def info(name: str = "run-1") -> RunInfo:
    return RunInfo(id=name, kind="coag", agent="a", model="m", started_at=NOW)


def test_what_is_known_about_a_run_is_read_as_it_was_given(tmp_path: Path) -> None:
    recipe = Recipe(factory="a.b:c", arguments={"x": [1, None]})
    expected = info().model_copy(update={"recipe": recipe, "configuration": {"depth": "full"}})
    folder = RunFolder.create(tmp_path / "logs", expected)
    assert folder.path == tmp_path / "logs" / "run-1"
    assert read_run(folder.path) == expected


def test_finishing_adds_the_end_and_the_result(make_run: RunMaker) -> None:
    folder = make_run()
    before = read_run(folder.path)
    finished = folder.finish(at=NOW, result={"success": True})
    assert read_run(folder.path) == finished
    assert finished == before.model_copy(update={"ended_at": NOW, "result": {"success": True}})
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]


def test_what_a_fork_remembers_is_read_line_by_line_whatever_its_texts_hold(
    make_run: RunMaker,
) -> None:
    folder = make_run()
    origin = Provenance(
        run="r", activity="a", cycle=1, source="a", source_kind="agent", trust=Trust.USER
    )
    texts = ("one line", "a\u2028b\x85c\nd")
    records = tuple(
        Record(
            id=str(number),
            kind=MemoryKind.SEMANTIC,
            text=text,
            scope="a",
            created_at=NOW,
            provenance=origin,
        )
        for number, text in enumerate(texts)
    )
    lines = [record.model_dump_json() + "\n" for record in records]
    folder.remembered_path.write_text("".join(lines), encoding="utf-8")
    assert folder.remembered() == records
    folder.remembered_path.write_bytes(b"\xff\n")
    with pytest.raises(TraceError, match="no records of a fork's memory"):
        folder.remembered()
    folder.remembered_path.unlink()
    with pytest.raises(TraceError, match="No such file"):
        folder.remembered()


def test_secrets_do_not_reach_run_json(tmp_path: Path) -> None:
    described = info().model_copy(update={"configuration": {"api_key": "x", "note": "hush-hush"}})
    folder = RunFolder.create(tmp_path, described, redactor=Redactor(["hush-hush"]))
    folder.finish(at=NOW, result={"said": "hush-hush"}, redactor=Redactor(["hush-hush"]))
    read = read_run(folder.path)
    assert read.configuration == {"api_key": "[redacted]", "note": "[redacted]"}
    assert read.result == {"said": "[redacted]"}


def test_a_run_needs_a_new_folder_that_can_be_made(make_run: RunMaker, tmp_path: Path) -> None:
    make_run()
    with pytest.raises(TraceError, match="exists already"):
        make_run()
    (tmp_path / "file").write_text("a file where the folder should be")
    with pytest.raises(TraceError, match="cannot be made"):
        RunFolder.create(tmp_path / "file", info())


@pytest.mark.parametrize("name", ["../escape", "a/b", "", "a b"])
def test_a_run_id_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        info(name)
    with pytest.raises(ValidationError):
        Recipe(factory="just_a_function")


@pytest.mark.broken_trace("it is no run")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "describes no run"),
        ("not json", "describes no run"),
        ('{"v": 1, "id": "x"}', "describes no run: kind: Field required"),
        ('{"v": 9, "soul": "new"}', "version 9 .* Update coag"),
    ],
)
def test_a_foreign_run_json_is_refused_with_a_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(TraceError, match=sentence):
        read_run(tmp_path)


def test_a_folder_without_run_json_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no run\.json"):
        read_run(tmp_path)
    (tmp_path / "run.json").mkdir()
    with pytest.raises(TraceError, match="cannot be read"):
        read_run(tmp_path)


def test_versions_of_what_takes_part_are_known() -> None:
    found = installed_versions()
    assert {"python", "pydantic", "autogen-core", "chromadb"} <= found.keys()


def test_runs_are_listed_by_name_and_other_things_are_not(
    make_run: RunMaker, tmp_path: Path
) -> None:
    second, first = make_run("b-2"), make_run("a-1")
    (tmp_path / "logs" / "README.md").write_text("about logs")
    (tmp_path / "logs" / "empty").mkdir()
    assert list(list_runs(tmp_path / "logs")) == [first, second]
    assert list(list_runs(str(tmp_path / "logs"))) == [first, second]
    assert read_run(str(first.path)) == read_run(first.path)


def test_a_name_that_no_file_can_have_names_no_run(make_run: RunMaker, tmp_path: Path) -> None:
    make_run("a-1")
    with pytest.raises(UnknownNameError, match="a-1"):
        find_run("x" * 5_000, tmp_path / "logs")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folders_that_may_not_be_read_are_left_out_or_named(
    make_run: RunMaker, tmp_path: Path
) -> None:
    run, closed = make_run("a-1"), tmp_path / "logs" / "lost+found"
    closed.mkdir(mode=0)
    assert list(list_runs(tmp_path / "logs")) == [run]
    with pytest.raises(ConfigurationError, match="may not be read"):
        list(list_runs(closed))


@pytest.mark.parametrize("text", ["robot-1-aa", "robot-1", "latest"])
def test_a_run_is_found_by_id_beginning_or_being_the_latest(
    make_run: RunMaker, tmp_path: Path, text: str
) -> None:
    wanted = make_run("robot-1-aa")
    earlier = read_run(wanted.path).started_at - timedelta(days=1)
    before = info("robot-2-bb").model_copy(update={"started_at": earlier})
    RunFolder.create(tmp_path / "logs", before)
    assert find_run(text, tmp_path / "logs") == wanted


def test_an_id_is_meant_itself_even_if_another_begins_with_it(
    make_run: RunMaker, tmp_path: Path
) -> None:
    short = make_run("robot")
    make_run("robot-2")
    assert find_run("robot", tmp_path / "logs") == short
    assert find_run(str(short.path), tmp_path / "elsewhere") == short


def test_an_unknown_run_lists_those_there_are(make_run: RunMaker, tmp_path: Path) -> None:
    make_run("robot-1")
    make_run("robot-2")
    with pytest.raises(UnknownNameError, match=r"'cat'\. Known: robot-1, robot-2"):
        find_run("cat", tmp_path / "logs")
    with pytest.raises(ConfigurationError, match="begin with 'rob': robot-1, robot-2"):
        find_run("rob", tmp_path / "logs")


def test_a_long_list_of_runs_names_the_last_ones_and_an_empty_one_none(
    make_run: RunMaker, tmp_path: Path
) -> None:
    for number in range(25):
        make_run(f"robot-{number:02}")
    with pytest.raises(UnknownNameError, match="robot-24, … and 5 older ones") as caught:
        find_run("cat", tmp_path / "logs")
    assert "robot-04" not in str(caught.value)
    (tmp_path / "none").mkdir()
    with pytest.raises(UnknownNameError, match="Known: none"):
        find_run("latest", tmp_path / "none")
    with pytest.raises(ConfigurationError, match="no folder of logs"):
        find_run("latest", tmp_path / "nowhere")


def test_a_path_names_a_run_by_its_folder_and_lists_those_beside_it(
    make_run: RunMaker, tmp_path: Path
) -> None:
    run = make_run("robot-1")
    logs, nowhere = run.path.parent, tmp_path / "nowhere"
    assert find_run(str(logs / "robot"), nowhere) == run
    with pytest.raises(UnknownNameError, match="Known: robot-1"):
        find_run(str(logs / "cat"), nowhere)
    with pytest.raises(ConfigurationError, match=f"file of a run.*folder: {run.path}"):
        find_run(str(run.info_path), logs)
    (tmp_path / "shop.py").write_text("")
    with pytest.raises(ConfigurationError, match=r"is a file\. Give a run's folder"):
        find_run(str(tmp_path / "shop.py"), logs)
