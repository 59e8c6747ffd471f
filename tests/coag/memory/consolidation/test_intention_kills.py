"""Reminders of a process that is killed again and again: none is lost, and none comes twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from kits.killed_reminders import opened

TESTS = Path(__file__).parents[3]


def killed_often(path: Path, kills: int, seed: int) -> list[str]:
    """What the processes said that used a file and were each killed at a random line."""
    dice, said = random.Random(seed), list[str]()
    command = [sys.executable, "-m", "kits.killed_reminders", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        for number in range(kills):
            parent.stdin.write(f"{number}\n")
            parent.stdin.flush()
            worker = int(parent.stdout.readline())
            said += [parent.stdout.readline().strip() for _ in range(dice.randint(0, 12))]
            os.kill(worker, signal.SIGKILL)
            while (line := parent.stdout.readline().strip()) != "killed":
                said.append(line)
        parent.stdin.close()
    return said


async def reminded_as_promised(path: Path, kills: int, seed: int) -> None:
    said = [line.split() for line in killed_often(path, kills, seed)]
    intentions = opened(path, kills)
    left = [one.id for one in await intentions.unperceived()]
    ended, numbers = set[str](), defaultdict[str, set[int]](set)
    for what, one in [*said, *(("given", one) for one in left)]:
        if what == "ended":
            ended.add(one)
            continue
        assert one not in ended, f"{one} was perceived, and is given again"
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
