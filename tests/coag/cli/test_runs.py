"""Which run a person means, and how runs are listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coag.schema import Redactor, SteppingClock
from coag.tracing import RunFolder, RunInfo

Say = Callable[..., Any]


def run_in(logs: Path, name: str, model: str = "tiny") -> RunFolder:
    info = RunInfo(
        id=name, kind="coag", agent="a", model=model, seed=1, started_at=SteppingClock().now()
    )
    return RunFolder.create(logs, info, redactor=Redactor())


def test_of_very_many_runs_that_may_be_meant_the_last_are_named(say: Say, tmp_path: Path) -> None:
    for number in range(13):
        run_in(tmp_path / "logs", f"run-{number:02}")
    result = say("log", "run-")
    assert result.code == 2
    assert "begin with 'run-': run-03, run-04," in result.err
    assert "run-12, … and 3 others. Give more of the name" in result.err


def test_a_file_in_place_of_a_run_is_refused(say: Say, tmp_path: Path) -> None:
    run = run_in(tmp_path / "logs", "run-1")
    result = say("log", str(run.info_path))
    assert result.code == 2
    assert "is a file of a run. Give the run's folder: " in result.err


def test_a_long_name_of_a_model_is_cut_in_the_list(say: Say, tmp_path: Path) -> None:
    run_in(tmp_path / "logs", "run-1", model="http://gate.example/v1#a-very-long-name")
    (line,) = [line for line in say("log").out.splitlines() if "run-1" in line]
    assert line.endswith("http://gate.example/v1#a…")
