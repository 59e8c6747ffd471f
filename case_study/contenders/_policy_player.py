"""Contenders that ask no model: chance, a program, a search. They leave a trace like the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from case_study.baseline import WorldWorkbench
from coag.compat import Recorder
from coag.tracing import RunFolder

from ._parts import Act, Change, Message, Observation, Parts
from ._player import Turn

Policy = Callable[[Observation], Awaitable[Act | None]]
"""From what is seen to what is done next; None when all is done."""

FINISHED = "Nothing is left to do."


class PolicyPlayer:
    """A policy that plays, one action a turn.

    Args:
        policy: What it does.
        parts: What its domain brings.
        recorder: Who writes its run down.
    """

    def __init__(self, policy: Policy, parts: Parts, recorder: Recorder) -> None:
        self._policy = policy
        self._recorder = recorder
        self._tools = WorldWorkbench(parts.tools, recorder)
        self._task = ""
        self._changes: list[str] = []
        self._messages: list[Message] = []
        self._results: list[str] = []

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        return self._recorder.turn

    @property
    def tokens(self) -> int:
        """It asks no model."""
        return 0

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """One turn with one action, or none.

        Raises:
            TraceError: The trace could not be written.
        """
        del allowance
        for each in messages:
            self._recorder.message(each.source, each.text)
            self._messages.append(each)
        self._task = self._task or text
        self._recorder.begin_turn()
        seen = Observation(
            task=self._task,
            changes=tuple(self._changes),
            messages=tuple(self._messages),
            results=tuple(self._results),
        )
        act = await self._policy(seen)
        if act is None:
            self._recorder.end_turn("respond", FINISHED)
            return Turn()
        result = await self._tools.call_tool(act.action, act.arguments)
        if self._tools.problem is not None:
            raise self._tools.problem
        text = result.to_text()
        self._results.append(text)
        self._recorder.end_turn("actions", "")
        return Turn(results=(text,))

    async def change(self, change: Change) -> None:
        """It is told in words."""
        if change.sentence not in self._changes:
            self._changes.append(change.sentence)
            self._recorder.note("prompt", change.sentence)

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder."""
        return self._recorder.folder

    async def close(self) -> None:
        """Ends the run."""
        self._recorder.close()
