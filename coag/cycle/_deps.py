"""Everything a phase may touch besides working memory, in one value."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from coag.context import PhaseMaterial, is_untrusted
from coag.memory import LongTermMemory, ProceduralMemory, is_seed
from coag.schema import (
    ActionSpec,
    Environment,
    Evaluation,
    Phase,
    Prompt,
    RecalledRecord,
    Situation,
    TokenUsage,
    Trust,
)

from ._actions import GuardedActions
from ._guard_deps import AnyContext, GuardDeps
from ._settings import CycleSettings
from ._told import Told

AnswerT = TypeVar("AnswerT", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
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
    ) -> Asked[AnswerT]:
        """Raises `ModelCallError` if the model cannot be asked at all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
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
    ) -> Offered:
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
    settings: CycleSettings = field(default_factory=CycleSettings)
    random: random.Random = field(default_factory=random.Random)
    system_message: str = ""
    environment: Environment | None = None
    """Tells its state for the trace's snapshots; phases never look at it."""
    told: Told = field(default_factory=Told)


def situation(context: AnyContext, phase: Phase) -> Situation:
    """What modules are told."""
    memory = context.working_memory
    retrieval = memory.cognitive_state.retrieval
    return Situation(
        activity=memory.activity,
        goal=memory.goal,
        cycle=max(memory.cycle, 1),
        phase=phase,
        query=retrieval.query if retrieval else "",
    )


async def prompt_for(
    phase: Phase,
    context: AnyContext,
    deps: Deps,
    *,
    form: str,
    procedure: str | None = None,
    evaluations: tuple[Evaluation, ...] = (),
    offered: Sequence[ActionSpec] | None = None,
) -> Prompt:
    """The prompt of a phase: its pinned procedure, the form of the answer, what it needs.

    Actions that are `offered` as tools are not described once more in the text.
    """
    retrieval = context.working_memory.cognitive_state.retrieval
    name = procedure or phase.value
    pinned = retrieval.procedures.get(name) if retrieval else None
    budget = context.budgets.module
    chooses = (phase is Phase.PROPOSAL or procedure is not None) and offered is None
    specs: tuple[ActionSpec, ...] = ()
    if chooses or _growing(context):
        specs = tuple((await deps.actions.specs()).values())
    procedure_text = deps.procedures.render(name, context.procedure_values(), version=pinned)
    if offered is not None and not offered and is_seed(name, procedure_text):
        procedure_text = ""  # how to use tools says nothing to a model that is offered none
    material = PhaseMaterial(
        instructions={phase: procedure_text},
        forms={phase: form},
        system_message=deps.system_message,
        actions=specs,
        description=context.describe(),
        evaluations=evaluations,
        modules=await deps.modules.contribute(phase, situation(context, phase), budget),
        offered=offered or (),
        chat=offered is not None,
    )
    return context.build_prompt(phase, material)


async def ask_phase(
    phase: Phase,
    answer: type[AnswerT],
    context: AnyContext,
    deps: Deps,
    *,
    form: str,
    procedure: str | None = None,
    evaluations: tuple[Evaluation, ...] = (),
) -> Asked[AnswerT]:
    """What the model answers to the prompt of a phase; see `prompt_for`."""
    prompt = await prompt_for(
        phase, context, deps, form=form, procedure=procedure, evaluations=evaluations
    )
    return await deps.ask(prompt, answer, phase=phase, cycle=context.working_memory.cycle)


def _growing(context: AnyContext) -> bool:
    return context.rendering == "growing"


def untrusted_texts(context: AnyContext) -> tuple[str, ...]:
    """Every untrusted text of the activity that is still held; the gate judges by it.

    Percepts and recalled records, the results of earlier external actions, others' untrusted
    words in the dialogue, the goal if somebody untrusted set it, and what is kept of earlier ones
    (`WorkingMemory.tainted_by`).
    """
    memory = context.working_memory
    retrieval = memory.cognitive_state.retrieval
    hits: tuple[RecalledRecord, ...] = retrieval.records if retrieval else ()
    texts = (
        *(p.content for p in memory.percepts if is_untrusted(p)),
        *(h.record.text for h in hits if h.record.provenance.trust is Trust.UNTRUSTED),
        *(deed.result for deed in memory.deeds if not deed.internal),
        *(said.content for said in memory.dialogue if said.trust is Trust.UNTRUSTED),
        *((memory.goal,) if memory.goal_trust is Trust.UNTRUSTED else ()),
        *(() if memory.tainted_by is None else memory.tainted_by.texts),
    )
    return tuple(dict.fromkeys(text for text in texts if text))
