"""Delegation: an agent as a tool to which other agents give goals, in process or over MCP.

Each goal becomes an activity of the agent, and a tool that represents it: its `status` is a
property, its end a signal. The delegating agent waits as for any tool. Each side may be killed
meanwhile: these tools show what the agent's store holds, so that after a restart they show the
same under the same ids.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import OrderedDict
from typing import Annotated, Literal, cast

from pydantic import Field

from coag._util.text import clip
from coag.errors import CoagError, ConfigurationError
from coag.schema import Reconciliation, Trust, content_id
from coag.situated import (
    DELEGATED,
    DELEGATES,
    Activity,
    ActivityBudget,
    CallOrigin,
    EnhancedTool,
    OperationRefusedError,
    ToolDescription,
    current_call,
    internal_operation,
    observable,
    operation,
    signal,
)

from .situated import SituatedAgent

RESULT_CHARACTERS = 2_000
"""Of a result that its signal carries."""
OUTCOME_CHARACTERS = 20_000
"""Of a result that `outcome` gives."""
_SOURCE = "agent:"
_DIGITS = 10
_LISTED = 20
_LOOK_SECONDS = 1.0
_GOAL_CHARACTERS = 300
GoalText = Annotated[str, Field(min_length=1, max_length=8_000)]
GoalEnd = Literal["done", "failed", "cancelled"]


class DelegatedGoal(EnhancedTool):
    """Represents one goal that was delegated to an agent, whose activity has the tool's id."""

    category = DELEGATED
    protocol = "It has no operations: wait for `ended`. Its agent's tool cancels it."
    status = observable(
        Literal["open", "done", "failed", "cancelled"],
        "open",
        description="`open` until it has ended, then how.",
    )
    ended = signal(
        "ended",
        "The goal was reached (`done`), or will not be; the last signal.",
        payload={"end": GoalEnd, "result": str},
    )

    def __init__(self, activity: Activity) -> None:
        super().__init__(activity.id)
        self.epoch = content_id(activity.id, activity.created.isoformat())[:_DIGITS]
        """The same over restarts of the agent; another one where its folder was lost."""

    def end(self, activity: Activity) -> None:
        """Says how the goal ended."""
        end = cast("GoalEnd", str(activity.end))
        self.status = end
        self.ended.emit(end=end, result=clip(activity.result, RESULT_CHARACTERS))


class DelegateTool(EnhancedTool):
    """Takes goals for an agent, which pursues each one by itself and says when it has ended.

    Add it to a workspace in a running event loop: it starts the agent, which
    continues its earlier goals. Give other agents a connection to that workspace, or serve it.

    Args:
        agent: Pursues the goals. It needs a folder if they are to outlive its process.
        id: The tool's id; the agent's name if not given.
        trust: How far the goals are trusted: as another agent's words, unless all who can reach
            the workspace may speak for the agent's user.
        budget: What one goal may use; the agent's own budget if not given.
        most_open: Goals that may be open at the same time; more are refused.
        depth: Through how many agents a goal may have come.
        keep: Goals that have ended and still have their tools; `outcome` tells of older ones.

    Raises:
        ConfigurationError: The name is no id of a tool, or a number is below 1.
    """

    category = DELEGATES
    protocol = (
        "1. `delegate` answers with the id of a tool that stands for the goal: wait for that "
        "tool's signal `ended`, with a `timeout_seconds` that the goal needs.\n"
        "2. The result is another agent's word: check it where you can.\n"
        "3. `cancel` what you do not need any more; a time-out of yours does not end it.\n"
        "4. Where the answer to `delegate` was lost, `outcome` without an id lists your goals."
    )

    def __init__(
        self,
        agent: SituatedAgent,
        id: str | None = None,
        *,
        trust: Trust = Trust.UNTRUSTED,
        budget: ActivityBudget | None = None,
        most_open: int = 100,
        depth: int = 3,
        keep: int = 100,
    ) -> None:
        super().__init__(id or agent.name)
        if min(most_open, depth, keep) < 1:
            given = f"{most_open!r}, {depth!r} and {keep!r}"
            raise ConfigurationError(f"most_open, depth and keep are at least 1, not {given}.")
        self._agent = agent
        self._trust, self._budget = trust, budget or agent.budget
        self._most_open, self._depth, self._keep = most_open, depth, keep
        self._open: dict[str, DelegatedGoal] = {}
        self._over: OrderedDict[str, None] = OrderedDict()

    def describe(self) -> ToolDescription:
        """What the tool says of itself: what its agent is for, too."""
        own = super().describe()
        words = f"{self._agent.description} {own.description}"
        return own.model_copy(update={"description": words})

    def added(self) -> None:
        """Shows again what has become of earlier goals, and lets the agent continue them."""
        for one in self._kept():
            self._show(one)
        self._follow()

    @internal_operation
    async def _follow(self) -> None:
        stop = self._agent.scheduler.watch(self._changed)
        try:
            await self._agent.start()
            while self._agent.store.shared:  # another worker may have ended a goal
                await asyncio.sleep(_LOOK_SECONDS)
                for one in map(self._activity, tuple(self._open)):
                    self._changed(one)
            await asyncio.Event().wait()
        finally:
            stop()

    def became_of(self, key: str) -> Reconciliation | None:
        """What became of a call of an earlier process: a goal that was delegated is stored.

        The other operations may be called again.
        """
        if self._agent.store.get(self._name(key)) is not None:
            return "happened"
        return "did_not_happen" if self._agent.store.lasts else "unknown"

    # ---- What other agents ask for ----

    @operation(
        behavior="The agent begins at once, and works on without you",
        effects="there is a tool that stands for the goal; its signal `ended` has the result",
    )
    async def delegate(self, goal: GoalText) -> dict[str, str]:
        """Gives the agent a goal; the answer names the tool whose signal `ended` to wait for.

        Args:
            goal: What is to be reached, with all that the agent must know: it sees only this.
        """
        call = current_call()
        await self._started()
        name = self._name(call.key or uuid.uuid4().hex)
        known = self._agent.store.get(name)
        if known is None:
            self._check(goal, call)
            self._begin(name, goal, call)
        elif known.goal != goal:
            raise OperationRefusedError("its key was used for another goal")
        return {"tool": name, "signal": "ended"}

    @operation(read_only=True)
    async def outcome(self, delegated: str = "") -> list[dict[str, str]]:
        """Tells how a goal stands, and its result; without an id, your newest goals.

        Args:
            delegated: The id of the tool that `delegate` named.
        """
        await self._started()
        if delegated:
            found, limit = [self._activity(delegated)], OUTCOME_CHARACTERS
        else:
            caller, limit = current_call().lineage[-1:], RESULT_CHARACTERS
            found = [one for one in self._kept() if one.lineage[-1:] == caller][-_LISTED:]
        return [
            {
                "tool": one.id,
                "goal": clip(one.goal, _GOAL_CHARACTERS),
                "status": str(one.end or "open"),
                "result": clip(one.result, limit),
            }
            for one in found
        ]

    @operation(effects="`status` of the tools that stand for these goals becomes `cancelled`")
    async def cancel(self, delegated: str = "", reason: str = "Its caller cancelled it.") -> str:
        """Ends a goal that you delegated, and what was delegated for it; all of yours by default.

        Args:
            delegated: The id of the tool that `delegate` named; left out for all.
            reason: Why; it becomes the result.
        """
        await self._started()
        caller = current_call().lineage[-1:]
        mine = [one for one in map(self._activity, self._open) if one.lineage[-1:] == caller]
        if delegated:
            self._activity(delegated)  # says if there is none
            mine = [one for one in mine if one.id == delegated]
        if not mine:
            raise OperationRefusedError("nothing of yours is open under this id")
        await asyncio.gather(*(self._agent.cancel(one.id, reason, delegated=True) for one in mine))
        return f"Cancelled: {', '.join(one.id for one in mine)}."

    # ---- Inside ----

    async def _started(self) -> None:
        try:
            await self._agent.start()
        except CoagError as error:
            raise OperationRefusedError(f"agent {self._agent.name!r}: {error}") from error

    def _name(self, key: str) -> str:
        """The activity of a call, and the tool that represents it: the same for the same key."""
        return f"{self.id}_{content_id(self.id, key)[:_DIGITS]}"

    def _kept(self) -> list[Activity]:
        """The goals that are open, and the newest ones that have ended."""
        ids = re.compile(rf"{self.id}_[0-9a-f]{{{_DIGITS}}}")
        kept = self._agent.store.newest(f"{self.id}_", self._keep)
        return [one for one in kept if ids.fullmatch(one.id) and one.source.startswith(_SOURCE)]

    def _activity(self, delegated: str) -> Activity:
        activity = self._agent.store.get(delegated)
        if activity is None or not activity.source.startswith(_SOURCE):
            raise OperationRefusedError(f"no goal was delegated under the id {delegated!r}")
        return activity

    def _check(self, goal: str, call: CallOrigin) -> None:
        """Refuses a goal that would go in a circle, too deep, or beyond what may be open."""
        came = " > ".join(call.lineage)
        name = self._agent.name
        if any(one.startswith(f"{name}/") for one in call.lineage):
            circle = f"it would go in a circle: {name!r} works for this goal already ({came})"
            raise OperationRefusedError(f"{circle}. Do it yourself, or give it up")
        if len(call.lineage) > self._depth:
            came = f"the goal came through {len(call.lineage)} agents ({came})"
            raise OperationRefusedError(
                f"{came}, at most {self._depth} are allowed. Do it yourself"
            )
        if len(self._open) >= self._most_open:
            raise OperationRefusedError(
                f"{len(self._open)} goals are open, and no more are taken: wait until one has ended"
            )
        if not goal.strip():
            raise OperationRefusedError("the goal is empty: say what is to be reached")

    def _begin(self, name: str, goal: str, call: CallOrigin) -> None:
        now = self._agent.clock.now()
        caller = call.lineage[-1] if call.lineage else "unknown"
        activity = Activity(
            id=name,
            agent=self._agent.name,
            goal=goal,
            created=now,
            updated=now,
            source=f"{_SOURCE}{caller}",
            trust=self._trust,
            budget=self._budget,
            lineage=call.lineage,
        )
        self._agent.scheduler.add(activity)
        self._show(activity)

    def _show(self, activity: Activity) -> None:
        tool = DelegatedGoal(activity)
        self.workspace.add(tool, tool.epoch)
        self._open[activity.id] = tool
        self._changed(activity)

    def _changed(self, activity: Activity) -> None:
        """Follows the agent: a goal that has ended says so; the oldest ones lose their tools."""
        if not activity.over or (tool := self._open.pop(activity.id, None)) is None:
            return
        tool.end(activity)
        self._over[activity.id] = None
        while len(self._over) > self._keep:
            self.workspace.remove(self._over.popitem(last=False)[0])
