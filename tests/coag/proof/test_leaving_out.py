"""Runs from which parts were left out are verified, replayed and forked like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.foragers import foraged
from kits.porters import TASK, porter

from coag.cycle import Ablation
from coag.proof import fork, replay, verify
from coag.schema import Note
from coag.tracing import RunFolder, read_run, read_trace

EACH: list[tuple[Ablation, ...]] = [
    ("retrieval",),
    ("reasoning",),
    ("evaluation",),
    ("rewriting",),
    ("retrieval", "reasoning", "evaluation", "rewriting"),
]


async def _run(without: tuple[Ablation, ...], where: Path) -> RunFolder:
    agent = porter(log=str(where / "calls.txt"), logs=str(where / "logs"), without=without)
    said = [TextMessage(content=TASK, source="user")]
    await agent.on_messages(said, CancellationToken())
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder


@pytest.mark.parametrize("without", EACH)
async def test_a_run_without_parts_is_verified_and_replayed(
    without: tuple[Ablation, ...], tmp_path: Path
) -> None:
    run = await _run(without, tmp_path)
    assert verify(run.path) == []
    assert read_run(run.path).configuration["settings"]["ablations"] == sorted(without)
    report = await replay(run)
    assert report.divergence is None, str(report.divergence)


@pytest.mark.parametrize("at", ["2.retrieval", "2.reasoning", "2.proposal", "2.selection"])
async def test_a_fork_leaves_out_what_its_parent_left_out(at: str, tmp_path: Path) -> None:
    without = EACH[-1]
    run = await foraged(tmp_path, without=without)
    report = await fork(run, at, logs=tmp_path / "forks")
    assert report.fork_cycles == report.parent_cycles
    assert verify(report.run) == []
    notes = [e.body for e in read_trace(RunFolder(report.run).trace_path)]
    told = {note.details.get("part") for note in notes if isinstance(note, Note)}
    assert set(without) <= told
