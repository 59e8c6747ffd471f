"""What a guard around plain tools knows: the state that rules judge by, what failed, its run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from coag.context import CoagContext
from coag.cycle import (
    CURRENT_STATE,
    ActionDoor,
    Approvals,
    AskReconciliation,
    ConstraintSet,
    GuardDeps,
    NoActions,
    ProgressDetector,
    perceive,
    reconcile,
    settled_by_person,
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
    UnsettledAction,
    Verdict,
)

from ._guarded_answers import UNKNOWN
from ._plain_run import PlainRun

_STALE = "Until the workbench is reset, nothing more is run."


class _NoTools:
    """Stands for the tools where none is called."""

    async def specs(self) -> Mapping[str, ActionSpec]:
        return {}

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

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
        self.running: dict[str, ActionCall] = {}
        """Calls that have begun and not ended; a state that is saved names them."""
        self.reconcilers: tuple[AskReconciliation, ...] = (context.reconcile,)
        """Asked what became of calls of unknown outcome."""

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
            reconcilers=self.reconcilers,
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
        known = {one.intent_id for one in self.context.working_memory.unsettled}
        fresh = [one for one in left.unsettled if one.intent_id not in known]
        await self.perceive([self._lost(action) for action in fresh])

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

    @property
    def forbids(self) -> Verdict | None:
        """What forbids every call before any rule is asked."""
        if not self.stale:
            return None
        return Verdict(allowed=False, constraint=CURRENT_STATE, reason=self.stale)

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Takes in what a person says became of a call of unknown outcome.

        Raises:
            UnknownNameError: No call with this intent is of unknown outcome.
        """
        deps = self.deps()
        found = settled_by_person(intent_id, happened=happened, context=self.context, deps=deps)
        await self.perceive([found])

    async def reconcile(self) -> None:
        """Asks what became of calls of unknown outcome, before anything is judged."""
        if self.context.working_memory.unsettled:
            await self.perceive(await reconcile(self.context, self.deps()))

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
            "pending": [call.model_dump(mode="json") for call in self.running.values()],
        }

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `save_state` gave.

        Raises:
            StateError: The perceptual state does not fit the context's schema.
        """
        await self.context.load_state(state["context"])
        self.detector.load_state(state["detector"])
        self.context.ids.load(state["ids"])
        for call in map(ActionCall.model_validate, state["pending"]):
            cycle = self.context.working_memory.cycle
            self.context.perceive(
                self._lost(
                    UnsettledAction(
                        intent_id=call.id,
                        action=call.action,
                        arguments=call.arguments,
                        cycle=cycle,
                    )
                )
            )
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

    def _lost(self, action: UnsettledAction) -> Percept:
        return Percept(
            id=self.context.ids("percept"),
            at=self.context.clock.now(),
            kind=PerceptKind.UNKNOWN_OUTCOME,
            source=action.action,
            trust=Trust.UNTRUSTED,
            content=f"An earlier run began {action.action}. {UNKNOWN}",
            caused_by=action.intent_id,
            arguments=action.arguments,
            is_error=True,
        )
