"""What is in a folder after its user was killed while it wrote, recalled, slept or restored.

`COAG_KILLS=1000 python -m pytest -m long tests/coag/memory/consolidation/test_kills.py` kills as
often.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from kits.killed_sleepers import Promised, opened
from kits.killing import Killer

from coag.memory.consolidation import sleep
from coag.schema import Record

KILLS = int(os.environ.get("COAG_KILLS", "100"))
"""How many kills the long test makes."""
IN_ONE_FOLDER = 25
"""After so many kills a new folder is taken, so that none gets so large that it takes long."""


async def look_again(folder: Path, promised: Promised, number: int) -> None:
    """Checks the folder, and takes what was begun for what is there."""
    memory, _ = opened(folder, number)
    dynamics = memory.dynamics
    assert dynamics is not None
    here = {one.id: one async for some in memory.store.scan() for one in some}
    away = {one.id: one for some in dynamics.archive.scan() for one in some}
    there = {**away, **here}
    for name, text in promised.held.items():
        if name not in promised.begun:
            assert name in there, f"{text!r} was acknowledged, and is neither here nor there"
            assert {one.text for one in (here.get(name), away.get(name)) if one} == {text}
    unknown = there.keys() - promised.held.keys() - promised.begun.keys()
    graduated = {one.id for one in there.values() if len(one.lineage.derived_from) == 1}
    assert unknown <= graduated
    in_both = here.keys() & away.keys()
    assert in_both <= {*dynamics.archive.unfinished("alice", 10_000)}
    resolvable(there)
    report = await sleep(memory, allow_clock_jump=True)
    assert report.finished, report.lines()
    left = {one.id async for some in memory.store.scan() for one in some}
    assert left.isdisjoint(dynamics.archive.has(left))
    assert left | dynamics.archive.has(there) >= there.keys()
    promised.held = {one.id: one.text for one in there.values()}
    promised.begun = {}
    await memory.close()


def resolvable(there: dict[str, Record]) -> None:
    """What a record took the place of, or is derived from, can be had."""
    for record in there.values():
        for name in filter(None, (record.supersedes, *record.lineage.derived_from)):
            assert name in there, f"{record.text!r} names {name}, which is nowhere"


async def kill_many(folder: Path, kills: int, seed: int) -> None:
    promised, killer = Promised(), Killer("kits.killed_sleepers", folder, most=40)
    try:
        for number in range(kills):
            promised.hear(await asyncio.to_thread(killer.kill_one, seed + number, number))
            await look_again(folder, promised, number)
    finally:
        await asyncio.to_thread(killer.close)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_nothing_acknowledged_is_lost_by_a_kill_and_the_next_sleep_completes_it(
    tmp_path: Path,
) -> None:
    await kill_many(tmp_path, kills=10, seed=1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1000, 1000 + KILLS, IN_ONE_FOLDER))
async def test_nothing_acknowledged_is_lost_at_many_more_points(tmp_path: Path, seed: int) -> None:
    await kill_many(tmp_path, kills=IN_ONE_FOLDER, seed=seed)
