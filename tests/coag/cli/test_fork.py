"""`coag fork` at the terminal."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import foraged

from coag.cli.runs import result_beside
from coag.tracing import RunFolder

Say = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return asyncio.run(foraged(tmp_path))


def test_both_runs_are_shown_side_by_side_with_what_was_changed(run: RunFolder, say: Say) -> None:
    result = say("fork", "latest", "--at", "3", "--without-constraint", "two_are_enough")
    assert result.code == 0
    head, *rows = result.out.splitlines()
    assert head == f"{run.path.name} forked at 3.retrieval"
    assert rows[0] == "  --without-constraint two_are_enough"
    assert "cycle  parent" in result.out
    assert "rejected pick" in result.out
    assert "fork, at its end: Picked: blue, blue, blue." in result.out
    assert "parent, before its last cycle: Picked: blue, blue." in result.out
    assert rows[-1].startswith("fork: ")
    assert Path(rows[-1].removeprefix("fork: ")).is_dir()
    assert "\x1b" not in result.out


def test_a_fork_can_be_shown_and_forked_and_lies_where_it_is_wanted(
    run: RunFolder, say: Say, tmp_path: Path
) -> None:
    result = say("fork", run.path.name, "--at", "2.evaluation", "--into", "forks", "--json")
    report = json.loads(result.out)
    forked = Path(report["run"]).name
    assert [path.name for path in (tmp_path / "forks").iterdir()] == [forked]
    assert say("log", forked, "--logs", "forks").code == 0
    assert say("verify", forked, "--logs", "forks").code == 0
    assert say("fork", forked, "--logs", "forks", "--at", "2.selection").code == 0


def test_what_repeats_itself_is_said_once(run: RunFolder, say: Say) -> None:
    result = say("fork", "latest", "--at", "3", "--set", "held=2")
    assert result.out.count("as in cycle 3") == 1
    assert result.out.count("as in the parent") == 2


def test_latest_says_which_run_it_is_where_it_is_a_fork_and_whose_its_cycles_are(
    run: RunFolder, say: Say
) -> None:
    assert say("fork", "latest", "--at", "3").err == ""
    result = say("why", "latest", "1")
    assert result.code == 2
    first, last = result.err.splitlines()
    assert first.startswith("latest is ")
    assert first.endswith(f", a fork of {run.path.name} at 3.retrieval.")
    assert f"has cycles 3 to 4 (the earlier ones are its parent's, '{run.path.name}')" in last
    for words in (("log", "latest", "--cycle", "1"), ("fork", "latest", "--at", "1")):
        result = say(*words)
        assert (result.code, "the earlier ones are its parent's" in result.err) == (2, True)


@pytest.mark.broken_trace("it changes a word in the log")
def test_a_changed_trace_is_reported_in_a_line(run: RunFolder, say: Say) -> None:
    run.trace_path.write_bytes(run.trace_path.read_bytes().replace(b"I have 2.", b"I have 9."))
    for words in (("fork", "latest", "--at", "3"), ("why", run.path.name, "3")):
        result = say(*words)
        assert result.code == 0
        (line,) = result.err.splitlines()
        assert line.startswith("The trace was changed: line ")
        assert f"verify logs/{run.path.name}" in line


def test_a_text_of_an_unused_procedure_is_reported(tmp_path: Path, say: Say) -> None:
    compact = asyncio.run(foraged(tmp_path, depth="compact"))
    Path("new.md").write_text("Propose what you like. Answer as JSON.")
    result = say("fork", compact.path.name, "--at", "3", "--procedure", "reasoning=new.md")
    assert result.code == 0
    assert "No model was asked by procedure 'reasoning'" in result.out
    assert "Those that were used: deliberation." in result.out


def test_without_an_environment_it_says_how_to_give_one(tmp_path: Path, say: Say) -> None:
    blind = asyncio.run(foraged(tmp_path, world=False))
    result = say("fork", blind.path.name, "--at", "2")
    assert "Give CoagAgent(environment=...) one that gives its state" in result.out


@pytest.mark.broken_trace("it edits run.json")
def test_the_recipes_module_is_looked_for_in_the_current_folder_first(
    run: RunFolder, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = json.loads(run.info_path.read_text())
    recipe = {**info["recipe"], "factory": "patch_of_berries:forager"}
    run.info_path.write_text(json.dumps({**info, "recipe": recipe}))
    trust = ("--trust", "patch_of_berries")
    for words in (("fork", "latest", "--at", "3"), ("replay", "latest")):
        result = say(*words, *trust)
        assert result.code == 2
        assert result.err.count("patch_of_berries") == 2
        assert f"neither in the current folder ({Path.cwd()}) nor" in result.err
        assert "PYTHONPATH" in result.err
    Path("patch_of_berries.py").write_text("from kits.foragers import forager\n")
    before = list(sys.path)
    importlib.invalidate_caches()
    assert say("replay", "latest", *trust).code == 0
    assert sys.path == before
    monkeypatch.delitem(sys.modules, "patch_of_berries")


@pytest.mark.parametrize(
    ("result", "other", "expected"),
    [
        ('{"ok": true}', '{"ok": false}', '{"ok": true}'),
        (
            json.dumps({"a": "x" * 200, "b": {"c": 1, "d": 2}}),
            json.dumps({"a": "x" * 200, "b": {"c": 1, "d": 3}}),
            "b.d: 2",
        ),
        (json.dumps({"a": "x" * 200, "end": 5}), "", "end: 5"),
        ("word " * 100, "", "word word"),
    ],
)
def test_of_long_results_it_shows_what_differs(result: str, other: str, expected: str) -> None:
    text = result_beside(result, other)
    assert expected in text
    assert len(text) < 200


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--at", "9"), "cycles up to 4"),
        (("--at", "3.thinking"), "Known: evaluation"),
        (("--at", "3", "--set", "held=many"), "needs quotes"),
        (("--at", "3", "--without-constraint", "\x1b[31mx"), "There is no constraint"),
        (("--at", "3", "--model", "x"), "openai:NAME"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    words: tuple[str, ...], error: str, run: RunFolder, say: Say
) -> None:
    result = say("fork", run.path.name, *words)
    assert result.code == 2
    assert error in result.err
    assert "\x1b[31mx" not in result.err


def test_of_long_results_those_that_differ_count_and_not_the_ones_that_are_alike() -> None:
    ours = json.dumps({"a": "x" * 200, "end": 5})
    other = json.dumps({"a": "x" * 200, "end": 6})
    assert result_beside(ours, ours, other) == "end: 5"


@pytest.mark.broken_trace("it ends in the middle of a cycle")
def test_a_cycle_without_a_choice_yet_is_shown_as_one(run: RunFolder, say: Say) -> None:
    lines = run.trace_path.read_text("utf-8").splitlines(keepends=True)
    bodies = [json.loads(line)["body"] for line in lines]
    selections = [n for n, body in enumerate(bodies) if body.get("phase") == "selection"]
    second = next(n for n in selections if bodies[n]["cycle"] == 2)
    run.trace_path.write_text("".join(lines[:second]), "utf-8")
    listed = say("why", run.path.name).out.splitlines()
    assert listed[1:] == ['  1 pick {"colour": "blue"}', "  2 nothing chosen yet"]
    result = say("fork", run.path.name, "--at", "2.retrieval")
    assert result.code == 0
    assert result.out.count("nothing chosen yet") == 1


def test_into_a_file_a_table_is_wide_unless_the_environment_says_how_wide(
    run: RunFolder, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def widest() -> int:
        lines = say("fork", run.path.name, "--at", "3.execution").out.splitlines()
        return max(len(line) for line in lines if line.startswith("cycle  parent"))

    monkeypatch.setenv("COLUMNS", "60")
    narrow = widest()
    monkeypatch.delenv("COLUMNS")
    assert narrow <= 60 < widest()


@pytest.mark.broken_trace("its records are made up")
def test_a_plain_run_has_no_phases_to_fork_at(plain_run: RunFolder, say: Say) -> None:
    result = say("fork", plain_run.path.name, "--at", "1")
    assert result.code == 2
    assert "plain" in result.err
