"""What a guard around plain tools knows: the state that rules judge by, what failed, its run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from coag.context import CoagContext
from coag.cycle import (
    CURRENT_STATE,
    ActionDoor,
    Approvals,
    ConstraintSet,
    GuardDeps,
    NoActions,
    ProgressDetector,
    perceive,
)
from coag.errors import StateError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Intent,
    Percept,
    PerceptKind,
    Snapshot,
    SnapshotReason,
    Trust,
    Verdict,
)

from ._guarded_answers import UNKNOWN
from ._plain_run import PlainRun

UNFINISHED = "unfinished_call"
"""The rule by which a call that an earlier run left open is not repeated unseen."""
_STALE = "Until the workbench is reset, nothing more is run."
_UNSEEN = (
    "an earlier run began exactly this and was ended before it was known what came of it. Find "
    "out first; if it has to be done, call it again"
)


class _NoTools:
    """Stands for the tools where none is called."""

    async def specs(self) -> Mapping[str, ActionSpec]:
        return {}

    async def execute(self, call: ActionCall) -> ActionResult:
        return await NoActions().execute(call)


class GuardedRun:
    """The context, the detector and the trace of a guard around plain tools.

    Each call counts as a cycle of the context's working memory.

    Args:
        name: Who calls, for approvers.
        context: Keeps the state that rules judge by.
        constraints: The rules.
        approvals: Who has to agree to what.
        trace: Where everything is written.
    """

    def __init__(
        self,
        name: str,
        context: CoagContext[Any],
        constraints: ConstraintSet,
        approvals: Approvals | None,
        trace: PlainRun,
    ) -> None:
        self.name = name
        self.context = context
        self.constraints = constraints
        self.approvals = approvals
        self.trace = trace
        self.detector = ProgressDetector()
        self.unfinished: tuple[Intent, ...] = ()
        """Calls that earlier runs left open, as found when this run began."""
        self._unseen: set[tuple[str, str]] = set()

    def deps(
        self,
        actions: ActionDoor | None = None,
        announce: Callable[[Sequence[ActionCall]], None] = lambda calls: None,
    ) -> GuardDeps:
        """What a call may use."""
        return GuardDeps(
            actions=actions or _NoTools(),
            trace=self.trace,
            clock=self.context.clock,
            ids=self.context.ids,
            approvals=self.approvals,
            agent=self.name,
            constraints=self.constraints,
            detector=self.detector,
            announce=announce,
            run=lambda: self.trace.id,
        )

    async def open(self) -> None:
        """Begins the run, unless it goes on; calls that earlier ones left open are perceived.

        Raises:
            TraceError: It cannot be written down.
        """
        left = self.trace.open()
        if left is None:
            return
        self._note_state()
        for problem in left.problems:
            self.note("run", problem)
        self.unfinished = left.intents
        self._unseen = {
            (one.action, json.dumps(one.arguments, sort_keys=True)) for one in left.intents
        }
        await self.perceive([self._lost(intent) for intent in left.intents])

    def next_cycle(self) -> None:
        """Another call begins."""
        self._set_cycle(self.context.working_memory.cycle + 1)

    async def perceive(self, percepts: Iterable[Percept]) -> None:
        """Takes in percepts; where a hook cannot read one, nothing more runs on the old state."""
        with suppress(StateError):  # working memory keeps what was raised, and forbids
            await perceive(percepts, self.context, self.deps())
        self.trace.flush()

    @property
    def stale(self) -> str:
        """Why the state is out of date; empty while it is not."""
        problem = self.context.working_memory.stale
        return f"The perceptual state is out of date: {problem} {_STALE}" if problem else ""

    def forbids(self, action: str, arguments: str) -> Verdict | None:
        """What forbids a call before any rule is asked; an unfinished one once only.

        Args:
            action: The tool.
            arguments: Its arguments as JSON with sorted keys.
        """
        if self.stale:
            return Verdict(allowed=False, constraint=CURRENT_STATE, reason=self.stale)
        if (action, arguments) not in self._unseen:
            return None
        self._unseen.discard((action, arguments))
        return Verdict(allowed=False, constraint=UNFINISHED, reason=_UNSEEN)

    def note(self, about: str, text: str, **details: Any) -> None:
        """Writes a note to the trace of the run that goes on, if one does."""
        if self.trace.id:
            self.deps().note(self.context, about, text, **details)

    async def reset(self) -> None:
        """Forgets the state and what failed. Calls are counted on, for the trace's sake."""
        cycle = self.context.working_memory.cycle
        await self.context.clear()
        self._set_cycle(cycle)
        self.detector.load_state({})
        self.note("reset", "The workbench was reset.")
        self._note_state()

    async def save_state(self) -> dict[str, Any]:
        """What the guard knows, as JSON."""
        return {
            "context": dict(await self.context.save_state()),
            "detector": self.detector.save_state(),
            "ids": self.context.ids.save(),
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `save_state` gave.

        Raises:
            StateError: The perceptual state does not fit the context's schema.
        """
        await self.context.load_state(state["context"])
        self.detector.load_state(state["detector"])
        self.context.ids.load(state["ids"])
        self._note_state()

    def _set_cycle(self, number: int) -> None:
        memory = self.context.working_memory
        self.context.restore(memory.model_copy(update={"cycle": number}))

    def _note_state(self) -> None:
        """Writes down a state that no percept of this run led to; nothing between runs."""
        if not self.trace.id:
            return
        memory = self.context.working_memory
        self.trace.write(
            Snapshot(
                at=self.context.clock.now(),
                cycle=memory.cycle,
                reason=SnapshotReason.LOADED,
                working_memory=memory.to_json(),
                detector=self.detector.save_state(),
                ids=self.context.ids.save(),
            )
        )
        self.trace.flush()

    def _lost(self, intent: Intent) -> Percept:
        return Percept(
            id=self.context.ids("percept"),
            at=self.context.clock.now(),
            kind=PerceptKind.UNKNOWN_OUTCOME,
            source=intent.action,
            trust=Trust.UNTRUSTED,
            content=f"An earlier run ended while {intent.action} ran. {UNKNOWN}",
            caused_by=intent.id,
            arguments=intent.arguments,
            is_error=True,
        )
