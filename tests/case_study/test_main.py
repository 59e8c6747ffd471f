from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from case_study.__main__ import main

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `case-study` with these words; gives its exit code."""

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["case-study", *words, "--logs", str(tmp_path)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return code if isinstance(code, int) else 0

    return call


def test_json_is_one_object_with_the_result(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("run", "energy-dilemma", "--agent", "baseline", "--seed", "1", "--json")
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told.keys() == {"scenario", "agent", "model", "seed", "success", "run", "measures"}
    assert told["measures"].keys() >= {
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
    assert f"coag log {tmp_path}" in out


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("run", "nope"), "sudden-wall, energy-dilemma"),
        (("run", "evolution", "--agent", "nope"), "baseline, coag"),
        (("run", "evolution", "--model", "scripted:nope"), "gullible, impulsive"),
        (("run",), "--resume CASE"),
        (("run", "--resume", "nope"), "There is no case 'nope'"),
        (("demo", "--model", "nope"), "scripted:NAME"),
    ],
)
def test_mistakes_get_one_line_and_exit_2(
    run: Run, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], listed: str
) -> None:
    assert run(*words) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("case-study: ")
    assert listed in told


def test_world_that_does_not_answer_is_told_in_one_line(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VACUUM_WORLD_CONTROL_TOKEN", "a-token-for-tests")
    assert run("run", "evolution", "--world", "http://127.0.0.1:9") == 2
    assert "no world answers at http://127.0.0.1:9" in capsys.readouterr().err
