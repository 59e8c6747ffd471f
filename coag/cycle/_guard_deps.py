"""What running an action under guard may touch: the part of a phase's `Deps` that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from coag.context import CoagContext
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Clock,
    CountingIds,
    Note,
    TraceSink,
)

from ._approval import Approvals
from ._constraints import ConstraintSet
from ._detector import ProgressDetector
from ._modules import ModuleSeam

AnyContext = CoagContext[Any]


class ActionDoor(Protocol):
    """The actions by name, and the one way to run them."""

    async def specs(self) -> Mapping[str, ActionSpec]:
        """The actions that exist now."""
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
    modules: ModuleSeam = field(default_factory=ModuleSeam)
    detector: ProgressDetector = field(default_factory=ProgressDetector)
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
