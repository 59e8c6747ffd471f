"""Reasoning: the model's understanding of the situation; nothing is proposed for execution."""

from __future__ import annotations

from coag.schema import DepthChoice, Phase, ReasoningOutcome

from .asking import Drafted, ask_phase, draft
from .deps import AnyContext, Deps, is_ablated
from .depth import OPEN, choose_depth, look_ahead
from .output_schema import BriefReasoningAnswer, ReasoningAnswer

UNUSABLE = "The model gave no usable answer:"


async def reason(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    """Asks the model for the situation; with `depth="compact"` also for scored candidates.

    With `depth="auto"` code chooses first how deeply this cycle deliberates; a reflex asks nobody.
    Where the settings leave reasoning out, the outcome is empty. In one call and native, that call
    is the one that offers the tools.
    """
    cycle, depth, choice = context.working_memory.cycle, deps.settings.depth, None
    if is_ablated("reasoning", context, deps):
        return ReasoningOutcome(cycle=cycle, at=deps.clock.now(), situation="")
    if depth == "auto":
        outlook = await look_ahead(context, deps)
        choice = choose_depth(outlook.evidence)
        if choice.reason == OPEN and (advice := await deps.modules.advise_depth(choice.evidence)):
            choice = choose_depth(choice.evidence.model_copy(update={"advice": advice}))
        if choice.depth == "reflex" and outlook.call is not None:
            drafted = outlook.call.model_copy(update={"id": deps.ids("candidate")})
            return ReasoningOutcome(
                cycle=cycle,
                at=deps.clock.now(),
                situation=f"No model was asked: {choice.reason}.",
                drafts=(drafted,),
                depth=choice,
            )
        depth = choice.depth
    return await _asked(context, deps, one_call=depth != "full", choice=choice)


async def _asked(
    context: AnyContext, deps: Deps, *, one_call: bool, choice: DepthChoice | None
) -> ReasoningOutcome:
    native = deps.settings.proposal == "native"
    if one_call:
        drafted = await draft(Phase.REASONING, context, deps)
    else:
        native, brief = False, deps.settings.answers == "brief"
        form = BriefReasoningAnswer if brief else ReasoningAnswer
        reply = await ask_phase(Phase.REASONING, form, context, deps)
        drafted = Drafted(usage=reply.usage, problem=reply.problem, answer=reply.value)
    answer = drafted.answer if isinstance(drafted.answer, ReasoningAnswer) else None
    problem = ""
    if answer is None:
        problem = drafted.problem if native else f"{UNUSABLE} {drafted.problem}"
    if problem:
        deps.note(context, "fallback", problem, phase="reasoning")
    outcome = ReasoningOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        usage=drafted.usage,
        situation=problem,
        thought=drafted.thought,
        drafts=drafted.candidates,
        depth=choice,
    )
    if answer is None:
        return outcome
    seen = {"situation": answer.situation, "risks": tuple(answer.risks)}
    return outcome.model_copy(update={**seen, "goal_status": answer.goal_status})
