"""Forks are replayed as what they are: runs that begin where another one stood."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.foragers import GREEN, foraged
from kits.porters import scholar
from kits.runs import with_info

from coag.errors import TraceError
from coag.memory import seed_procedures
from coag.proof import Changes, ForkReport, ReplayReport, fork, replay
from coag.schema import PHASES, RetrievalOutcome
from coag.tracing import RunFolder, read_trace

ENOUGH = "two_are_enough"


async def check_same(forked: ForkReport) -> ReplayReport:
    report = await replay(forked.run)
    assert report.divergence is None, f"{forked.at}, {forked.changes}: {report.divergence}"
    length = sum(1 for _ in read_trace(RunFolder(forked.run).trace_path))
    assert report.records == length - (forked.stopped is not None)  # the note why it stopped
    return report


def bitter_of(run: RunFolder) -> str:
    """The record that the run recalled."""
    bodies = (entry.body for entry in read_trace(run.trace_path))
    return next(r.records[0].record.id for r in bodies if isinstance(r, RetrievalOutcome))


def of_each_kind(run: RunFolder) -> list[Changes]:
    text = f"{seed_procedures()['proposal'].text}\n{GREEN}"
    return [
        Changes(),
        Changes(without_records=(bitter_of(run),)),
        Changes(without_constraints=(ENOUGH,)),
        Changes(procedures={"proposal": text}, without_constraints=("nothing_green",)),
        Changes(settings={"held": 0, "colours": []}),
    ]


async def test_a_fork_is_replayed_from_each_phase_with_each_kind_of_change(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    for number, phase in enumerate(PHASES):
        changes = of_each_kind(run)
        report = await check_same(await fork(run, f"2.{phase}", changes[number % len(changes)]))
        assert report.remarks == ()


@pytest.mark.long
@pytest.mark.parametrize("world", [True, False])
@pytest.mark.parametrize("cycle", [1, 2, 3, 4])
async def test_every_fork_is_replayed(cycle: int, world: bool, tmp_path: Path) -> None:
    run = await foraged(tmp_path, world=world)
    for phase in PHASES:
        for changes in of_each_kind(run):
            await check_same(await fork(run, f"{cycle}.{phase}", changes))


async def test_a_fork_with_another_model_is_replayed_without_it(tmp_path: Path) -> None:
    done = {"action": "respond", "arguments": '{"text": "I rest."}', "score": 0.9}
    answer = {"situation": "", "risks": [], "goal_status": "open", "candidates": [done]}
    component = {
        "provider": "autogen_ext.models.replay.ReplayChatCompletionClient",
        "component_type": "model",
        "config": {"chat_completions": [json.dumps(answer)] * 5},
    }
    model = tmp_path / "lazy.json"
    model.write_text(json.dumps(component))
    forked = await fork(await foraged(tmp_path, depth="compact"), "2", Changes(model=str(model)))
    model.unlink()
    await check_same(forked)


async def test_forks_of_forks_are_replayed_with_all_that_was_changed(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    first = await fork(run, "2.proposal", Changes(without_constraints=(ENOUGH,)))
    second = await fork(first.run, "3.execution", Changes(settings={"held": 0}))
    third = await fork(second.run, "3.execution", turns=0)
    for forked in (first, second, third):
        await check_same(forked)


@pytest.mark.parametrize("at", ["1.selection", "1.execution"])
async def test_a_fork_that_stopped_before_it_acted_is_replayed(at: str, tmp_path: Path) -> None:
    forked = await fork(await foraged(tmp_path, world=False), at)
    assert forked.stopped is not None
    await check_same(forked)


@pytest.mark.broken_trace("it edits what a fork remembers")
async def test_what_a_fork_remembers_is_known_to_its_replay(tmp_path: Path) -> None:
    agent = scholar(logs=str(tmp_path / "logs"))
    said = [TextMessage(content="Learn.", source="user")]
    await agent.on_messages(said, CancellationToken())
    assert agent.run_folder is not None
    await agent.close()
    forked = await fork(agent.run_folder, "2.execution")
    report = await check_same(forked)
    assert report.remarks == ()
    kept = forked.run / "remembered.jsonl"
    kept.write_text("no record\n")
    with pytest.raises(TraceError, match="no records of a fork's memory"):
        await replay(forked.run)


@pytest.mark.broken_trace("how a turn ended is changed")
async def test_a_fork_is_replayed_without_its_parent_unless_a_bound_counts_on_it(
    tmp_path: Path,
) -> None:
    run = await foraged(tmp_path)
    answered = await fork(run, "2.proposal")
    bounded = await fork(run, "2.proposal", turns=0)
    lines = RunFolder(bounded.run).trace_path.read_text().splitlines()
    last: dict[str, Any] = json.loads(lines[-1])
    assert last["body"]["record"] == "turn_end"
    shutil.rmtree(run.path)
    assert (await check_same(answered)).remarks == ()
    last["body"]["reason"] = "cycles"
    RunFolder(bounded.run).trace_path.write_text("\n".join([*lines[:-1], json.dumps(last)]) + "\n")
    report = await replay(bounded.run)
    assert report.divergence is not None
    assert f"is not in {run.path.name} any more" in " ".join(report.remarks)


@pytest.mark.broken_trace("it edits run.json and what a fork remembers")
async def test_a_fork_without_its_memory_is_replayed_and_without_a_parent_it_is_refused(
    tmp_path: Path,
) -> None:
    forked = RunFolder((await fork(await foraged(tmp_path), "2.retrieval")).run)
    forked.remembered_path.unlink()
    assert (await replay(forked)).same
    with_info(forked, parent=None)
    with pytest.raises(TraceError, match="names no parent, though the trace begins as a fork"):
        await replay(forked)


async def test_a_fork_of_an_orphan_in_a_later_turn_is_replayed(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    forks = [await fork(run, "4"), await fork(run, "4", turns=0)]
    shutil.rmtree(run.path)
    for forked in forks:
        assert (await replay(forked.run)).same
