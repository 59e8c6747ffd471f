"""What outlives a run is left as it is by a replay, a fork and a look at it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from kits.report_clerks import clerk

from coag.judgment import DeadEnd, Judgment, Origin
from coag.proof import Changes, fork, replay, verify, why
from coag.schema import EvaluationOutcome
from coag.tracing import RunFolder, read_trace

TASK = "Export the report."


def digests(folder: Path) -> dict[str, str]:
    """The content of every file, by its name; an open SQLite file's log and its index aside."""
    files = (one for one in folder.rglob("*") if one.is_file() and one.suffix not in SIDE_FILES)
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


SIDE_FILES = (".db-wal", ".db-shm", ".lock")


@pytest.fixture(params=["export", "nothing that happens"])
async def run(request: pytest.FixtureRequest, tmp_path: Path) -> RunFolder:
    """A run in which a reminder came, or none."""
    agent = clerk(files=str(tmp_path / "files"), logs=str(tmp_path / "logs"), about=request.param)
    await agent.run(task=TASK)
    await agent.close()
    (folder,) = (one for one in (tmp_path / "logs").iterdir() if one.is_dir())
    return RunFolder(folder)


async def test_replays_forks_and_looks_change_no_file_of_a_module(
    run: RunFolder, tmp_path: Path
) -> None:
    before = digests(tmp_path / "files")
    assert {"judgment.json", "mind.db"} <= set(before)
    await replay(run, trust=["kits.report_clerks"])
    await fork(run, "1.proposal", logs=tmp_path / "forks", trust=["kits.report_clerks"])
    await fork(
        run, "1", Changes(depth="full"), logs=tmp_path / "more", trust=["kits.report_clerks"]
    )
    assert verify(run) == []
    why(run, 1)
    assert digests(tmp_path / "files") == before


@pytest.mark.parametrize("run", ["nothing that happens"], indirect=True)
async def test_a_replay_has_the_dead_ends_of_its_run_and_no_later_ones(
    run: RunFolder, tmp_path: Path
) -> None:
    state = Judgment(tmp_path / "files" / "judgment.json")
    (closed,) = state.dead_ends()
    later = DeadEnd(
        origin=Origin(source="ann", trust="user", at=closed.origin.at), topic="text",
        why_closed="nobody reads it", capabilities=("export",), arguments={"form": "txt"},
    )  # fmt: skip
    state.reflect(later)
    state.reopen({closed.id: "PDF was installed"})
    report = await replay(run, trust=["kits.report_clerks"])
    assert report.same, report.divergence
    assert len(state.entries()) == 2


async def test_a_dead_end_that_closed_in_the_run_closes_in_the_fork(
    run: RunFolder, tmp_path: Path
) -> None:
    report = await fork(run, "2", logs=tmp_path / "forks", trust=["kits.report_clerks"])
    every = [one.body for one in read_trace(RunFolder(report.run).trace_path)]
    judged = [one for one in every if isinstance(one, EvaluationOutcome)]
    rules = {v.constraint for one in judged for e in one.evaluations for v in e.verdicts}
    assert "judgment_dead_ends" in rules
