"""Runs that earlier versions wrote: each is read, verified, replayed and forked as before.

`old_runs/runs.tar.xz` holds the folders as they were written on 2026-11-24, in format 2, and
`old_runs/expected.json` what every reader said of them then.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coag.agent import CoagAgent
from coag.errors import CoagError
from coag.proof import diagnose, fork, replay, verify, why
from coag.tracing import read_run, read_trace

HERE = Path(__file__).parent / "old_runs"
EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "expected.json").read_text())
TRUST = ("kits", "case_study", "vacuum_world")
FORKED = ("porter-full-json", "porter-compact-memory-on-disk", "foreman-native-batches")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old_runs")
    with tarfile.open(HERE / "runs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their recipes name files by relative paths."""
    monkeypatch.chdir(tmp_path)


async def read_by_all(run: Path) -> dict[str, Any]:
    """What every reader says of a run."""
    try:
        records = Counter(entry.body.record for entry in read_trace(run / "trace.jsonl"))
    except CoagError as error:
        records = Counter({type(error).__name__: 1})
    cycles = int(records.get("snapshot", 0))
    return {
        "agent": read_run(run).agent,
        "records": dict(sorted(records.items())),
        "violations": sorted({str(one.rule) for one in verify(run)}),
        "replay": await _replayed(run),
        "why": [_chosen(run, cycle) for cycle in range(1, min(cycles, 6))],
        "diagnoses": [str(one.cause) for one in diagnose(run)][:10],
    }


async def _replayed(run: Path) -> str:
    try:
        report = await replay(run, trust=TRUST)
    except CoagError as error:
        return type(error).__name__
    found = report.divergence
    return "" if found is None else f"{found.record} {found.field}"


def _chosen(run: Path, cycle: int) -> str:
    try:
        decision = why(run, cycle)
    except CoagError as error:
        return type(error).__name__
    counts = f"{len(decision.considered)} considered, {len(decision.recalled)} recalled"
    return f"{counts}: {decision.situation[:60]}"


@pytest.mark.parametrize("name", sorted(EXPECTED))
async def test_readers_say_of_a_run_what_they_said_when_it_was_written(
    unpacked: Path, name: str
) -> None:
    assert await read_by_all(unpacked / name) == EXPECTED[name]


@pytest.mark.parametrize("name", FORKED)
async def test_a_run_can_be_forked_at_a_phase(unpacked: Path, tmp_path: Path, name: str) -> None:
    report = await fork(
        unpacked / name, "1.reasoning", logs=tmp_path / "forks", trust=TRUST, live=True
    )
    assert verify(report.run) == []


async def test_a_torn_run_is_gone_on_with(unpacked: Path) -> None:
    agent = await CoagAgent.resume(unpacked / "porter-torn-in-a-line", trust=TRUST)
    assert agent.in_turn
    await agent.close()
