"""What running an action under guard may touch: the part of a phase's `Deps` that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from coag.context import CoagContext
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Clock,
    CountingIds,
    Note,
    Reconciliation,
    TraceSink,
    UnsettledAction,
)

from ._approval import Approvals
from ._arguments import ReadyArguments
from ._constraints import ConstraintSet
from ._detector import ProgressDetector
from ._modules import ModuleSeam

AnyContext = CoagContext[Any]
AskReconciliation = Callable[[UnsettledAction], Awaitable[Reconciliation]]
"""Finds out what became of an action of unknown outcome."""


class ActionDoor(Protocol):
    """The actions by name, and the one way to run them."""

    async def specs(self) -> Mapping[str, ActionSpec]:
        """The actions that exist now."""
        ...

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments exactly as the action will get them; a ValueError says why it won't."""
        ...

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs one action. A failing action gives a result that says so; it does not raise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardDeps:
    """What judging, approving, running and recording an action may call."""

    actions: ActionDoor
    trace: TraceSink
    clock: Clock
    ids: CountingIds
    approvals: Approvals | None = None
    """Asked right before an action runs that its policy wants approved."""
    agent: str = ""
    """The agent's name, for whoever approves."""
    constraints: ConstraintSet = field(default_factory=ConstraintSet)
    """Those that are pinned judge; who runs actions pins them."""
    ready: ReadyArguments = field(default_factory=ReadyArguments)
    modules: ModuleSeam = field(default_factory=ModuleSeam)
    detector: ProgressDetector = field(default_factory=ProgressDetector)
    reconcilers: tuple[AskReconciliation, ...] = ()
    """Asked in turn what became of an action of unknown outcome, until one knows."""
    announce: Callable[[Sequence[ActionCall]], None] = lambda calls: None
    """Is told of the external actions that are about to run, their intents written."""
    run: Callable[[], str] = lambda: ""
    """The run's id, which makes the ids of intents unique beyond this run."""

    def note(self, context: AnyContext, about: str, text: str, **details: Any) -> None:
        """Writes a note to the trace: nothing falls back silently."""
        self.trace.write(
            Note(
                at=self.clock.now(),
                cycle=context.working_memory.cycle,
                about=about,
                text=text,
                details=details,
            )
        )


def decided_at(context: AnyContext, deps: GuardDeps) -> datetime:
    """The time by which this cycle decides: when it began, so that a replay decides alike."""
    retrieval = context.working_memory.cognitive_state.retrieval
    return deps.clock.now() if retrieval is None else retrieval.at
