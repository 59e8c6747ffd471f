"""Processes that work on a folder until each is killed at a random point.

A kit's module calls `fork_for_each_line(work)` as its main: for each line that it reads a child of
it does the work. They print lines of JSON with `say`: first `{"pid": NUMBER}`, then what the work
says, and behind each child its parent `{"ended": STATUS}`. A test lets a `Killer` run the module.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

TESTS = Path(__file__).parents[1]


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def die() -> None:
    """Kills this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def fork(folder: Path, work: Coroutine[Any, Any, None]) -> int:
    """Does the work in a fork of this process; how it failed is in a file of the folder."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work)
            os._exit(0)
        except BaseException as error:  # the parent says of which kind it was
            (folder / "error.txt").write_text(f"{type(error).__name__}: {error}")
            os._exit(1)
    work.close()
    return child


def ended(child: int, seconds: float) -> bool:
    """Waits for a process, and kills it after so long; False if it was killed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return not os.WIFSIGNALED(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


async def repeat(step: Callable[[], Awaitable[None]]) -> NoReturn:
    """Says who does it, and does it until it is killed; prints what goes wrong."""
    say({"pid": os.getpid()})
    while True:
        try:
            await step()
        except BaseException:
            traceback.print_exc()
            raise


def fork_for_each_line(work: Callable[[list[int]], Coroutine[Any, Any, None]]) -> None:
    """Forks a child for each line of numbers that is read, and waits for its end."""
    importlib.import_module("chromadb")  # so that children need not import it
    for line in sys.stdin:
        numbers = [int(word) for word in line.split()]
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(work(numbers))
            finally:
                os._exit(1)  # only what went wrong ends it
        _, status = os.waitpid(child, 0)
        sys.stdout.write("\n")  # where a line was cut off
        say({"ended": os.waitstatus_to_exitcode(status)})


class Killer:
    """Lets children of a kit's module work on a folder, and kills each at a random point.

    Args:
        module: The module, as `kits.store_writer`.
        folder: Where they work.
        most: So many lines of a child are heard at most before it is killed.
    """

    def __init__(self, module: str, folder: Path, most: int) -> None:
        command = [sys.executable, "-m", module, str(folder)]
        self._most = most
        self._parent = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS
        )

    def kill_one(self, seed: int, *numbers: int) -> list[str]:
        """What a child said: some lines, and what it did in some milliseconds behind them.

        A first line may come before anything is open, so that it is killed at opening, too.
        """
        dice = random.Random(seed)
        assert self._parent.stdin is not None
        self._parent.stdin.write(" ".join(map(str, (seed, *numbers))) + "\n")
        self._parent.stdin.flush()
        child = json.loads(self._line())["pid"]
        lines = list[str]()
        for _ in range(dice.randint(0, self._most)):
            lines.append(self._line())
            assert '"ended"' not in lines[-1], "a child ended by itself"
        threading.Event().wait(dice.random() * dice.choice([0.005, 0.02, 0.06]))
        os.kill(child, signal.SIGKILL)
        while '"ended"' not in (line := self._line()):
            lines.append(line)
        assert json.loads(line) == {"ended": -signal.SIGKILL}
        return lines

    def _line(self) -> str:
        assert self._parent.stdout is not None
        while (line := self._parent.stdout.readline()) == "\n":
            pass
        assert line, "the parent of the children ended"
        return line

    def close(self) -> None:
        """Ends the parent of the children."""
        self._parent.communicate()
