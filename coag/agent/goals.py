"""Where goals come from: messages, signals, clock and intentions; the last three set one once."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any

from autogen_agentchat.messages import BaseChatMessage
from pydantic import Field

from coag.errors import ConfigurationError
from coag.memory.consolidation import Intentions
from coag.schema import Clock, Moment, PerceptKind, Trust, Value
from coag.situated import (
    DELEGATES,
    ActivityStore,
    OnSignal,
    Priority,
    SignalRecord,
    ToolConnectionError,
    ToolPerception,
)

STANDING = "goals"
"""The inbox into which perception delivers the signals that set goals."""
_LOOK_AGAIN = 1.0
"""Seconds after which the clock is looked at at the latest: it may have been set."""


class SignalGoal(Value):
    """A goal that a signal sets: one activity for each such signal."""

    name: str = Field(min_length=1)
    """Unique within the agent."""
    on: OnSignal
    goal: str = Field(min_length=1)
    """What to do; `{data}` is replaced by the signal's name and payload as JSON. Such a goal has
    text from outside in it, and is trusted as such."""
    priority: Priority = 0


class TimedGoal(Value):
    """A goal that the clock sets."""

    name: str = Field(min_length=1)
    """Unique within the agent."""
    goal: str = Field(min_length=1)
    every: float = Field(gt=0)
    """Seconds. Of times that passed while the agent was not running, only the last counts."""
    start: Moment
    """The first time."""
    priority: Priority = 0


Goal = SignalGoal | TimedGoal
AddGoal = Callable[..., object]
"""Begins an activity, unless there is one with this id; see `SituatedAgent.add_goal`."""


def goal_of(messages: Sequence[BaseChatMessage]) -> tuple[str, Trust]:
    """What messages ask for, and how far that is trusted: as the least trusted of them."""
    by_user = all(message.source == "user" for message in messages)
    text = "\n".join(message.to_model_text() for message in messages)
    return text, Trust.USER if by_user else Trust.UNTRUSTED


def check_goals(goals: Sequence[Goal | Intentions]) -> None:
    """Refuses goals of which two have the same name."""
    counts = Counter(goal.name for goal in goals if not isinstance(goal, Intentions))
    if doubled := sorted(name for name, count in counts.items() if count > 1):
        raise ConfigurationError(f"goals= has names twice: {', '.join(doubled)}.")


async def cancel_delegated(perception: ToolPerception, activity_id: str, reason: str) -> None:
    """Ends what an activity has delegated to other agents; see `DelegateTool`."""
    for tool in (await perception.catalogue()).values():
        if tool.category == DELEGATES:
            key, arguments = uuid.uuid4().hex, {"reason": reason}
            await perception.invoke(activity_id, tool.id, "cancel", arguments, key)
    await perception.release(activity_id)


class GoalSetter:
    """Sets an agent's goals when their signals or their times come.

    The id of an activity follows from what sets it, so that a signal or a time sets a goal once,
    whenever the process is killed and started again.
    """

    def __init__(
        self,
        goals: Sequence[Goal | Intentions],
        add: AddGoal,
        perception: ToolPerception,
        store: ActivityStore,
        clock: Clock,
    ) -> None:
        self._signals = [goal for goal in goals if isinstance(goal, SignalGoal)]
        self._timed = [goal for goal in goals if isinstance(goal, TimedGoal)]
        self._intentions = [goal for goal in goals if isinstance(goal, Intentions)]
        self._add = add
        self._perception = perception
        self._store = store
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Perceives the tools whose signals set goals, which must exist; keeps the others' time."""
        tools = {goal.on.tool for goal in self._signals}
        for tool in set(self._perception.focused(STANDING)) - tools:
            await self._perception.unfocus(STANDING, tool)
        for tool in sorted(tools):
            if not await self._focus(tool):
                self._begin(self._focus_later(tool))
        for goal in self._timed:
            self._begin(self._keep_time(goal))
        for intentions in self._intentions:
            await self._remind(intentions)
            self._begin(self._keep_reminders(intentions))
        self.look()
        if self._store.shared and tools:
            self._begin(self._look_after_others())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(_report)
        self._tasks.append(task)

    async def stop(self) -> None:
        """Sets no more goals; signals that come meanwhile set theirs at the next start."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- signals ----

    async def _focus(self, tool: str) -> bool:
        """Perceives the signals of a tool that set goals; False if its server does not answer."""
        names = {goal.on.name for goal in self._signals if goal.on.tool == tool}
        try:
            await self._perception.focus(STANDING, tool, names)
        except ToolConnectionError:
            return False
        return True

    async def _focus_later(self, tool: str) -> None:
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            if await self._focus(tool):
                return

    async def _look_after_others(self) -> None:
        """Sets the goals of signals that another worker delivered before it was killed."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            self.look()

    def look(self) -> None:
        """Sets the goals of the signals that have arrived."""
        for entry in self._store.inbox(STANDING):
            percept = entry.percept
            if percept.kind is PerceptKind.SIGNAL and not percept.is_error:
                signal = SignalRecord.model_validate(percept.data)
                for goal in self._signals:
                    if goal.on.tool == percept.source:
                        self._by_signal(goal, signal, percept.data.get("left_out"))
            self._store.forget(STANDING, [percept.id])

    def _by_signal(self, goal: SignalGoal, signal: SignalRecord, left_out: Any) -> None:
        if goal.on.met_by(signal):
            data = signal.model_dump_json(include={"name", "data"})
            if left_out:
                data += f" (left out, too large: {', '.join(map(str, left_out))})"
            named = hashlib.sha256(f"{goal.name} {signal.event_id}".encode()).hexdigest()[:12]
            self._add(
                goal.goal.replace("{data}", data),
                source=f"signal:{goal.on.tool}/{signal.name}",
                trust=Trust.UNTRUSTED if "{data}" in goal.goal else Trust.USER,
                priority=goal.priority,
                activity_id=f"{goal.name}-{named}",
            )

    # ---- the clock ----

    async def _keep_time(self, goal: TimedGoal) -> None:
        """Sets the goal at each of its times; the number of the time names the activity."""
        while True:
            now = self._clock.now()
            number = int((now - goal.start).total_seconds() // goal.every)
            if number >= 0:
                self._add(
                    goal.goal,
                    source="timer",
                    priority=goal.priority,
                    activity_id=f"{goal.name}-{number}",
                )
            following = goal.start + timedelta(seconds=(number + 1) * goal.every)
            left = (following - now).total_seconds()
            await asyncio.sleep(min(max(left, 0.0), _LOOK_AGAIN))

    async def _keep_reminders(self, intentions: Intentions) -> None:
        while True:
            due = intentions.next_at()
            left = _LOOK_AGAIN if due is None else (due - self._clock.now()).total_seconds()
            await asyncio.sleep(min(max(left, 0.0), _LOOK_AGAIN))
            await self._remind(intentions)

    async def _remind(self, intentions: Intentions) -> None:
        """Begins an activity for each reminder by time, which names it; then it is perceived."""
        intentions.check()
        for percept in await intentions.unperceived(STANDING, kinds=("time",)):
            name = percept.id.replace("/", "-")
            source, trust = percept.source, percept.trust
            self._add(percept.content, source=source, trust=trust, activity_id=f"remind-{name}")
            intentions.perceived([percept.id])


def _report(task: asyncio.Task[None]) -> None:
    """Says that goals are not set any more, since nobody awaits what sets them."""
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "Goals: one is not set any more", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
