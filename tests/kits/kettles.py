"""A kettle as an enhanced tool, minds that boil water with it, and an agent beside it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from autogen_core import FunctionCall

from coag.agent import SituatedAgent
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.situated import (
    Activity,
    EnhancedTool,
    InProcessConnection,
    ToolConnection,
    Workspace,
    observable,
    operation,
    signal,
)

GOAL = "Boil the water."
Decision = tuple[str, Mapping[str, Any]] | str
"""An action and its arguments, or the answer."""
Decide = Callable[[str], Decision]
"""The next decision, by the text that the model sees."""


class Kettle(EnhancedTool):
    """Boils water."""

    protocol = "Switch it on, then wait for `kettle.boiled`."

    status = observable(Literal["COLD", "HEATING", "HOT"], "COLD")
    starts = observable(int, 0, description="How often it was switched on.")
    boiled = signal("kettle.boiled", "The water boils.", payload={"starts": int})
    ordered = signal("kettle.ordered", "Somebody wants tea.", payload={"cups": int})

    @operation(latency=60.0, completed_by="kettle.boiled", effects="`status` becomes `HEATING`")
    def switch_on(self) -> str:
        """Switches the kettle on."""
        self.status = "HEATING"
        self.starts += 1
        self.switched()
        return "It heats."

    def switched(self) -> None:
        """What switching on brings about by itself; by default the test says when it boils."""

    def boil(self) -> None:
        """What the water does in its time."""
        self.status = "HOT"
        self.boiled.emit(starts=self.starts)

    def order(self, cups: int) -> None:
        """What somebody at the counter does."""
        self.ordered.emit(cups=cups)


def careful(text: str) -> Decision:
    """Reads the manual, switches on once, waits, answers."""
    if "**Tool ID:** `kettle`" not in text:
        return "mount_manual", {"tool": "kettle"}
    seen = re.findall(r'status"?[:=] ?"(\w+)"', text)
    if "HOT" in seen:
        return "The water has boiled."
    if "HEATING" not in seen:
        return "kettle__switch_on", {}
    return "wait_for_signal", {"tool": "kettle", "signal": "kettle.boiled"}


async def at_once(text: str) -> None:
    """Nothing happens while the model thinks."""


def minded(decide: Decide, meanwhile: Callable[[str], Awaitable[None]] = at_once) -> ScriptedModel:
    """A model that decides like this; what happens while it thinks is given."""

    async def think(request: ScriptedRequest) -> ScriptedReply:
        decision = decide(request.text)
        await meanwhile(request.text)
        return as_reply(decision, request)

    return ScriptedModel(think)


def as_reply(decision: Decision, request: ScriptedRequest) -> ScriptedReply:
    """A decision as the answer of a model."""
    if isinstance(decision, str):
        return decision
    name, arguments = decision
    return [FunctionCall(id=f"c{request.number}", name=name, arguments=json.dumps(arguments))]


def think_carefully(request: ScriptedRequest) -> ScriptedReply:
    """`careful` as a script that a component can name."""
    return as_reply(careful(request.text), request)


def scripted(*decisions: Decision) -> ScriptedModel:
    """A model that decides so, one after the other; the last for ever."""
    left = list(decisions)
    return minded(lambda text: left.pop(0) if len(left) > 1 else left[0])


@asynccontextmanager
async def kitchen() -> AsyncGenerator[tuple[Workspace, Kettle]]:
    """A workspace with a kettle."""
    workspace, kettle = Workspace(), Kettle("kettle")
    workspace.add(kettle)
    try:
        yield workspace, kettle
    finally:
        await workspace.close()


def cook(model: ScriptedModel, *servers: ToolConnection | Workspace, **given: Any) -> SituatedAgent:
    """An agent in the kitchen, which asks its model once a cycle."""
    connections = [
        InProcessConnection(one) if isinstance(one, Workspace) else one for one in servers
    ]
    arguments: dict[str, Any] = {"depth": "compact", "proposal": "native", **given}
    return SituatedAgent("cook", model, connections, **arguments)


async def when(agent: SituatedAgent, activity: str, state: str) -> None:
    """Waits until an activity is there, and in a state."""
    reached = asyncio.Event()

    def look(_: object) -> None:
        found = agent.store.get(activity)
        if found is not None and found.state == state:
            reached.set()

    stop = agent.scheduler.watch(look)
    look(None)
    await reached.wait()
    stop()


async def when_there_are(agent: SituatedAgent, number: int) -> list[Activity]:
    """Waits until there are so many activities."""
    enough = asyncio.Event()

    def look(_: object) -> None:
        if len(agent.store.find()) >= number:
            enough.set()

    stop = agent.scheduler.watch(look)
    look(None)
    await enough.wait()
    stop()
    return agent.store.find()
