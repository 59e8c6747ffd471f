from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coag.evals import Assessment

PONDS = ("--domain", "kits.ponds:DOMAIN", "--scenarios", "small-pond", "--model", "scripted:sound")
Ended = tuple[int, str, str]
Run = Callable[..., Ended]


@pytest.fixture
def run(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `case-study` with these words; returns its exit code, output and errors."""

    def call(*words: str) -> Ended:
        code, printed = command(*words), capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_one_job_is_assessed_printed_measured_again_and_reported(run: Run, tmp_path: Path) -> None:
    folder = str(tmp_path / "a")
    jobs = ("--agents", "oracle", "--scenarios", "B", "--seeds", "1", "-o", folder)
    code, out, _ = run("assess", *jobs, "--keep", "all")
    assert code == 0
    assert "oracle" in out
    assert "B energy-dilemma" in out
    assert "case-study report" in out
    plan = json.loads((tmp_path / "a" / "assessment.json").read_text())
    assert plan["command"] == (
        "case-study assess --agents oracle --scenarios energy-dilemma --seeds 1"
    )
    code, out, _ = run("assess", "--measure-again", "-o", folder)
    assert (code, out) == (0, "Trials measured again: 1; the same as before: 1.\n")
    page = tmp_path / "page.html"
    code, out, _ = run("report", folder, "-o", str(page))
    assert code == 0
    assert page.is_file()
    assert page.with_suffix(".json").is_file()
    assert "page.md" in out


def test_a_local_and_a_served_world_are_cross_checked(run: Run, tmp_path: Path) -> None:
    jobs = ("--agents", "rules", "--scenarios", "energy-dilemma", "--seeds", "1")
    run("assess", *jobs, "-o", str(tmp_path / "local"))
    run("assess", *jobs, "--place", "served", "-o", str(tmp_path / "served"))
    code, out, _ = run("cross-check", str(tmp_path / "local"), str(tmp_path / "served"))
    assert (code, out) == (0, "1 of 1 jobs had the same result.\n")


@pytest.mark.long
@pytest.mark.timeout(280)
def test_a_served_world_with_chroma_gives_the_outcomes_of_a_local_one(
    run: Run, tmp_path: Path
) -> None:
    jobs = (
        *("--agents", "random,plain,plain-memory,plain-guarded,coag-compact,coag-full"),
        *("--scenarios", "A-D", "--seeds", "1", "--model", "scripted:sound"),
    )
    run("assess", *jobs, "-o", str(tmp_path / "local"))
    run("assess", *jobs, "--place", "served", "-o", str(tmp_path / "served"))
    code, out, _ = run("cross-check", str(tmp_path / "local"), str(tmp_path / "served"))
    assert (code, out) == (0, "24 of 24 jobs had the same result.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--agents", "coag"), "no contender named 'coag'. Known: ablations, all, coag-auto"),
        (("--scenarios", "mars"), "no scenario named 'mars'. Known:"),
        (("--model", "scripted:wise"), "wise"),
        (("--seeds", "0"), "asks for no seed"),
        (("--domain", "mars"), "There is no domain 'mars'"),
        (("--domain", "kits.ponds:CONTENDERS"), "is no domain"),
        (("--fewer-seeds", "plain"), "coag-full=3"),
        (("--measure-again",), "There is no assessment"),
    ],
)
def test_what_cannot_be_assessed_is_refused_before_anything_is_written(
    words: tuple[str, ...], message: str, run: Run, tmp_path: Path
) -> None:
    code, _, err = run("assess", *words, "-o", str(tmp_path / "a"))
    assert code == 2
    assert message in err
    assert not (tmp_path / "a").exists()


def test_a_broken_trial_is_reported_and_makes_the_exit_code_one(run: Run, tmp_path: Path) -> None:
    jobs = (*PONDS, "--agents", "buggy", "--seeds", "1", "-o", str(tmp_path / "a"))
    code, out, err = run("assess", *jobs)
    assert code == 1
    assert "Broken and not counted: 1" in out
    assert "Jobs to go: 1." in out
    assert "ZeroDivisionError" in err
    code, _, err = run("assess", *jobs[:-2], "--seeds", "2", "-o", str(tmp_path / "a"))
    assert code == 2
    assert "seeds there 0, asked for 0-1" in err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_sweep_that_is_killed_loses_its_running_trials_only_and_continues(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a"
    words = [sys.executable, "-m", "case_study", "assess", *PONDS, "--processes", "2"]
    words += ["--agents", "fisher,patient", "--seeds", "2", "--keep", "all", "-o", str(folder)]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as sweeping:
        assert sweeping.stderr is not None
        waiting = [line for _, line in zip(range(2), sweeping.stderr, strict=False)]
        sweeping.kill()
        rest = sweeping.stderr.read()  # ends when the last worker has ended
    assert waiting == ["waiting\n"] * 2
    assert "Traceback" not in rest
    before = Assessment.read(folder)
    assert {(each.job.contender, each.job.seed) for each in before.trials} == {
        ("fisher", 0),
        ("fisher", 1),
    }
    (folder / "go").touch()
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "2 of 4 jobs are played already." in ended.stderr
    after = Assessment.read(folder)
    assert after.complete
    assert [each for each in after.trials if each.job.contender == "fisher"] == list(before.trials)


def test_episodes_ask_for_sequences_of_both_arms_which_can_be_continued(
    run: Run, tmp_path: Path
) -> None:
    folder = str(tmp_path / "a")
    jobs = ("--agents", "coag-compact", "--scenarios", "F", "--model", "scripted:sound")
    words = ("--episodes", "2", *jobs, "--seeds", "1", "--processes", "1", "-o", folder)
    code, out, _ = run("assess", *words)
    assert code == 0
    assert "coag-compact:emptied" in out
    plan = json.loads((tmp_path / "a" / "assessment.json").read_text())
    assert (plan["domain"], plan["conditions"]["episodes"]) == ("episodes", 2)
    assert plan["command"] == (
        "case-study assess --agents coag-compact:kept,coag-compact:emptied "
        "--scenarios false-manual --model scripted:sound --seeds 1 --episodes 2"
    )
    code, out, _ = run("assess", "-o", folder)
    assert code == 0
    code, _, err = run("assess", "--episodes", "3", "-o", folder)
    assert code == 2
    assert "episodes there 2, asked for 3" in err


def test_episodes_in_a_domain_without_sequences_are_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run("assess", *PONDS, "--episodes", "2", "-o", str(tmp_path / "a"))
    assert code == 2
    assert "plays none" in err
