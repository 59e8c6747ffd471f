"""Agents, server or both are killed at any moment while activities wait and act.

`COAG_KILLS=1000 python -m pytest -m long tests/coag/situated/test_kills.py` kills as often.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from kits.killed_activities import BEGUN, ORDERS, STORE, TWICE, made

from coag._util.sockets import reserved_port
from coag.situated import STORE_NAME, Activity, ActivityEnd, ActivityStore, is_database

TESTS = Path(__file__).parents[2]
KILLS = int(os.environ.get("COAG_KILLS", "300"))


class Stage:
    """Agents and the server, which can be started and killed."""

    def __init__(self, folder: Path, *database: str, kit: str = "kits.killed_activities") -> None:
        self._held = ExitStack()
        port = self._held.enter_context(reserved_port())
        command = [sys.executable, "-m", kit, str(folder), str(port), *database]
        with (folder / "stderr.txt").open("w") as errors:
            self._parent = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=TESTS,
            )

    def does(self, command: str) -> None:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(f"{command}\n")
        self._parent.stdin.flush()
        assert self._parent.stdout.readline() == f"{command}\n"

    def close(self, *, killed: bool = False) -> None:
        """Waits until all have ended that could still write."""
        if killed:
            self._parent.kill()
        self._parent.communicate(timeout=50)
        self._held.close()


def wait_until(holds: Callable[[], bool]) -> None:
    """Returns once it holds; the test's own time limit ends it otherwise."""
    while not holds():
        threading.Event().wait(0.02)


def kill(folder: Path, kills: int, seed: int, kit: str = "kits.killed_activities") -> None:
    """Kills agent, server or both, and lets the last ones end what they began."""
    dice = random.Random(seed)
    stage = Stage(folder, kit=kit)
    stage.does("start server")
    stage.does("start agent 6")
    wait_until((folder / BEGUN).exists)  # else there may be no activity in the end
    for _ in range(kills):
        threading.Event().wait(dice.random() * dice.choice([0.1, 0.4, 0.8]))
        whom = dice.choice([["agent"], ["agent"], ["server"], ["agent", "server"]])
        for one in whom:
            stage.does(f"kill {one}")
        for one in reversed(whom):
            stage.does(f"start {one}{' 6' if one == 'agent' else ''}")
    stage.does("kill agent")
    stage.does("start agent 0")
    stage.does("wait agent")
    stage.does("kill server")
    stage.close()


@pytest.mark.parametrize("kit", ["kits.killed_activities", "kits.killed_delegation"])
def test_what_a_killed_run_has_started_ends_with_it(tmp_path: Path, kit: str) -> None:
    stage = Stage(tmp_path, kit=kit)
    stage.does("start server")
    stage.does("start agent 6")
    stage.close(killed=True)


def ended(path: Path | str) -> list[Activity]:
    """The activities of a store, all of which have reached their goals."""
    store = ActivityStore(path, owner=not is_database(path))
    activities = store.find()
    store.close()
    assert activities
    assert [(one.id, one.result) for one in activities if one.end is not ActivityEnd.DONE] == []
    return activities


def kill_and_look(folder: Path, kills: int, seed: int) -> None:
    kill(folder, kills, seed)
    done_once(folder, folder / STORE)


def done_once(folder: Path, store: Path | str) -> None:
    """Everything was done, once, and no activity was ever in two steps at the same time."""
    activities = ended(store)
    counts = Counter(made(folder))
    assert counts == {f"{one.id}/{n}": 1 for one in activities for n in range(ORDERS)}
    assert not (folder / TWICE).exists()


def kill_workers(folder: Path, database: str, kills: int, seed: int) -> None:
    """Three workers share a store; they and the server are killed, and started again later."""
    dice = random.Random(seed)
    stage = Stage(folder, database)
    workers = ["agent-1", "agent-2", "agent-3"]
    stage.does("start server")
    for one in workers:
        stage.does(f"start {one} 6")
    wait_until(lambda: any(file.stat().st_size for file in folder.glob("*.lock")))
    for _ in range(kills):
        threading.Event().wait(dice.random() * dice.choice([0.1, 0.4, 0.8]))
        whom = dice.choice([["server"], *([one] for one in workers), workers[:2]])
        for one in whom:
            stage.does(f"kill {one}")
        threading.Event().wait(dice.random() * dice.choice([0.0, 0.2, 4.0]))  # or taken over
        for one in whom:
            stage.does(f"start {one}{'' if one == 'server' else ' 6'}")
    for one in workers:
        stage.does(f"kill {one}")
    for one in workers:
        stage.does(f"start {one} 0")
    for one in workers:
        stage.does(f"wait {one}")
    stage.does("kill server")
    stage.close()
    done_once(folder, database)
    steppers = [set(file.read_text().split()) for file in folder.glob("*.lock")]
    assert max(map(len, steppers)) > 1, "no activity was taken over by another worker"


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_is_done_twice_when_processes_are_killed(
    tmp_path: Path,
) -> None:
    kill_and_look(tmp_path, kills=10, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_no_delegated_goal_is_lost_or_begun_twice_when_either_agent_is_killed(
    tmp_path: Path,
) -> None:
    kill(tmp_path, kills=8, seed=3, kit="kits.killed_delegation")
    mine = ended(tmp_path / STORE)
    theirs = ended(tmp_path / "worker" / STORE_NAME)
    assert {one.result for one in mine} == {"Counted."}, "each result came as a signal"
    goals = Counter(one.goal for one in theirs)
    assert goals == {f"Count for {one.id}.": 1 for one in mine}, "each goal was begun once"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_workers_take_over_the_activities_of_killed_ones_and_do_nothing_twice(
    tmp_path: Path, database: str
) -> None:
    kill_workers(tmp_path, database, kills=6, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_nothing_is_lost_and_nothing_is_done_twice_by_many_kills(tmp_path: Path) -> None:
    kill_and_look(tmp_path, KILLS, seed=2)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_workers_take_over_after_many_kills(tmp_path: Path, database: str) -> None:
    kill_workers(tmp_path, database, KILLS, seed=2)
