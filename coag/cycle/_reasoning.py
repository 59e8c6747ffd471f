"""Reasoning: the model's understanding of the situation; nothing is proposed for execution."""

from __future__ import annotations

from coag.schema import Candidate, Phase, ReasoningOutcome

from ._answers import DeliberationAnswer, ReasoningAnswer, form_of, with_enumerated_actions
from ._deps import AnyContext, Asked, Deps, ask_phase

UNUSABLE = "The model gave no usable answer:"


async def reason(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    """Asks the model how things stand; with `depth="compact"` also for scored candidates."""
    if deps.settings.depth == "compact":
        return await _deliberate(context, deps)
    form = form_of(ReasoningAnswer)
    asked = await ask_phase(Phase.REASONING, ReasoningAnswer, context, deps, form=form)
    return _outcome(context, deps, asked, ())


async def _deliberate(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    answer: type[DeliberationAnswer] = DeliberationAnswer
    if deps.settings.enumerate_actions:
        names = tuple(await deps.actions.specs())
        answer = with_enumerated_actions(DeliberationAnswer, names)
    asked = await ask_phase(
        Phase.REASONING,
        answer,
        context,
        deps,
        form=form_of(DeliberationAnswer),
        procedure="deliberation",
    )
    drafts = tuple(
        draft.as_candidate(deps.ids("candidate"))
        for draft in (asked.value.candidates if asked.value else ())
    )
    return _outcome(context, deps, asked, drafts)


def _outcome(
    context: AnyContext,
    deps: Deps,
    asked: Asked[ReasoningAnswer] | Asked[DeliberationAnswer],
    drafts: tuple[Candidate, ...],
) -> ReasoningOutcome:
    at, cycle = deps.clock.now(), context.working_memory.cycle
    if asked.value is None:
        situation = f"{UNUSABLE} {asked.problem}"
        deps.note(context, "fallback", situation, phase="reasoning")
        return ReasoningOutcome(cycle=cycle, at=at, usage=asked.usage, situation=situation)
    return ReasoningOutcome(
        cycle=cycle,
        at=at,
        usage=asked.usage,
        situation=asked.value.situation,
        risks=tuple(asked.value.risks),
        goal_status=asked.value.goal_status,
        drafts=drafts,
    )
