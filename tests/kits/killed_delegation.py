"""An agent that delegates over MCP and its delegate, killed at any moment, and what they leave.

`python -m kits.killed_delegation FOLDER PORT` reads the commands of `kits.killed_activities`: the
server is the delegate, a `SituatedAgent` with a folder, the agent is the one that delegates.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

from coag._util.files import AtomicFile
from coag.agent import DelegateTool, SituatedAgent
from coag.mcp import StreamableHttpServerParams
from coag.schema import PerceptKind, SystemClock
from coag.situated import (
    Activity,
    ActivityEnd,
    ActivityStore,
    McpToolConnection,
    OnSignal,
    Step,
    ToolConnectionError,
    ToolPerception,
    Wait,
    Workspace,
    serve_http,
)

from .kettles import Decision, minded
from .killed_activities import obey, pursue

WORKER = "worker"


def think(text: str) -> Decision:
    """Makes a plan, then answers."""
    return "Counted." if "Plan:" in text else ("set_plan", {"plan": "Count."})


async def _slowly(_: str) -> None:
    await asyncio.sleep(0.05)


async def serve(folder: Path, port: int) -> None:
    """Serves the delegate until the process ends."""
    office = Workspace()
    worker = SituatedAgent(
        WORKER,
        minded(think, _slowly),
        [],
        folder=folder / WORKER,
        depth="compact",
        proposal="native",
    )
    office.add(DelegateTool(worker))
    async with serve_http(office, port=port):
        await asyncio.Event().wait()


class Delegator:
    """A scripted `ActivityMind`: it delegates one goal, and notes each signal that it perceives."""

    def __init__(self, folder: Path, perception: ToolPerception, store: ActivityStore) -> None:
        self.folder = folder
        self.perception = perception
        self.store = store

    async def step(self, activity: Activity) -> Step:
        """Delegates, or finds that it has; ends when the signal has come."""
        entries = [entry.percept for entry in self.store.inbox(activity.id)]
        said = [one for one in entries if one.kind is PerceptKind.SIGNAL]
        if said:
            with AtomicFile(self.folder / f"{activity.id}.json", durable=False) as file:
                file.draft.write(json.dumps([one.id for one in said]).encode())
            (signal,) = said
            return Step(end=ActivityEnd.DONE, result=str(signal.data["data"]["result"]))
        self.store.forget(activity.id, [one.id for one in entries])
        goal = {"goal": f"Count for {activity.id}."}
        try:
            done = await self.perception.invoke(activity.id, WORKER, "delegate", goal, activity.id)
            await self.perception.focus(activity.id, done.data["tool"])
        except ToolConnectionError:  # the delegate is dead, and comes back
            return self._wait(WORKER, 0.2)
        return self._wait(done.data["tool"], 30.0)

    async def release(self, activity_id: str) -> None:
        """Drops its record of the goal."""
        await self.perception.release(activity_id)

    def _wait(self, tool: str, seconds: float) -> Step:
        now = SystemClock().now()
        condition = OnSignal(tool=tool, name="ended")
        deadline = now + timedelta(seconds=seconds)
        return Step(wait=Wait(condition=condition, since=now, deadline=deadline))


async def act(folder: Path, port: int, opens: int) -> None:
    """Delegates for each activity of a store, until all have ended."""
    server = StreamableHttpServerParams(url=f"http://127.0.0.1:{port}/mcp")
    await pursue(folder, McpToolConnection(server, "office"), Delegator, opens)


if __name__ == "__main__":
    obey(serve, act)
