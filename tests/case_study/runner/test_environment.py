"""The world of a case in its runs' snapshots, and forks that play in a world of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from case_study.measures import CaseResult
from case_study.runner import CaseFolder
from coag.errors import UnknownNameError
from coag.proof import Changes, CycleResult, ForkReport, counterfactuals, fork
from coag.schema import Snapshot
from coag.tracing import RunFolder, list_runs, read_trace

Play = Callable[..., Awaitable[CaseResult]]
RULE = "keep_charge_to_reach_charger"


def only_run(result: CaseResult) -> RunFolder:
    (run,) = list_runs(Path(result.run))
    return run


def actions(report: ForkReport) -> list[str]:
    return [" ".join(map(str, story.chosen or ())) for story in report.fork_cycles]


def died_of(story: CycleResult) -> list[str]:
    return [death.constraint for death in story.deaths]


async def test_without_its_rule_the_robot_is_stranded_and_with_it_not(
    play: Play, tmp_path: Path
) -> None:
    result = await play("energy-dilemma", "coag", "impulsive", seed=0, depth="compact")
    assert result.success
    run = only_run(result)
    same = await fork(run, "1", logs=tmp_path / "forks")
    other = await fork(run, "1", Changes(without_constraints=(RULE,)), logs=tmp_path / "forks")
    assert same.fork_cycles == same.parent_cycles
    assert same.fork_end is not None
    assert "stranded" not in same.fork_end
    assert other.fork_end is not None
    assert "stranded" in other.fork_end
    assert RULE in died_of(other.parent_cycles[0])
    assert RULE not in died_of(other.fork_cycles[0])
    assert actions(other)[0] == "clean_current_cell {}"


async def test_forks_beside_their_parent_are_no_runs_of_the_case(play: Play) -> None:
    result = await play("energy-dilemma", "coag", "impulsive", seed=1, depth="compact")
    run = only_run(result)
    await fork(run, "2.evaluation")
    folder = CaseFolder(Path(result.run))
    assert len(list(list_runs(folder.path))) == 2
    assert folder.run_of(1) == run


async def test_snapshots_hold_the_world_without_its_log(play: Play) -> None:
    result = await play("energy-dilemma", "coag", "sound", seed=1, depth="compact")
    entries = read_trace(only_run(result).trace_path)
    worlds = [e.body.environment for e in entries if isinstance(e.body, Snapshot)]
    told = [world for world in worlds if world is not None]
    assert len(told) > 3
    assert all("log" not in world for world in told)
    assert [world["counters"]["actions"] for world in told] == list(range(len(told)))


async def test_a_fork_may_go_on_with_another_temperament(play: Play, tmp_path: Path) -> None:
    result = await play("energy-dilemma", "coag", "impulsive", seed=0, depth="compact")
    run = only_run(result)
    report = await fork(run, "1", Changes(model="scripted:sound"), logs=tmp_path / "forks")
    assert RULE in died_of(report.parent_cycles[0])
    assert RULE not in died_of(report.fork_cycles[0])
    assert actions(report)[0] == 'move_agent {"direction": "north"}'
    with pytest.raises(UnknownNameError, match="impulsive"):
        await fork(run, "1", Changes(model="scripted:none"), logs=tmp_path / "forks")


async def test_the_wall_that_was_remembered_is_what_the_way_around_it_hung_on(play: Play) -> None:
    result = await play("sudden-wall", "coag", "sound", seed=0, depth="compact")
    second = CaseFolder(Path(result.run)).run_of(2)
    assert second is not None
    control, without = await counterfactuals(second, 1)
    assert (control.changed, without.changed) == (0, 1)
    assert without.record is not None
    assert "is blocked" in without.record.record.text


@pytest.mark.long
async def test_a_rule_that_came_later_comes_in_a_fork_too(play: Play, tmp_path: Path) -> None:
    result = await play("evolution", "coag", "sound", seed=0, depth="compact")
    run = only_run(result)
    early = await fork(run, "1", logs=tmp_path / "forks")
    assert early.fork_cycles == early.parent_cycles
    last = early.parent_cycles[-1].cycle
    late = await fork(run, f"{last}.evaluation", logs=tmp_path / "forks")
    assert late.fork_cycles == late.parent_cycles
