"""Belief beside truth over the cycles of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kits.hostile import hostile_run
from kits.tracked import index_of, snapshot, thought, written_run

from coag.inspector.tracks import belief
from coag.inspector.views import Belief, BeliefTrack
from coag.schema import TraceRecord

pytestmark = pytest.mark.broken_trace("their records are made up")


def believed(tmp_path: Path, *snapshots: tuple[dict[str, Any], Any], limit: int = 500) -> Belief:
    records: list[TraceRecord] = []
    for cycle, (state, environment) in enumerate(snapshots, 1):
        records += [snapshot(cycle, state, environment=environment), *thought(cycle)]
    return belief(index_of(written_run(tmp_path, records)), "robot", limit=limit)


def track(found: Belief, path: str) -> BeliefTrack:
    return next(each for each in found.tracks if each.path == path)


def test_belief_and_truth_are_told_for_each_cycle(tmp_path: Path) -> None:
    world = {"robots": [{"name": "robot", "battery": 90}]}
    found = believed(tmp_path, ({"battery": 90}, world), ({"battery": 80}, world))
    battery = track(found, "battery")
    assert found.told
    assert battery.true_path == "robots[robot].battery"
    assert battery.numeric
    assert [(p.cycle, p.believed, p.true) for p in battery.points] == [(1, 90, 90), (2, 80, 90)]
    assert battery.wrong == 1


def test_an_environment_that_is_not_told_again_is_as_it_was(tmp_path: Path) -> None:
    states = [({"battery": 5}, {"battery": 5}), ({"battery": 5}, None), ({"battery": 4}, None)]
    battery = track(believed(tmp_path, *states), "battery")
    assert [point.true for point in battery.points] == [5, 5, 5]
    assert battery.wrong == 1


def test_without_a_truth_belief_stands_alone(tmp_path: Path) -> None:
    found = believed(tmp_path, ({"battery": 5}, None), ({"battery": 4}, None))
    assert not found.told
    assert track(found, "battery").true_path == ""
    assert track(found, "battery").wrong == 0


def test_fields_with_a_truth_come_first_and_then_those_that_change(tmp_path: Path) -> None:
    one = ({"still": 1, "moves": 1, "checked": 1}, {"checked": 1})
    other = ({"still": 1, "moves": 2, "checked": 1}, None)
    paths = [each.path for each in believed(tmp_path, one, other).tracks]
    assert paths == ["checked", "moves", "still"]


def test_of_a_long_run_some_cycles_are_looked_at(tmp_path: Path) -> None:
    states = [({"battery": n}, {"battery": n} if n % 7 == 0 else None) for n in range(50)]
    found = believed(tmp_path, *states, limit=10)
    battery = track(found, "battery")
    assert found.every == 5
    assert [point.cycle for point in battery.points] == list(range(1, 51, 5))
    assert [point.true for point in battery.points] == [n // 7 * 7 for n in range(0, 50, 5)]


def test_a_field_that_is_not_always_held_has_gaps(tmp_path: Path) -> None:
    found = believed(tmp_path, ({}, None), ({"bump": [1, 2]}, None), ({}, None))
    assert [point.believed for point in track(found, "bump").points] == [None, [1, 2], None]
    assert track(found, "bump").numeric


def test_words_are_not_numeric(tmp_path: Path) -> None:
    found = believed(tmp_path, ({"door": "open", "level": 1}, None), ({"level": "low"}, None))
    assert not track(found, "door").numeric
    assert not track(found, "level").numeric


def test_a_run_without_snapshots_of_cycles_has_no_belief(tmp_path: Path) -> None:
    assert belief(index_of(hostile_run(tmp_path)), "robot").tracks == ()
