"""`coag run`: an agent that lives beside its tools, until it is stopped."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from pydantic import ValidationError

from coag._util.text import cleaned, one_line
from coag._util.validation import first_error
from coag.agent import SituatedAgent
from coag.errors import ConfigurationError
from coag.situated import Activity

from .output import DIM, say, write_json

_SHORT = 100
_LOOK_AGAIN = 1.0
"""Seconds."""

AgentFile = Annotated[
    Path,
    typer.Argument(
        metavar="AGENT.json",
        help="The agent's component: what `SituatedAgent.dump_component()` gave, as JSON.",
    ),
]
Goals = Annotated[
    list[str] | None,
    typer.Option("--goal", metavar="TEXT", help="A goal to begin with; may be repeated."),
]
UntilDone = Annotated[
    bool, typer.Option("--until-done", help="End when no activity is left that has not ended.")
]


def run(agent: AgentFile, goal: Goals = None, until_done: UntilDone = False) -> None:
    """Runs a situated agent until it is stopped.

    What it pursues is in its folder: start it again, and its activities continue. Ctrl-C or
    SIGTERM ends it: steps that run are finished first. `coag activities` shows and steers it
    meanwhile, from another terminal. Each activity that ends is printed as a line of JSON.
    """
    # Loading imports the user's modules, which may run an event loop of their own.
    asyncio.run(_run(_loaded(agent), goal or [], until_done=until_done))


async def _run(agent: SituatedAgent, goals: Sequence[str], *, until_done: bool) -> None:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stopped.set)

    def changed(activity: Activity) -> None:
        state = activity.end or activity.state
        waits = f" for {activity.wait.condition}" if activity.wait else ""
        say(cleaned(f"{activity.id}: {state}{waits}  {one_line(activity.goal, _SHORT)}"), DIM)
        if activity.over:
            write_json(activity.model_dump_json())
        if until_done and not agent.open_activities():
            stopped.set()

    async with agent:
        stop = agent.scheduler.watch(changed)
        for text in goals:
            agent.add_goal(text)
        await _until(stopped, agent, until_done=until_done)
        stop()
        say("Stopping: steps that run are finished first.", DIM)


def _loaded(path: Path) -> SituatedAgent:
    try:
        component = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error}") from error
    except ValueError as error:
        raise ConfigurationError(f"{str(path)!r} is no JSON: {error}") from error
    if not isinstance(component, dict):
        raise ConfigurationError(f"{str(path)!r} is no component: a JSON object is expected.")
    try:
        return SituatedAgent.load_component(cast("dict[str, Any]", component))
    except ValidationError as error:
        raise ConfigurationError(
            f"{str(path)!r} is no component of a SituatedAgent: {first_error(error)}"
        ) from error


async def _until(stopped: asyncio.Event, agent: SituatedAgent, *, until_done: bool) -> None:
    """Waits until the agent is to end; of what other workers do, it is looked at every second."""
    while not stopped.is_set() and agent.scheduler.failure is None:
        if until_done and not agent.open_activities():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await stopped.wait()
