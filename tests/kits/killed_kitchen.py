"""Kills a situated agent at chosen or random instants and starts it again, as often as requested.

`python -m kits.killed_kitchen FOLDER KILLS SEED [WHEN ...]` prints a line of JSON per kitchen,
until agents were killed so often: one that ends before its instant is not. The kitchen is an MCP
server in a process of its own, on this machine; each agent runs in a fork of this process, which
has imported everything, so that a kill costs no start of Python.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kits.kettles import GOAL, Decision, Kettle, cook, minded
from kits.killing import die, ended, fork

from coag.mcp import StreamableHttpServerParams, sdk
from coag.proof import examine
from coag.situated import (
    Acknowledgement,
    Activity,
    ActivityState,
    McpToolConnection,
    Workspace,
    internal_operation,
    serve_http,
)
from coag.store import WordLlamaEmbedder
from coag.tracing import RunFolder

WHEN = ("before", "after", "waiting", "any")
"""Right before the operation is sent; when it has run and nobody knows; once it waits; any time."""
LONGEST = 1.0
"""Seconds after which an agent is killed at the latest."""
_BOIL_SECONDS = 0.3
_PATIENCE = 50.0


class SelfBoiling(Kettle):
    """Boils water."""

    killed: Path | None = None
    """If given, the water does not boil before this file is there."""

    def switched(self) -> None:
        self.heat_up()

    @internal_operation
    async def heat_up(self) -> None:
        """What the water does by itself."""
        await self.sleep(_BOIL_SECONDS)
        while self.killed is not None and not self.killed.exists():
            await self.sleep(0.01)
        self.boil()


def by_signals(text: str) -> Decision:
    """Believes in nothing but the signal."""
    if "**Tool ID:** `kettle`" not in text:
        return "mount_manual", {"tool": "kettle"}
    if "Signal kettle.boiled" in text:
        return "The water has boiled."
    if 'status="COLD"' in text.rpartition("In focus:")[2]:
        return "kettle__switch_on", {}
    return "wait_for_signal", {"tool": "kettle", "signal": "kettle.boiled"}


class DeadlyConnection(McpToolConnection):
    """A connection that ends the process right before or after an operation."""

    when = ""

    async def invoke(
        self, tool: str, operation: str, arguments: Mapping[str, Any], key: str
    ) -> Acknowledgement:
        if self.when == "before":
            die()
        answer = await super().invoke(tool, operation, arguments, key)
        if self.when == "after":
            die()
        return answer


async def serve(folder: Path, killed: Path | None) -> None:
    """The kitchen, until it is killed; how often the kettle was switched on is in a file."""
    workspace = Workspace()
    kettle = SelfBoiling("kettle")
    kettle.killed = killed
    workspace.add(kettle)
    workspace.subscribe(lambda _: write(folder / "starts", str(kettle.starts)))
    async with serve_http(workspace) as address:
        write(folder / "address", address)
        await asyncio.Event().wait()


def write(path: Path, text: str) -> None:
    """Writes a file that others see whole or not at all."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


async def live(folder: Path, address: str, when: str) -> None:
    """The agent, until its goal is reached."""
    connection = DeadlyConnection(StreamableHttpServerParams(url=address), "kitchen")
    connection.when = when
    async with cook(minded(by_signals), connection, folder=folder / "agent") as agent:

        def changed(activity: Activity) -> None:
            if when == "waiting" and activity.state is ActivityState.BLOCKED:
                die()

        agent.scheduler.watch(changed)
        activity = agent.add_goal(GOAL, activity_id="boil")
        over = await agent.ended(activity.id)
    write(folder / "over.json", over.model_dump_json())


def killed(folder: Path, source: random.Random, only: str) -> dict[str, Any]:
    """One kitchen whose agent is killed once or more, and then left alone."""
    folder.mkdir(parents=True)
    # Else an agent that is slow would find that the water has boiled, and never wait.
    dead = folder / "killed"
    kitchen = fork(folder, serve(folder, dead if only == "waiting" else None))
    try:
        until = time.monotonic() + _PATIENCE
        while not (folder / "address").exists() and time.monotonic() < until:
            time.sleep(0.01)
        address, kills = (folder / "address").read_text(), 0
        for _ in range(1 if only else source.choice((1, 1, 2, 3))):
            when = only or source.choice(WHEN)
            seconds = source.uniform(0, LONGEST) if when == "any" else _PATIENCE
            kills += not ended(fork(folder, live(folder, address, when)), seconds)
            dead.touch()
            time.sleep(source.choice((0.0, 1.5 * _BOIL_SECONDS)))  # it may boil meanwhile
        done = ended(fork(folder, live(folder, address, "")), _PATIENCE)
    finally:
        os.kill(kitchen, signal.SIGKILL)
        os.waitpid(kitchen, 0)
    over, error = folder / "over.json", folder / "error.txt"
    runs = sorted((folder / "agent" / "runs").iterdir())
    return {
        "kills": kills,
        "done": done and over.exists() and json.loads(over.read_text())["end"] == "done",
        "starts": int((folder / "starts").read_text()),
        "runs": len(runs),
        "violations": [one.text for run in runs for one in examine(RunFolder(run)).violations],
        "error": error.read_text() if error.exists() else "",
    }


def main(folder: str, kills: int, seed: int, *only: str) -> None:
    """Kills as often as is asked, in at most twice as many kitchens, or once at each instant."""
    source, count = random.Random(seed), 0
    sdk()  # what takes seconds is imported and read once
    importlib.import_module("chromadb")
    WordLlamaEmbedder().embed([GOAL])
    for name in only or map(str, range(2 * kills)):
        kitchen = killed(Path(folder) / name, source, name if only else "")
        print(json.dumps(kitchen), flush=True)  # noqa: T201
        count += kitchen["kills"]
        if count >= kills:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
