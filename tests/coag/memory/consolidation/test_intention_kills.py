"""Reminders of a process that is killed again and again: none is lost, and none comes twice."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from kits.killed_reminders import opened
from kits.killing import Killer


async def reminded_as_promised(path: Path, kills: int, seed: int) -> None:
    said, killer = list[str](), Killer("kits.killed_reminders", path, most=12)
    try:
        for number in range(kills):
            said += killer.kill_one(seed + number, number)
    finally:
        killer.close()
    intentions = opened(path, kills)
    left = [("given", one.id) for one in await intentions.unperceived()]
    over, numbers = set[str](), defaultdict[str, set[int]](set)
    for what, one in [*(pair for line in said for pair in json.loads(line).items()), *left]:
        if what == "over":
            over.add(one)
            continue
        assert one not in over, f"{one} was perceived, and is given again"
        name, number = one.split("/")
        numbers[name].add(int(number))
    assert len(numbers) == 2
    for given in numbers.values():
        assert given == set(range(1, len(given) + 1)), "a reminder was lost"
    assert len(intentions.pending()) == 2


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_no_reminder_is_lost_or_comes_twice_over_kills(tmp_path: Path) -> None:
    await reminded_as_promised(tmp_path / "dynamics.sqlite3", kills=25, seed=1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(100, 105))
async def test_no_reminder_is_lost_or_comes_twice_over_many_kills(
    tmp_path: Path, seed: int
) -> None:
    await reminded_as_promised(tmp_path / "dynamics.sqlite3", kills=200, seed=seed)
