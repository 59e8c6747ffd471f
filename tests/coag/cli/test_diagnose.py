"""`coag diagnose`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coag.compat import Recorder
from coag.schema import Failure, ReceiptStatus

Say = Callable[..., Any]


def _run(logs: Path, content: str | None) -> str:
    recorder = Recorder(logs, agent="plain")
    recorder.begin_turn()
    attempt = recorder.begin("look", {})
    status = ReceiptStatus.DONE if content is None else ReceiptStatus.FAILED
    recorder.end(attempt, status, content or "fine", (content and Failure.TRANSIENT) or None)
    recorder.end_turn("respond", "Done.")
    recorder.close()
    return recorder.folder.path.name


def test_a_run_without_failure_ends_with_0(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", None)
    said = say("diagnose")
    assert said.code == 0
    assert said.out == f"{name}\nno failure\n"


def test_a_failure_is_a_paragraph_and_the_exit_code_is_1(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", "lost \x1b[2Jthe line")
    said = say("diagnose", "latest")
    assert said.code == 1
    assert "cycle 1: failed execution" in said.out
    assert "look failed: 'lost" in said.out
    assert "\x1b" not in said.out
    assert said.out.endswith("1 failure: 1 failed execution\n")


def test_programs_get_a_json_object_a_failure(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", "lost")
    said = say("diagnose", name, "--json")
    (line,) = said.out.splitlines()
    told = json.loads(line)
    assert told["run"] == name
    assert told["cause"] == "failed execution"
    assert told["evidence"][0]["cycle"] == 1


def test_all_runs_of_a_folder_are_diagnosed(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", None)
    _run(tmp_path / "logs", "lost")
    said = say("diagnose", "logs")
    assert said.code == 1
    assert "no failure" in said.out
    assert "failed execution" in said.out


def test_a_domain_is_named_by_import(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", None)
    assert say("diagnose", "--domain", "case_study.faults:VacuumDomain").code == 0
    assert "module:Class" in say("diagnose", "--domain", "vacuum").err
    assert "is no coag.proof.Domain" in say("diagnose", "--domain", "coag.proof:diagnose").err
    assert say("diagnose", "--domain", "vacuum").code == 2


def test_a_run_that_is_not_there_is_named(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", None)
    said = say("diagnose", "nowhere")
    assert said.code == 2
    assert "nowhere" in said.err
