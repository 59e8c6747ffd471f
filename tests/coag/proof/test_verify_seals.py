"""What a seal and the form of a line leave no way around."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from kits.tampering import honest_run

from coag.errors import TraceError
from coag.proof import Rule, verify
from coag.tracing import RunFolder, TraceProblem, read_trace

pytestmark = pytest.mark.broken_trace("it lies in the trace")


async def copied(tmp_path: Path) -> RunFolder:
    run = await honest_run(tmp_path / "honest")
    return RunFolder(Path(shutil.copytree(run, tmp_path / "copy" / run.name)))


def rules(run: RunFolder) -> set[Rule]:
    return {violation.rule for violation in verify(run)}


async def test_an_ended_run_whose_seal_was_taken_away_is_told(tmp_path: Path) -> None:
    run = await copied(tmp_path)
    run.info_path.write_text(json.dumps({**json.loads(run.info_path.read_text()), "seal": None}))
    assert rules(run) == {Rule.SEAL}


async def test_what_is_put_behind_a_sealed_trace_is_told(tmp_path: Path) -> None:
    run = await copied(tmp_path)
    with run.trace_path.open("ab") as trace:
        trace.write(b"and more")
    assert rules(run) == {Rule.SEAL}


async def test_a_line_cannot_be_called_an_older_one(tmp_path: Path) -> None:
    run = await copied(tmp_path)
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'{"v":2,', b'{"v":1,')
    run.trace_path.write_bytes(b"".join(lines))
    assert Rule.CHAIN in rules(run)


async def test_a_version_that_is_no_number_is_told(tmp_path: Path) -> None:
    run = await copied(tmp_path)
    run.trace_path.write_bytes(run.trace_path.read_bytes().replace(b'{"v":2,', b'{"v":"1",', 1))
    assert rules(run)
    problems: list[TraceProblem] = []
    with pytest.raises(TraceError, match="line 1"):
        list(read_trace(run.trace_path, problems.append))
