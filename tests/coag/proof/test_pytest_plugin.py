"""The plugin by which users have the runs of their own tests verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from kits.tampering import bodies_of, edit, forge, honest_run

from coag.proof.pytest_plugin import BrokenTraceError, check_runs

BROKEN = pytest.mark.broken_trace("it lies in the trace")


async def test_runs_are_found_however_deep_and_counted(tmp_path: Path) -> None:
    await honest_run(tmp_path / "a" / "b")
    await honest_run(tmp_path)
    assert check_runs(tmp_path) == 2


@BROKEN
async def test_what_is_violated_or_cannot_be_read_is_named_with_its_run(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    bodies = bodies_of(run)
    bodies[-1]["response"] = "Something else."
    forge(run, bodies)
    with pytest.raises(BrokenTraceError, match=rf"{run.name}: line {len(bodies)}.*turn: Turn 2"):
        check_runs(tmp_path)
    (run / "run.json").write_text("{}")
    with pytest.raises(BrokenTraceError, match="describes no run"):
        check_runs(tmp_path)


TESTS = """
    import shutil, pytest

    def test_that_leaves_a_broken_run(tmp_path):
        shutil.copytree({run!r}, tmp_path / "run")

    @pytest.mark.broken_trace("on purpose")
    def test_that_says_so(tmp_path):
        shutil.copytree({run!r}, tmp_path / "run")

    @pytest.mark.broken_trace
    def test_that_does_not_say_why(tmp_path):
        shutil.copytree({run!r}, tmp_path / "run")
"""


@BROKEN
async def test_a_test_fails_that_leaves_a_broken_run_and_does_not_say_why(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    run = await honest_run(tmp_path)
    edit(run, lambda lines: lines[:-1])
    pytester.makeconftest('pytest_plugins = ["coag.proof.pytest_plugin"]')
    pytester.makepyfile(TESTS.format(run=str(run)))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*seal: run.json seals*", "*broken_trace needs a reason*"])
    result.stdout.no_fnmatch_line("*coag*pytest_plugin.py*")


@BROKEN
async def test_a_word_that_was_changed_in_many_places_is_reported_once(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    trace = run / "trace.jsonl"
    trace.write_bytes(trace.read_bytes().replace(b'"at":"20', b'"at":"19'))
    with pytest.raises(BrokenTraceError) as caught:
        check_runs(tmp_path)
    assert str(caught.value).count(": chain: ") == 1
    assert "The same holds for" in str(caught.value)
