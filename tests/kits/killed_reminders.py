"""Reminds every second, on a clock of its own, until it is killed, and says what it does.

    python -m kits.killed_reminders FILE

For each line `NUMBER` that it reads, a child of it works on the file from second 1,000 * NUMBER on.
It prints its process id, then `given ID` for each reminder that it is given, and `ended ID` once
it has ended it; and its parent `killed` for each child.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path

from kits.remembered import START

from coag.memory.consolidation import AtEvent, AtTime, Intentions
from coag.memory.dynamics import MemoryDynamics
from coag.schema import SteppingClock


def opened(path: Path, number: int) -> Intentions:
    """The intentions of a file, with a clock that moves a second at each look."""
    clock = SteppingClock(START + timedelta(seconds=1_000 * number), timedelta(seconds=1))
    return Intentions(MemoryDynamics("plain", path=path, owner="ann", clock=clock))


async def _work(path: Path, number: int) -> None:
    intentions = opened(path, number)
    intentions.add("tick", AtTime(at=START, every=1))
    intentions.add("bell", AtEvent(event="bell", recurring=True))
    _say(str(os.getpid()))
    while True:
        intentions.check()
        intentions.happened("bell")
        for percept in await intentions.unperceived():
            _say(f"given {percept.id}")
            intentions.perceived([percept.id])
            _say(f"ended {percept.id}")


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _main(path: Path) -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(_work(path, int(line)))
            finally:
                os._exit(1)  # only what went wrong ends it
        os.waitpid(child, 0)
        _say("killed")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
