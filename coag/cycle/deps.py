"""Everything a phase may touch besides working memory, and how it asks the model."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from coag.context import CoagContext, is_untrusted
from coag.memory import LongTermMemory, ProceduralMemory
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Clock,
    CountingIds,
    Environment,
    Note,
    Percept,
    Phase,
    Prompt,
    Reconciliation,
    TokenUsage,
    TraceSink,
    Trust,
    UnsettledAction,
    shown_text,
)

from .actions import GuardedActions, ReadyArguments
from .approval import Approvals
from .compiled import CompiledProcedures
from .constraints import ConstraintSet
from .modules import ModuleHost
from .repeated_failures import ProgressDetector
from .settings import Ablation, CycleSettings


class SnapshotDeltas:
    """Remembers what the snapshots of one trace hold, so that only changes are written again."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def reset(self) -> None:
        """Another trace begins: everything is written again."""
        self._last.clear()

    def changed(self, what: str, value: Any) -> bool:
        """Whether a value differs from the last of its kind; it is the last from now on."""
        if self._last.get(what) == value:
            return False
        self._last[what] = deepcopy(value)  # its owner may change it in place
        return True


AnyContext = CoagContext[Any]
AskReconciliation = Callable[[UnsettledAction], Awaitable[Reconciliation]]
"""Finds out what became of an action of unknown outcome."""


class ActionExecutor(Protocol):
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

    actions: ActionExecutor
    trace: TraceSink
    clock: Clock
    ids: CountingIds
    approvals: Approvals | None = None
    """Asked right before an action runs that its policy wants approved."""
    agent: str = ""
    """The agent's name, for approvers."""
    constraints: ConstraintSet = field(default_factory=ConstraintSet)
    """Those that are pinned judge; who runs actions pins them."""
    ready: ReadyArguments = field(default_factory=ReadyArguments)
    modules: ModuleHost = field(default_factory=ModuleHost)
    detector: ProgressDetector = field(default_factory=ProgressDetector)
    reconcilers: tuple[AskReconciliation, ...] = ()
    """Asked in turn what became of an action of unknown outcome, until one knows."""
    announce: Callable[[Sequence[ActionCall]], None] = lambda calls: None
    """Gets the external actions that are about to run; their intents are written."""
    run: Callable[[], str] = lambda: ""
    """The run's id, which makes the ids of intents unique beyond this run."""

    def percept(self, **fields: Any) -> Percept:
        """A percept that arrives now from outside, from nobody who is trusted."""
        named = self.ids("percept")
        return Percept(id=named, at=self.clock.now(), trust=Trust.UNTRUSTED, **fields)

    def note(self, context: AnyContext, about: str, text: str, **details: Any) -> None:
        """Writes a note to the trace: nothing falls back silently."""
        at, cycle = self.clock.now(), context.working_memory.cycle
        self.trace.write(Note(at=at, cycle=cycle, about=about, text=text, details=details))


def decided_at(context: AnyContext, deps: GuardDeps) -> datetime:
    """The time by which this cycle decides: when it began, so that a replay decides alike."""
    retrieval = context.working_memory.cognitive_state.retrieval
    return deps.clock.now() if retrieval is None else retrieval.at


# ---- Everything a phase may touch besides working memory, in one value ----


AnswerT = TypeVar("AnswerT", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelReply(Generic[T]):
    """What came of asking the model."""

    value: T | None
    """The answer; None if it stayed unusable."""
    usage: TokenUsage
    problem: str = ""
    """Why there is no value."""


class AskModel(Protocol):
    """Asks the model for an answer of a type; unusable answers are given back, not raised."""

    async def __call__(
        self, prompt: Prompt, answer: type[AnswerT], /, *, phase: Phase, cycle: int
    ) -> ModelReply[AnswerT]:
        """Raises `ModelCallError` if the model cannot be asked at all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProposal:
    """What came of offering the model the actions as tools."""

    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments of each call, as the model wrote them."""
    ids: tuple[str, ...] = ()
    """The model's own ids of the calls, in their order."""
    text: str = ""
    """The answer in text, where nothing was called."""
    thought: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)
    remarks: tuple[str, ...] = ()
    """What had to be repaired or was dropped."""


class OfferActions(Protocol):
    """Offers the model actions as tools; it calls some or answers in text. Nothing is run."""

    async def __call__(
        self,
        prompt: Prompt,
        actions: Sequence[ActionSpec],
        /,
        *,
        phase: Phase,
        cycle: int,
        live: bool,
    ) -> ToolProposal:
        """Asks; a text may be shown while it is written only if it is `live`.

        Raises:
            ModelCallError: The model cannot be asked at all.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps(GuardDeps):
    """What a phase may call: `async (context, deps) -> Outcome`."""

    ask: AskModel
    offer: OfferActions | None = None
    """Needed for `proposal="native"`."""
    answer_type: type[BaseModel] | None = None
    """The form that the answer of a turn must have; None for a text."""
    actions: GuardedActions
    procedures: ProceduralMemory
    memory: LongTermMemory | None = None
    compiled: CompiledProcedures | None = None
    """What was learned from repeated success, for `depth="auto"`; also one of the modules."""
    settings: CycleSettings = field(default_factory=CycleSettings)
    random: random.Random = field(default_factory=random.Random)
    system_message: str = ""
    environment: Environment | None = None
    """Tells its state for the trace's snapshots; phases never look at it."""
    snapshots: SnapshotDeltas = field(default_factory=SnapshotDeltas)


def untrusted_texts(context: AnyContext) -> tuple[str, ...]:
    """Every untrusted text of the activity that is still held; the gate judges by it.

    Percepts and recalled records, the results of earlier external actions, others' untrusted
    words in the dialogue, the goal if somebody untrusted set it, and what is kept of earlier ones
    (`WorkingMemory.tainted_by`).
    """
    memory, untrusted = context.working_memory, Trust.UNTRUSTED
    retrieval = memory.cognitive_state.retrieval
    records = [
        (hit.record.provenance.trust, text)
        for hit in (retrieval.records if retrieval else ())
        for text in {hit.record.text: None, shown_text(hit): None}
    ]
    felt = [(one.trust, one.cue) for one in (retrieval.felt if retrieval else ())]
    texts = (
        *(one.content for one in memory.percepts if is_untrusted(one)),
        *(text for trust, text in (*records, *felt) if trust is untrusted),
        *(past.result for past in memory.deeds if not past.internal),
        *(said.content for said in memory.dialogue if said.trust is untrusted),
        *((memory.goal,) if memory.goal_trust is untrusted else ()),
        *(memory.tainted_by.texts if memory.tainted_by else ()),
    )
    return tuple(dict.fromkeys(text for text in texts if text))


_EFFECTS: Mapping[Ablation, str] = {
    "retrieval": "nothing is recalled",
    "reasoning": "the model is not asked how things stand",
    "evaluation": "the model scores nothing and is shown no predictions",
    "rewriting": "the agent cannot change its standing rules",
}


def is_ablated(part: Ablation, context: AnyContext, deps: Deps) -> bool:
    """Whether the settings leave a part out; if so, a note in the trace says it."""
    if part not in deps.settings.ablations:
        return False
    text = f"Left out by the settings: {part}, so {_EFFECTS[part]}."
    deps.note(context, "left_out", text, part=part)
    return True
