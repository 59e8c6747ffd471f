"""The agents behind activities: one for each, rebuilt from its run where it was let go.

An activity is a run. Its agent holds its working memory while it is live; of those that wait, only
the ones used last stay in memory, the others are rebuilt from their run folder when they are woken.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_core import CancellationToken

from coag.compat import OperationsWorkbench
from coag.context import WorkingMemory
from coag.errors import CoagError
from coag.schema import Event, MemoryKind, Provenance, Trust, TurnEnd, one_line
from coag.situated import (
    Activity,
    ActivityEnd,
    ActivityStore,
    SituatedModule,
    Step,
    StepDelayedError,
    ToolPerception,
)
from coag.tracing import RunFolder

from .agent import CoagAgent

_LOG = logging.getLogger("coag.agent")
Shown = BaseAgentEvent | BaseChatMessage
EXPERIENCE = "experience"
"""The type of the record that an ended activity leaves in long-term memory."""
EXPERIENCE_CHARACTERS = 2_000
_CALL_CHARACTERS = 160
_FAILING = ("impasses", "budget", "actions", "error", "cancelled")
"""Reasons of a turn's end that end the activity, too."""
_CONTINUED = ("suspended", "cancelled", "error")
"""Reasons of a turn's end after which a rebuilt agent continues."""


@dataclass(slots=True)
class LiveActivity:
    """An activity's agent, and the turn that it is in."""

    agent: CoagAgent
    module: SituatedModule
    token: CancellationToken = field(default_factory=CancellationToken)
    stream: AsyncGenerator[Shown | Response, None] | None = None
    cycle: int = 0
    """The last cycle that was seen to its end."""
    ended: TurnEnd | None = None
    """The turn whose end was not stored with the activity: its process was killed right then."""
    counted: bool = False
    """Whether a cycle of the present turn was counted as a step."""
    remembered: bool = False
    """Whether it has left its experience."""

    @property
    def memory(self) -> WorkingMemory:
        """The activity's working memory now."""
        return self.agent.context.working_memory

    async def to_the_next(self, goal: Activity, show: Callable[[Shown], None]) -> Response | None:
        """Runs to the end of the next cycle (None), or of the turn (its response)."""
        if self.stream is None:
            messages = [] if self.memory.goal or self.agent.in_turn else [goal_message(goal)]
            self.token = CancellationToken()
            self.stream = self.agent.on_messages_stream(messages, self.token)
        async for item in self.stream:
            if isinstance(item, Response):
                self.stream = None
                return item
            show(item)
            if not self.memory.in_cycle and self.memory.cycle != self.cycle:
                self.cycle = self.memory.cycle
                return None
        raise AssertionError("A turn always ends with a response.")

    async def end_turn(self) -> None:
        """Ends the turn, if there is one."""
        if self.stream is not None:
            await self.stream.aclose()
            self.stream = None


def goal_message(activity: Activity) -> TextMessage:
    """What sets the goal: the words of the user, or of somebody who is trusted less."""
    by_user = activity.trust is Trust.USER
    return TextMessage(content=activity.goal, source="user" if by_user else activity.source)


class ActivityEvents:
    """What activities show while they run, for callers that follow one."""

    def __init__(self) -> None:
        self._queues: dict[str, list[asyncio.Queue[Shown | None]]] = {}

    def show(self, activity_id: str, event: Shown) -> None:
        """Passes an event on to those that follow the activity."""
        for queue in self._queues.get(activity_id, ()):
            queue.put_nowait(event)

    async def until(
        self, activity_id: str, ending: asyncio.Future[Activity]
    ) -> AsyncGenerator[Shown]:
        """The events of an activity from now on, until a future is done; it is not left behind."""
        queue: asyncio.Queue[Shown | None] = asyncio.Queue()
        queues = self._queues.setdefault(activity_id, [])
        queues.append(queue)
        ending.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            ending.cancel()
            queues.remove(queue)
            if not queues:
                del self._queues[activity_id]


def operations_of(activity_id: str, perception: ToolPerception) -> OperationsWorkbench:
    """The operations of an agent's tools, as one activity uses them."""
    invoke = partial(perception.invoke, activity_id)
    return OperationsWorkbench(perception.catalogue, invoke, perception.became_of)


MakeAgent = Callable[[Activity], tuple[CoagAgent, SituatedModule]]


class ActivityMinds:
    """Steps activities: each with an agent of its own, one cycle at a time.

    Without a folder of `runs` all agents stay in memory, else only `live` of those that wait.
    """

    def __init__(
        self,
        make: MakeAgent,
        store: ActivityStore,
        *,
        runs: Path | None,
        live: int,
        show: Callable[[str, Shown], None],
        ended: Callable[[str], Awaitable[None]],
    ) -> None:
        self._make = make
        self._store = store
        self._runs = runs
        self._most = live
        self._show = show
        self._ended = ended
        self._live: OrderedDict[str, LiveActivity] = OrderedDict()
        self._stepping: set[str] = set()

    async def step(self, activity: Activity) -> Step:
        """One cycle of an activity, and whether it waits or ends by it."""
        self._stepping.add(activity.id)
        try:
            live = await self._of(activity)
            if live.ended is None:
                step = await self._cycle(activity, live)
            else:
                step, live.ended = _after_turn(live, live.ended.reason, live.ended.response), None
            if step.end is not None:
                await _remember(activity, step, live)
                live.remembered = True
            return step
        finally:
            self._stepping.discard(activity.id)
            await self._let_some_go()

    async def _cycle(self, activity: Activity, live: LiveActivity) -> Step:
        before = live.memory.spent.usage.tokens
        try:
            response = await live.to_the_next(
                activity, lambda event: self._show(activity.id, event)
            )
        except BaseException:
            live.stream = None  # a turn that raised has ended
            raise
        tokens = max(0, live.memory.spent.usage.tokens - before)
        counted, live.counted = live.counted, response is None
        if response is None:
            return Step(tokens=tokens)
        message = response.chat_message
        reason = message.metadata.get("ended_by", "respond")
        step = _after_turn(live, reason, message.to_text(), tokens)
        return step.model_copy(update={"cycles": 0}) if counted else step

    async def release(self, activity_id: str) -> None:
        """Lets go of an activity's agent; the run of one that is over is ended."""
        live = self._live.pop(activity_id, None)
        activity = self._store.get(activity_id)
        if activity is not None and activity.over:
            await self._ended(activity_id)
        if live is None:
            return
        await live.end_turn()
        if activity is None or not activity.over:
            await live.agent.leave_run()
            return
        if activity.end is ActivityEnd.FAILED and not live.remembered:  # e.g. by its budget
            await _remember(activity, Step(end=activity.end, result=activity.result), live)
        await live.agent.close()

    async def close(self) -> None:
        """Lets go of all agents; their runs can be continued."""
        for activity_id in list(self._live):
            await self.release(activity_id)

    async def _of(self, activity: Activity) -> LiveActivity:
        live = self._live.get(activity.id)
        if live is None:
            live = self._live[activity.id] = await self._build(activity)
        self._live.move_to_end(activity.id)
        return live

    async def _build(self, activity: Activity) -> LiveActivity:
        agent, module = self._make(activity)
        live = LiveActivity(agent, module)
        if self._runs is not None and activity.run is not None:
            run = RunFolder(self._runs / activity.run)
            if run.held:  # by a worker that was taken for dead, and is not yet
                raise StepDelayedError(f"Another process has not let go of {str(run.path)!r}.")
            ended = await agent.continue_run(run)
            if ended is not None and ended.reason not in _CONTINUED:
                live.ended = ended
        if not live.memory.in_cycle:
            live.cycle = live.memory.cycle
        if activity.run is None and (folder := agent.begin_run()) is not None:
            # Kept before anything acts: after a crash the activity finds its run by this name.
            self._store.name_run(activity.id, folder.path.name)
        return live

    async def _let_some_go(self) -> None:
        """Keeps the number of live agents bounded; those in a turn stay."""
        if self._runs is None:
            return
        idle = [
            name
            for name, live in self._live.items()
            if live.stream is None and name not in self._stepping
        ]
        for name in idle[: max(0, len(self._live) - self._most)]:
            await self.release(name)


def _after_turn(live: LiveActivity, reason: str, text: str, tokens: int = 0) -> Step:
    module = live.module
    wait, module.pending = module.pending, None
    abandoned, module.abandoned = module.abandoned, None
    if abandoned is not None:
        return Step(end=ActivityEnd.FAILED, result=abandoned, tokens=tokens)
    if reason == "suspended" and wait is not None:
        return Step(wait=wait, tokens=tokens)
    if reason == "respond":
        return Step(end=ActivityEnd.DONE, result=text, tokens=tokens)
    if reason in _FAILING and not (reason == "impasses" and module.was_preempted):
        return Step(end=ActivityEnd.FAILED, result=text, tokens=tokens)
    return Step(tokens=tokens)  # the bound of a turn, not of the activity, which continues


# ---- What an ended activity leaves: an experience that later ones recall (thesis, 5.2.3) ----


async def _remember(activity: Activity, step: Step, live: LiveActivity) -> None:
    memory, taint = live.memory, live.memory.tainted_by
    done = step.end is ActivityEnd.DONE
    origin = Provenance(
        run=activity.run or activity.id,
        activity=activity.id,
        cycle=memory.cycle,
        source=activity.agent,
        source_kind="agent",
        trust=Trust.UNTRUSTED if taint is not None else activity.trust,
        shown=() if taint is None else taint.sources,
    )
    event = Event(
        episode=activity.id,
        situation=one_line(activity.goal, 200),
        outcome=one_line(step.result, 200),
    )
    try:
        await live.agent.long_term_memory.remember(
            MemoryKind.EPISODIC,
            experience_text(activity.goal, step, memory),
            provenance=origin,
            type=EXPERIENCE,
            metadata={"succeeded": done, "steps": activity.steps + step.cycles},
            event=event,
        )
    except CoagError as error:  # the activity's result is valid all the same
        _LOG.warning("Activity %r leaves no experience: %s", activity.id, error)


def experience_text(goal: str, step: Step, memory: WorkingMemory) -> str:
    """The goal, how it ended, and what was done in order, by rules."""
    done = step.end is ActivityEnd.DONE
    ended = "succeeded" if done else "failed"
    lines = [f"Goal: {one_line(goal, 300)}", f"It {ended}: {one_line(step.result, 300)}"]
    lines.append("What was done, in order:" if done else "What was tried, in order:")
    for past in memory.deeds:
        call = one_line(f"{past.action} {past.arguments or ''}", _CALL_CHARACTERS)
        lines.append(f"- {call}: {past.status.value}, {one_line(past.result, _CALL_CHARACTERS)}")
    return "\n".join(lines)[:EXPERIENCE_CHARACTERS]
