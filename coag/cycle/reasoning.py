"""Reasoning: the model's understanding of the situation; nothing is proposed for execution."""

from __future__ import annotations

from coag.schema import Phase, ReasoningOutcome

from .asking import Drafted, ask_phase, draft
from .deps import AnyContext, Deps, is_ablated
from .output_schema import BriefReasoningAnswer, ReasoningAnswer

UNUSABLE = "The model gave no usable answer:"


async def reason(context: AnyContext, deps: Deps) -> ReasoningOutcome:
    """Asks the model for the situation; with `depth="compact"` also for scored candidates.

    Where the settings leave reasoning out, the outcome is empty. Compact and native, the one call
    is the one that offers the tools.
    """
    cycle, native = context.working_memory.cycle, deps.settings.proposal == "native"
    if is_ablated("reasoning", context, deps):
        return ReasoningOutcome(cycle=cycle, at=deps.clock.now(), situation="")
    if deps.settings.depth == "compact":
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
        cycle=cycle,
        at=deps.clock.now(),
        usage=drafted.usage,
        situation=problem,
        thought=drafted.thought,
        drafts=drafted.candidates,
    )
    if answer is None:
        return outcome
    seen = {"situation": answer.situation, "risks": tuple(answer.risks)}
    return outcome.model_copy(update={**seen, "goal_status": answer.goal_status})
