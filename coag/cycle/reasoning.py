"""Reasoning: the model's understanding of the situation; nothing is proposed for execution."""

from __future__ import annotations

from coag.schema import Candidate, Phase, ReasoningOutcome

from .deps import AnyContext, Deps, ModelReply, is_ablated
from .native import propose_natively
from .output_schema import (
    DeliberationAnswer,
    ReasoningAnswer,
    ask_phase,
    deliberation_form,
    form_answers,
    reasoning_form,
)

UNUSABLE = "The model gave no usable answer:"


async def reason(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    """Asks the model how things stand; with `depth="compact"` also for scored candidates.

    Where the settings leave reasoning out, the outcome is empty.
    """
    if is_ablated("reasoning", context, deps):
        cycle = context.working_memory.cycle
        return ReasoningOutcome(cycle=cycle, at=deps.clock.now(), situation="")
    if deps.settings.depth == "compact" and deps.settings.proposal == "native":
        return await _offer(context, deps)
    if deps.settings.depth == "compact":
        return await _deliberate(context, deps)
    answer = reasoning_form(deps)
    reply = await ask_phase(Phase.REASONING, answer, context, deps)
    return _outcome(context, deps, reply, ())


async def _offer(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    """Compact and native: the one call is the one that offers the tools."""
    proposed = await propose_natively(Phase.REASONING, context, deps)
    if proposed.problem:
        deps.note(context, "fallback", proposed.problem, phase="reasoning")
    return ReasoningOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        usage=proposed.usage,
        situation=proposed.problem,
        thought=proposed.thought,
        drafts=proposed.candidates,
    )


async def _deliberate(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    answer = await deliberation_form(context, deps)
    reply = await ask_phase(
        Phase.REASONING,
        answer,
        context,
        deps,
        procedure="deliberation",
    )
    drafts, usage = await form_answers(
        [
            draft.as_candidate(deps.ids("candidate"))
            for draft in (reply.value.candidates if reply.value else ())
        ],
        Phase.REASONING,
        context,
        deps,
        procedure="deliberation",
    )
    outcome = _outcome(context, deps, reply, drafts)
    return outcome.model_copy(update={"usage": outcome.usage + usage})


def _outcome(
    context: AnyContext,
    deps: Deps,
    reply: ModelReply[ReasoningAnswer] | ModelReply[DeliberationAnswer],
    drafts: tuple[Candidate, ...],
) -> ReasoningOutcome:
    at, cycle = deps.clock.now(), context.working_memory.cycle
    if reply.value is None:
        situation = f"{UNUSABLE} {reply.problem}"
        deps.note(context, "fallback", situation, phase="reasoning")
        return ReasoningOutcome(cycle=cycle, at=at, usage=reply.usage, situation=situation)
    return ReasoningOutcome(
        cycle=cycle,
        at=at,
        usage=reply.usage,
        situation=reply.value.situation,
        risks=tuple(reply.value.risks),
        goal_status=reply.value.goal_status,
        drafts=drafts,
    )
