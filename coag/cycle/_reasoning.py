"""Reasoning: the model's understanding of the situation; nothing is proposed for execution."""

from __future__ import annotations

from coag.schema import Candidate, Phase, ReasoningOutcome

from ._answers import DeliberationAnswer, ReasoningAnswer, form_of, with_enumerated_actions
from ._deps import AnyContext, Asked, Deps, prompt_for

UNUSABLE = "The model gave no usable answer:"


async def reason(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    """Asks the model how things stand; with `depth="compact"` also for scored candidates."""
    if deps.settings.depth == "compact":
        return await _deliberate(context, deps)
    prompt = await prompt_for(Phase.REASONING, context, deps, form=form_of(ReasoningAnswer))
    cycle = context.working_memory.cycle
    asked = await deps.ask(prompt, ReasoningAnswer, phase=Phase.REASONING, cycle=cycle)
    return _outcome(context, deps, asked, ())


async def _deliberate(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    answer: type[DeliberationAnswer] = DeliberationAnswer
    if deps.settings.enumerate_actions:
        names = tuple(await deps.actions.specs())
        answer = with_enumerated_actions(DeliberationAnswer, names)
    prompt = await prompt_for(
        Phase.REASONING,
        context,
        deps,
        form=form_of(DeliberationAnswer),
        procedure="deliberation",
    )
    cycle = context.working_memory.cycle
    asked = await deps.ask(prompt, answer, phase=Phase.REASONING, cycle=cycle)
    drafts = tuple(
        Candidate(
            id=deps.ids("candidate"),
            action=draft.action,
            raw_arguments=draft.arguments,
            reason=draft.reason,
            expected_effect=draft.expected_effect,
            draft_score=draft.score,
        )
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
