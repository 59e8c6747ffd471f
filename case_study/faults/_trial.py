"""One run of a real agent in a real world, with or without a fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent
from autogen_core import CancellationToken

from case_study.baseline import PlainAgent
from case_study.robot import VacuumContext, prompt
from case_study.tasks import CONTINUE, task_text
from case_study.temperaments import TEMPERAMENTS
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import CoagError
from coag.memory import LongTermMemory
from coag.models import ScriptedModel
from coag.schema import TraceRecord
from coag.store import Embedder, InMemoryStore, WordLlamaEmbedder
from vacuum_world.client import WorldControl, join_world
from vacuum_world.server import WorldServer
from vacuum_world.tools import world_tools
from vacuum_world.world import Reading, join, last_state_line, sense

from ._client import HANGS, BrokenClient
from ._fault import Breaker, Fault
from ._model import broken_script
from ._stage import SCOPE, Stage, stage_of
from ._store import BrokenStore
from ._tally import Tally, tally_of

AgentKind = Literal["coag", "baseline"]
ROBOT = "robot"
IDLE_TURNS = 2
"""Turns in a row without an action after which an agent has finished."""
_PATIENCE, _SHORT_PATIENCE = 60.0, 0.25
"""Seconds that a tool may take; the short one where it never answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run that is over."""

    stage: Stage
    fault: Fault | None
    records: tuple[TraceRecord, ...]
    """Its trace: all that a diagnosis gets of the run itself."""
    struck: tuple[int, ...]
    """The cycles in which the fault struck."""
    tally: Tally
    """What it came to, as the experimenter counts."""
    cycles: int
    """Cycles of a CoAG agent, turns of a plain one."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A served world in which trials take place, one after the other."""

    server: WorldServer
    control: WorldControl
    embedder: Embedder


@asynccontextmanager
async def open_ground() -> AsyncGenerator[Ground]:
    """Serves a world; every trial puts its own beginning into it.

    Raises:
        WorldError: It cannot be served.
    """
    server = await asyncio.to_thread(WorldServer(stage_of("evolution", 0).setup.world).start)
    try:
        async with WorldControl(server.url, server.control_token) as control:
            yield Ground(server, control, WordLlamaEmbedder())
    finally:
        await asyncio.to_thread(server.stop)


async def play(
    stage: Stage, fault: Fault | None, ground: Ground, agent: AgentKind = "coag"
) -> Trial:
    """Plays a stage with a fault, or without one, to its end.

    Raises:
        WorldError: The world failed, which is no fault of the experiment's.
    """
    await ground.control.restore(stage.setup.world)
    member = await join_world(ground.server.url, ROBOT, control_token=ground.server.control_token)
    breaker = Breaker(fault)
    async with BrokenClient(ground.server.url, member, breaker, ground.control) as client:
        if agent == "coag":
            records = await _coag(stage, ground, client, breaker)
        else:
            records = await _plain(stage, client, breaker)
    world = await ground.control.world()
    return Trial(
        stage=stage,
        fault=fault,
        records=records,
        struck=tuple(breaker.struck),
        tally=tally_of(stage.setup, world, records),
        cycles=breaker.now(),
    )


async def _coag(
    stage: Stage, ground: Ground, client: BrokenClient, breaker: Breaker
) -> tuple[TraceRecord, ...]:
    reading = first_reading(stage)
    store = InMemoryStore(ground.embedder)
    await store.add(stage.records)
    context = VacuumContext(reading=reading)
    breaker.now = lambda: context.working_memory.cycle
    hangs = breaker.variant == HANGS
    agent = CoagAgent(
        ROBOT,
        ScriptedModel(broken_script(TEMPERAMENTS["sound"], breaker), name="scripted:sound"),
        tools=world_tools(client),
        model_context=context,
        system_message=prompt("robot"),
        max_tool_iterations=1,
        constraints=stage.rules,
        memory=LongTermMemory(BrokenStore(store, breaker, stage), scope=SCOPE),
        tool_timeout=_SHORT_PATIENCE if hangs else _PATIENCE,
        depth="full",
        proposal="json",
    )

    async def say(text: str) -> list[str]:
        results: list[str] = []
        message = TextMessage(content=text, source="user")
        async for item in agent.on_messages_stream([message], CancellationToken()):
            if isinstance(item, ToolCallExecutionEvent):
                results += [result.content for result in item.content]
        return results

    try:
        await _drive(stage, say)
        return tuple(agent.trace)
    finally:
        await agent.close()


async def _plain(stage: Stage, client: BrokenClient, breaker: Breaker) -> tuple[TraceRecord, ...]:
    recorder = Recorder(None, agent=ROBOT, model="scripted:sound")
    breaker.now = lambda: recorder.turn
    agent = PlainAgent(
        ROBOT,
        ScriptedModel(broken_script(TEMPERAMENTS["sound"], breaker), name="scripted:sound"),
        tools=world_tools(client),
        system_message=prompt("utility"),
        recorder=recorder,
    )

    async def say(text: str) -> list[str]:
        async with asyncio.timeout(_SHORT_PATIENCE if breaker.variant == HANGS else _PATIENCE):
            return await agent.say(text)

    try:
        await _drive(stage, say)
        return recorder.records
    finally:
        await agent.close()
        recorder.close()


async def _drive(stage: Stage, say: Callable[[str], Awaitable[list[str]]]) -> None:
    """The task, then "Continue.", up to a bound, two idle turns, or a stranded robot."""
    text = task_text(stage.setup, first_reading(stage))
    idle = actions = 0
    stranded = False
    while actions < stage.setup.max_actions and idle < IDLE_TURNS and not stranded:
        try:
            results = await say(text)
        except (CoagError, TimeoutError):  # the turn broke off; the trace says why
            results = []
        actions += len(results)
        idle = 0 if results else idle + 1
        stranded = any(_is_stranded(result) for result in results)
        text = CONTINUE


def first_reading(stage: Stage) -> Reading:
    """What the robot senses when it joins."""
    joined = join(stage.setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


def _is_stranded(result: str) -> bool:
    reading = last_state_line(result)
    return reading is not None and reading.stranded
