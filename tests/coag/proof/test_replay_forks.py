"""Forks are replayed as what they are: runs that begin with the state of another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kits.foragers import GREEN
from kits.porters import scholar
from kits.runs import edited, run_of, with_info

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


async def test_a_fork_is_replayed_from_each_phase_with_each_kind_of_change(
    berries: RunFolder, tmp_path: Path
) -> None:
    for number, phase in enumerate(PHASES):
        changes = of_each_kind(berries)
        made = await fork(berries, f"2.{phase}", changes[number % len(changes)], logs=tmp_path)
        assert (await check_same(made)).remarks == ()


async def test_forks_of_forks_are_replayed_with_all_that_was_changed(
    berries: RunFolder, tmp_path: Path
) -> None:
    changes = Changes(without_constraints=(ENOUGH,))
    first = await fork(berries, "2.proposal", changes, logs=tmp_path)
    second = await fork(first.run, "3.execution", Changes(settings={"held": 0}))
    third = await fork(second.run, "3.execution", turns=0)
    for forked in (first, second, third):
        await check_same(forked)


@pytest.mark.parametrize("at", ["1.selection", "1.execution"])
async def test_a_fork_that_stopped_before_it_acted_is_replayed(
    at: str, bare_berries: RunFolder, tmp_path: Path
) -> None:
    forked = await fork(bare_berries, at, logs=tmp_path)
    assert forked.stopped is not None
    await check_same(forked)


@pytest.mark.broken_trace("it edits what a fork remembers, and run.json")
async def test_what_a_fork_remembers_is_known_to_its_replay_and_without_a_parent_it_is_refused(
    tmp_path: Path,
) -> None:
    forked = await fork(await run_of(scholar(logs=str(tmp_path)), "Learn."), "2.execution")
    report = await check_same(forked)
    assert report.remarks == ()
    folder = RunFolder(forked.run)
    folder.remembered_path.write_text("no record\n")
    with pytest.raises(TraceError, match="no records of a fork's memory"):
        await replay(folder)
    folder.remembered_path.unlink()
    assert (await replay(folder)).same
    with_info(folder, parent=None)
    with pytest.raises(TraceError, match="names no parent, though the trace begins as a fork"):
        await replay(folder)


@pytest.mark.broken_trace("how a turn ended is changed")
async def test_a_fork_is_replayed_without_its_parent_unless_a_bound_counts_on_it(
    own_berries: RunFolder,
) -> None:
    later = [await fork(own_berries, "4"), await fork(own_berries, "4", turns=0)]
    answered = await fork(own_berries, "2.proposal")
    bounded = RunFolder((await fork(own_berries, "2.proposal", turns=0)).run)
    shutil.rmtree(own_berries.path)
    for forked in (answered, *later):
        assert (await check_same(forked)).remarks == ()
    edited(bounded, lambda bodies: bodies[-1].update(reason="cycles"))
    report = await replay(bounded)
    assert report.divergence is not None
    assert f"is not in {own_berries.path.name} any more" in " ".join(report.remarks)
