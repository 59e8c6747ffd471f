from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from case_study.__main__ import app

Run = Callable[..., int]


@pytest.fixture
def run(command: Run, tmp_path: Path) -> Run:
    """Runs `case-study` with these words, and logs in a folder of the test's."""
    return lambda *words: command(*words, "--logs", str(tmp_path))


def test_json_is_one_object_with_the_result(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("run", "energy-dilemma", "--agent", "baseline", "--seed", "1", "--json")
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert result.keys() == {"scenario", "agent", "model", "seed", "success", "run", "measures"}
    assert result["measures"].keys() >= {
        "actions",
        "model_calls",
        "prompt_tokens",
        "completion_tokens",
        "seconds",
        "decided_by",
        "stranded",
        "critical_cleans",
    }


def test_result_names_the_scripted_model_and_the_command_to_look_at_the_run(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("run", "energy-dilemma", "--model", "scripted:impulsive", "--max-actions", "2") == 0
    out = capsys.readouterr().out
    assert "scripted:impulsive" in out
    assert "not language models" in " ".join(out.split())
    (run_folder,) = tmp_path.glob("case-*/*/run.json")
    assert out.splitlines()[-2] == f"Case: {run_folder.parents[1]}"
    command = out.splitlines()[-1].removeprefix("Episode 1: ")
    words = shlex.split(command)
    assert words[1:] == ["log", str(run_folder.parent)]
    assert not out.startswith("\n")


def test_the_command_to_look_at_a_run_runs_as_it_is_printed(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    run("run", "energy-dilemma", "--agent", "baseline", "--max-actions", "1")
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("Episode 1: ")
    shown = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
    assert "plain agent robot" in shown.stdout


def test_version_is_printed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("case-study (coag ")


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("run", "nope"), "sudden-wall, energy-dilemma"),
        (("run", "evolution", "--agent", "nope"), "baseline, coag"),
        (("run", "evolution", "--model", "scripted:nope"), "gullible, impulsive"),
        (("run",), "--resume CASE"),
        (("run", "--resume", "nope"), "There is no case 'nope'"),
        (("demo", "--model", "nope"), "scripted:NAME"),
        (("run", "evolution", "--agent", "baseline", "--depth", "full"), "--depth"),
        (
            (
                *("run", "evolution", "--agent", "baseline"),
                "--without-memory",
                "--delivery=constraint",
            ),
            "--without-memory, --delivery: only for --agent coag",
        ),
        (
            ("run", "evolution", "--agent", "baseline", "--without-constraint", "x"),
            "--without-constraint",
        ),
    ],
)
def test_mistakes_get_one_line_and_exit_2(
    run: Run, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], listed: str
) -> None:
    assert run(*words) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("case-study: ")
    assert listed in error


def test_world_that_does_not_answer_is_reported_in_one_line(
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("VACUUM_WORLD_CONTROL_TOKEN", "a-token-for-tests")
    assert run("run", "evolution", "--world", "http://127.0.0.1:9") == 2
    error = capsys.readouterr().err
    assert "no world answers at http://127.0.0.1:9" in error
    (case,) = tmp_path.glob("case-*")
    assert error.endswith(f"continue it: case-study run --resume {case}\n")


def test_film_is_made_from_a_finished_run(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("run", "energy-dilemma", "--agent", "baseline", "--max-actions", "1") == 0
    capsys.readouterr()
    made = tmp_path / "film.gif"
    assert run("film", "latest", "-o", str(made), "--size", "small") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{made}: 3 pictures, ")
    assert "A plain run records no state of the world" in printed.err
    assert made.read_bytes().startswith(b"GIF89a")


def test_film_says_what_cannot_be_filmed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("film", "nope") == 2
    assert "There is no run or folder named 'nope'" in capsys.readouterr().err
