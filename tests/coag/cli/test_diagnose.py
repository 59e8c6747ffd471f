"""`coag diagnose`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coag.compat import Recorder
from coag.schema import Failure, ReceiptStatus

Say = Callable[..., Any]


def _run(logs: Path, *contents: str | None) -> str:
    recorder = Recorder(logs, agent="plain")
    for content in contents:
        recorder.begin_turn()
        attempt = recorder.begin("look", {})
        status = ReceiptStatus.DONE if content is None else ReceiptStatus.FAILED
        recorder.end(attempt, status, content or "fine", (content and Failure.TRANSIENT) or None)
        recorder.end_turn("respond", "Done.")
    recorder.close()
    return recorder.folder.path.name


def test_a_run_without_failure_ends_with_0(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", None)
    result = say("diagnose")
    assert result.code == 0
    assert result.out == f"{name}: no failure\n"


def test_a_failure_is_a_paragraph_and_the_exit_code_is_1(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", "lost \x1b[2Jthe line")
    result = say("diagnose", "latest")
    assert result.code == 1
    assert "cycle 1: failed execution" in result.out
    assert "look failed: 'lost" in result.out
    assert "\x1b" not in result.out
    assert result.out.startswith(f"{name}: 1 failure: 1 failed execution\n")


def test_the_same_failure_in_neighbouring_cycles_is_shown_once(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", "lost 1", "lost 2", "lost 3", None, "lost 4")
    result = say("diagnose", "latest")
    assert "4 failures: 4 failed execution" in result.out.splitlines()[0]
    assert "cycles 1 to 3: failed execution, 3 times; the first:" in result.out
    assert "cycle 5: failed execution\n" in result.out
    assert result.out.count("look failed:") == 2


def test_of_very_many_failures_the_first_are_shown(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", *["lost " + ("a" if number % 2 else "") for number in range(203)])
    result = say("diagnose", "latest")
    assert result.out.startswith(result.out.split(":")[0] + ": 203 failures")
    assert "… and 3 more: --json shows all" in result.out


@pytest.mark.broken_trace("it changes a word in the log, and tears its last line")
def test_a_changed_or_torn_trace_is_reported_in_a_line(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", None)
    trace = tmp_path / "logs" / name / "trace.jsonl"
    text = trace.read_text("utf-8")
    trace.write_text(text.replace("fine", "well"), "utf-8")
    result = say("diagnose")
    assert result.code == 0
    assert result.err.count("\n") == 1
    assert "does not fit its hash" in result.err
    trace.write_text(text[:-9], "utf-8")
    result = say("diagnose")
    assert result.err.count("\n") == 1
    assert "the last one, is truncated" in result.err


def test_programs_get_a_json_object_a_failure(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", "lost")
    result = say("diagnose", name, "--json")
    (line,) = result.out.splitlines()
    diagnosis = json.loads(line)
    assert diagnosis["run"] == name
    assert diagnosis["cause"] == "failed execution"
    assert diagnosis["evidence"][0]["cycle"] == 1


def test_all_runs_of_a_folder_are_diagnosed(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", None)
    _run(tmp_path / "logs", "lost")
    result = say("diagnose", "logs")
    assert result.code == 1
    assert "no failure" in result.out
    assert "failed execution" in result.out
    assert result.out.endswith("1 of 2 runs with a failure\n")


def test_a_domain_is_named_by_import(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", None)
    assert say("diagnose", "--domain", "case_study.faults:VacuumDomain").code == 0
    for name in ("vacuum", "a:b:c", "a:", "a: b"):
        assert "module:Class" in say("diagnose", "--domain", name).err
    assert (
        "is no coag.proof.DomainKnowledge" in say("diagnose", "--domain", "coag.proof:diagnose").err
    )
    assert say("diagnose", "--domain", "vacuum").code == 2


def test_a_domain_may_be_in_the_current_folder(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(tmp_path / "logs", None)
    text = "from coag.proof import DomainKnowledge\n\n\nclass Barn(DomainKnowledge):\n    pass\n"
    (tmp_path / "domain_in_this_folder.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert say("diagnose", "--domain", "domain_in_this_folder:Barn").code == 0


def test_a_run_that_is_not_there_is_named(say: Say, tmp_path: Path) -> None:
    _run(tmp_path / "logs", None)
    result = say("diagnose", "nowhere")
    assert result.code == 2
    assert "nowhere" in result.err


@pytest.mark.broken_trace("its trace is gone")
def test_the_only_run_that_cannot_be_read_is_a_users_error(say: Say, tmp_path: Path) -> None:
    name = _run(tmp_path / "logs", None)
    (tmp_path / "logs" / name / "trace.jsonl").unlink()
    result = say("diagnose", name)
    assert (result.code, result.out) == (2, "")
    assert "trace.jsonl" in result.err


@pytest.mark.broken_trace("its trace is gone")
def test_of_several_runs_one_that_cannot_be_read_is_named_and_counted(
    say: Say, tmp_path: Path
) -> None:
    name = _run(tmp_path / "logs", None)
    _run(tmp_path / "logs", None)
    (tmp_path / "logs" / name / "trace.jsonl").unlink()
    result = say("diagnose", "logs")
    assert result.code == 1
    assert name in result.err
    assert result.out.endswith("1 of 2 runs with a failure\n")


def test_a_domain_may_be_named_that_is_made_already(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from case_study.faults import VacuumDomain\nHOUSE = VacuumDomain()\n"
    (tmp_path / "house_of_mine.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    _run(tmp_path / "logs", "lost")
    result = say("diagnose", "--domain", "house_of_mine:HOUSE")
    assert result.code == 1
    assert "look failed: 'lost" in result.out
    monkeypatch.delitem(sys.modules, "house_of_mine")
