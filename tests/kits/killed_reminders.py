"""Reminds every second, on a clock of its own, until it is killed, and says what it does.

`python -m kits.killed_reminders FILE`, for a `Killer`: a child works on the file from second
1,000 * NUMBER on. It says `given` for each reminder that it is given, and `over` once it has ended
it.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from kits.killing import fork_for_each_line, repeat, say
from kits.remembered import START

from coag.memory.consolidation import AtEvent, AtTime, Intentions
from coag.memory.dynamics import MemoryDynamics
from coag.schema import SteppingClock


def opened(path: Path, number: int) -> Intentions:
    """The intentions of a file, with a clock that moves a second at each look."""
    clock = SteppingClock(START + timedelta(seconds=1_000 * number), timedelta(seconds=1))
    return Intentions(MemoryDynamics("plain", path=path, owner="ann", clock=clock))


async def _work(numbers: list[int]) -> None:
    intentions = opened(Path(sys.argv[1]), numbers[1])
    intentions.add("tick", AtTime(at=START, every=1))
    intentions.add("bell", AtEvent(event="bell", recurring=True))

    async def remind() -> None:
        intentions.check()
        intentions.happened("bell")
        for percept in await intentions.unperceived():
            say({"given": percept.id})
            intentions.perceived([percept.id])
            say({"over": percept.id})

    await repeat(remind)


if __name__ == "__main__":
    fork_for_each_line(_work)
