"""The file of a judgment: shared, never half written, read from its copy where it is spoiled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coag.errors import JudgmentError
from coag.judgment import Judgment
from coag.judgment.state import STATE_VERSION, StateFile, new_state, parsed_state

REPORTS = """
import sys
from coag.judgment import Judgment
judgment = Judgment(sys.argv[1])
for n in range(int(sys.argv[2])):
    judgment.report("a", 1.0, source=sys.argv[3])
    print(n, flush=True)
"""


def reporter(path: Path, times: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REPORTS, str(path), str(times), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def begun(path: Path) -> Judgment:
    judgment = Judgment(path)
    judgment.init({"capabilities": [{"name": "a"}, {"name": "b"}]})
    return judgment


def test_processes_that_report_at_once_lose_no_report(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    writers = [reporter(tmp_path / "j.json", 15, f"agent {n}") for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.communicate()
    assert judgment.status()["advice"]["reports"] == 45
    counts = {f"agent {n}": 15 for n in range(3)}
    stored = parsed_state((tmp_path / "j.json").read_text())["steps"]
    assert {name: sum(one["source"] == name for one in stored) for name in counts} == counts


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    acknowledged = 0
    for kill_after in (1, 2, 4):
        writer = reporter(tmp_path / "j.json", 1_000, "agent")
        assert writer.stdout is not None
        for _ in range(kill_after):
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += kill_after + len(writer.communicate()[0].splitlines())
        reports = judgment.status()["advice"]["reports"]
        # The one that was stored but not yet printed when the process died may be there, too.
        assert acknowledged <= reports <= acknowledged + 1
        assert judgment.problem == ""
        acknowledged = reports


@pytest.mark.parametrize("spoiled", ["", "{", '{"version": 1}', "[]", '{"version": 99', "null"])
def test_of_a_spoiled_file_the_last_good_copy_is_used_and_said(
    tmp_path: Path, spoiled: str
) -> None:
    path = tmp_path / "j.json"
    begun(path).report("a", 1.0)
    path.write_text(spoiled)
    judgment = Judgment(path)
    assert judgment.status()["advice"]["reports"] == 1
    assert "the last good copy j.json.good is used" in judgment.status()["problem"]
    assert "last good copy" in judgment.resume()
    assert "last good copy" in judgment.report("b", 1.0).problem
    assert judgment.status()["problem"] == ""
    assert Judgment(path).status()["advice"]["reports"] == 2
    assert (tmp_path / "j.json.spoiled").read_text() == spoiled


def test_a_lost_file_is_taken_from_its_copy(tmp_path: Path) -> None:
    begun(tmp_path / "j.json").report("a", 1.0)
    (tmp_path / "j.json").unlink()
    judgment = Judgment(tmp_path / "j.json")
    assert judgment.status()["advice"]["reports"] == 1
    assert "j.json is missing" in judgment.problem


def test_where_the_copy_is_spoiled_too_nothing_is_used_and_nothing_overwritten(
    tmp_path: Path,
) -> None:
    begun(tmp_path / "j.json")
    for name in ("j.json", "j.json.good"):
        (tmp_path / name).write_text("{")
    judgment = Judgment(tmp_path / "j.json")
    with pytest.raises(JudgmentError, match="Restore one of them, or remove both"):
        judgment.report("a", 1.0)
    assert (tmp_path / "j.json").read_text() == "{"


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(JudgmentError, match="written by a newer coag"):
        parsed_state(json.dumps({**new_state(), "version": STATE_VERSION + 1}))


def test_a_change_that_fails_is_not_stored(tmp_path: Path) -> None:
    for file in (StateFile(None), StateFile(tmp_path / "j.json")):
        with pytest.raises(KeyError), file.changing() as state:
            del state["failures"]["x"]
        assert file.read()["failures"] == {}


def test_a_state_is_read_again_only_when_its_file_has_changed(tmp_path: Path) -> None:
    file, other = StateFile(tmp_path / "j.json"), StateFile(tmp_path / "j.json")
    file.begin(new_state(), anew=False)
    assert file.read() is file.read()
    before = file.read()
    with other.changing() as state:
        state["failures"]["x"] = 1
    assert file.read() is not before
    assert file.read()["failures"] == {"x": 1}


def test_a_state_in_ram_has_no_copy() -> None:
    with pytest.raises(JudgmentError, match="give a path"):
        _ = StateFile(None).copy


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    judgment = Judgment(tmp_path / "file" / "j.json")
    with pytest.raises((JudgmentError, OSError)):
        judgment.report("a", 1.0)


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "j.json"
    path.mkdir()
    with pytest.raises(JudgmentError, match="cannot be"):
        Judgment(path).init(anew=True)
