"""Evaluation: hard checks, projections and constraints first; the model only for survivors."""

from __future__ import annotations

from collections.abc import Sequence

from coag.schema import Evaluation, EvaluationOutcome, Phase, TokenUsage, Verdict, numbered

from .asking import ask_phase
from .checks import batched, check
from .deps import AnyContext, Deps, is_ablated
from .depth import depth_now, why_escalate
from .output_schema import BriefEvaluationAnswer, EvaluationAnswer, with_numbered_scores

MINIMUM_SCORE = "minimum_score"


async def evaluate(context: AnyContext, deps: Deps) -> EvaluationOutcome:
    """Judges every candidate. Each rejection names its check; no model decides it.

    The model scores the survivors where there is a choice to make or a minimum to reach, unless
    the settings leave that out; then not even the scores that came with drafts count. Drafts of one
    call have scores already: with `depth="auto"` it is asked again where they are too close.
    """
    memory, minimum = context.working_memory, deps.settings.minimum_score
    proposal = memory.cognitive_state.proposal
    candidates = proposal.candidates if proposal else ()
    specs = await deps.actions.specs()
    judged = [check(candidate, specs, context, deps) for candidate in candidates]
    usage, survivors = TokenUsage(), sum(one.survived for one in judged)
    choice, escalated = survivors > 1 and not batched(candidates, deps), ""
    if is_ablated("evaluation", context, deps):
        pass
    elif depth_now(context, deps) != "full":
        for n, drafted in enumerate(candidates):
            judged[n] = _scored(judged[n], drafted.draft_score, drafted.reason)
        if choice and deps.settings.depth == "auto":
            escalated = why_escalate(judged, candidates, specs, deps)
        if escalated:
            judged, usage = await _score(judged, context, deps)
    elif choice or (survivors and minimum > 0):
        judged, usage = await _score(judged, context, deps)
    return EvaluationOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        usage=usage,
        evaluations=tuple(_above(one, minimum) for one in judged),
        escalated=escalated,
    )


def _scored(evaluation: Evaluation, score: float | None, reason: str) -> Evaluation:
    if not evaluation.survived:
        return evaluation
    return evaluation.model_copy(update={"score": score, "reason": reason})


async def _score(
    judged: Sequence[Evaluation], context: AnyContext, deps: Deps
) -> tuple[list[Evaluation], TokenUsage]:
    survivors = numbered(judged)
    answer = EvaluationAnswer
    if deps.settings.answers == "brief":
        answer = with_numbered_scores(BriefEvaluationAnswer, len(survivors))
    reply = await ask_phase(Phase.EVALUATION, answer, context, deps, evaluations=tuple(judged))
    if reply.value is None:
        text = f"The model's evaluation was unusable: survivors keep no score. {reply.problem}"
        deps.note(context, "fallback", text, phase="evaluation")
        return list(judged), reply.usage
    answers = {each.candidate: each for each in reply.value.evaluations}
    numbers = {one.candidate_id: number for number, one in enumerate(survivors, 1)}
    scored: list[Evaluation] = []
    for one in judged:
        answered = answers.get(numbers.get(one.candidate_id, 0))
        scored.append(_scored(one, answered.score, answered.reason) if answered else one)
    return scored, reply.usage


def _above(evaluation: Evaluation, minimum: float) -> Evaluation:
    if not evaluation.survived or evaluation.score is None or evaluation.score >= minimum:
        return evaluation
    reason = f"its score {evaluation.score:.2f} is below {minimum:.2f}: {evaluation.reason}"
    low = Verdict.forbid(reason, MINIMUM_SCORE)
    return evaluation.model_copy(update={"verdicts": (*evaluation.verdicts, low)})
