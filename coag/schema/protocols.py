"""What the layers need from each other, and from extensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from .actions import ActionCall, ActionResult, ActionSpec, Candidate, Verdict
from .depth import DepthAdvice, DepthEvidence
from .outcomes import Outcome
from .percepts import Percept
from .prompts import Section, Situation
from .trace_records import TraceRecord
from .values import Phase


class Constraint(Protocol):
    """A hard rule in code; no model output overrides it.

    A plain function `(candidate, state, projection) -> Verdict` is one; its name is its
    `__name__`. An object may carry a `name`.
    """

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges a candidate whose arguments are already valid.

        Args:
            candidate: The proposed action; `candidate.arguments` is set.
            state: The typed perceptual state.
            projection: The typed state that the domain's forward model predicts, or None.
        """
        ...


@runtime_checkable
class ConstraintSource(Protocol):
    """Something that brings constraints of its own, e.g. a context subclass or a module."""

    def constraints(self) -> Sequence[Constraint]:
        """The constraints in force now; read once at the start of each cycle."""
        ...


class ActionSpace(Protocol):
    """Everything that can be done, and the way to do it."""

    async def specs(self) -> Sequence[ActionSpec]:
        """The actions that exist now."""
        ...

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs one action. A failing action gives a result that says so; it does not raise."""
        ...


@runtime_checkable
class CompletesArguments(Protocol):
    """An action space that knows more of its arguments than their JSON Schema says."""

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with defaults and conversions, exactly as the action will get them.

        Completing what was completed gives the same.

        Raises:
            ValueError: The action would not take them; the message says why.
        """
        ...


@runtime_checkable
class ActionSource(Protocol):
    """A module that brings actions of its own; they are internal.

    Unless its spec says `repeatable`, each runs between intent and receipt, as a tool does.
    """

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions that the module offers now."""
        ...

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs one of them."""
        ...


@runtime_checkable
class ActionsWatcher(Protocol):
    """A module that wants to know which actions there are, those of MCP servers included."""

    def actions_listed(self, specs: Sequence[ActionSpec]) -> None:
        """Gets all actions before a Proposal: the first time, and when they have changed."""
        ...


@runtime_checkable
class PerceptSource(Protocol):
    """A module that brings what arrived from outside while the agent deliberated or waited."""

    async def take_percepts(self) -> Sequence[Percept]:
        """What is to be perceived before the next cycle, in order; looked at before each one.

        A percept is given until the module has observed it: what was given and not perceived,
        e.g. because the turn was cancelled, is given again.
        """
        ...


class TraceSink(Protocol):
    """Where a run's records go."""

    def write(self, record: TraceRecord) -> None:
        """Appends a record."""
        ...

    def flush(self) -> None:
        """Makes what was written survive the death of this process."""
        ...


@runtime_checkable
class LazySink(Protocol):
    """A sink that need not make a record before somebody reads it."""

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Appends what `make` gives; it gives the same whenever it is called."""
        ...


class CognitiveModule(Protocol):
    """A cognitive module: it observes and contributes, and never acts."""

    name: str

    async def observe(self, event: Percept | Outcome) -> None:
        """Gets everything that is committed or perceived, in order."""
        ...

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """A section for this phase's prompt of at most `budget` tokens, or None."""
        ...

    def save_state(self) -> Mapping[str, Any]:
        """The module's state as JSON."""
        ...

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state."""
        ...


@runtime_checkable
class DepthAdviser(Protocol):
    """A module that has learned which depth pays, for `depth="auto"`."""

    async def advise_depth(self, evidence: DepthEvidence) -> DepthAdvice | None:
        """A depth for the cycle that is open; None for none.

        It is asked only where the evidence leaves the depth open, and what it advised is in the
        committed `ReasoningOutcome`.
        """
        ...


@runtime_checkable
class Resettable(Protocol):
    """A cognitive module that is notified when its agent is reset; others keep their state."""

    def reset_state(self) -> None:
        """Forgets the dialogue and the activity; what the module keeps for good stays."""
        ...


@runtime_checkable
class Detachable(Protocol):
    """A cognitive module over something that outlives it, such as a file that agents share.

    A replay or a fork builds a run's agent again and detaches its modules: to look at a run
    changes nothing.
    """

    def detach(self) -> None:
        """From now on reads what is there, and keeps what it learns to itself."""
        ...


class Environment(Protocol):
    """An agent's environment that can give its whole state and be put back into it.

    The agent never sees that state: it goes into the trace's snapshots, for replays and forks.
    One that a fork may act in has a member `is_copy` that is True: what is done in it is done
    nowhere else. Only a copy is put back.
    """

    async def snapshot(self) -> Any:
        """The whole state now, as JSON.

        What it raises is noted in the trace; the turn continues.
        """
        ...

    async def restore(self, state: Any) -> None:
        """Puts the environment into a state that `snapshot` gave.

        Raises:
            CoagError: It cannot; nothing was changed.
        """
        ...

    async def close(self) -> None:
        """Releases what was opened for it; closing twice does no harm."""
        ...


def is_copy(environment: Environment | None) -> bool:
    """Whether an environment says that it is a copy, so that nothing real happens in it."""
    return getattr(environment, "is_copy", False) is True
