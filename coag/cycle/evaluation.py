"""Evaluation: hard checks, projections and constraints first; the model only for survivors."""

from __future__ import annotations

from collections.abc import Sequence

from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    Phase,
    TokenUsage,
    Verdict,
    numbered,
)

from .checks import batched, check
from .deps import AnyContext, Deps, is_ablated
from .output_schema import ask_phase, evaluation_form

MINIMUM_SCORE = "minimum_score"


async def evaluate(context: AnyContext, deps: Deps) -> EvaluationOutcome:
    """Judges every candidate. What dies here dies of a named check, at no model's discretion.

    The model scores the survivors where there is a choice to make or a minimum to reach, unless
    the settings leave that out; then not even the scores that came with drafts count.
    """
    memory = context.working_memory
    proposal = memory.cognitive_state.proposal
    candidates = proposal.candidates if proposal else ()
    specs = await deps.actions.specs()
    judged = tuple(check(candidate, specs, context, deps) for candidate in candidates)
    together = batched(candidates, deps)
    usage = TokenUsage()
    survivors = [evaluation for evaluation in judged if evaluation.survived]
    choice = len(survivors) > 1 and not together
    wanted = choice or (survivors and deps.settings.minimum_score > 0)
    if is_ablated("evaluation", context, deps):
        wanted = False
    elif deps.settings.depth == "compact":
        judged = tuple(_with_draft_score(e, c) for e, c in zip(judged, candidates, strict=True))
    elif wanted:
        judged, usage = await _score(judged, context, deps)
    return EvaluationOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        usage=usage,
        evaluations=tuple(_above(e, deps.settings.minimum_score) for e in judged),
    )


def _with_draft_score(evaluation: Evaluation, candidate: Candidate) -> Evaluation:
    if not evaluation.survived:
        return evaluation
    return evaluation.model_copy(
        update={"score": candidate.draft_score, "reason": candidate.reason}
    )


async def _score(
    judged: Sequence[Evaluation], context: AnyContext, deps: Deps
) -> tuple[tuple[Evaluation, ...], TokenUsage]:
    survivors = numbered(judged)
    answer = evaluation_form(deps, len(survivors))
    reply = await ask_phase(
        Phase.EVALUATION,
        answer,
        context,
        deps,
        evaluations=tuple(judged),
    )
    if reply.value is None:
        text = f"The model's evaluation was unusable: survivors keep no score. {reply.problem}"
        deps.note(context, "fallback", text, phase="evaluation")
        return tuple(judged), reply.usage
    answers = {each.candidate: each for each in reply.value.evaluations}
    numbers = {each.candidate_id: number for number, each in enumerate(survivors, 1)}
    scored: list[Evaluation] = []
    for evaluation in judged:
        judgement = answers.get(numbers.get(evaluation.candidate_id, 0))
        if evaluation.survived and judgement is not None:
            update = {"score": judgement.score, "reason": judgement.reason}
            evaluation = evaluation.model_copy(update=update)  # noqa: PLW2901 - the judged one in its place
        scored.append(evaluation)
    return tuple(scored), reply.usage


def _above(evaluation: Evaluation, minimum: float) -> Evaluation:
    if not evaluation.survived or evaluation.score is None or evaluation.score >= minimum:
        return evaluation
    low = Verdict(
        allowed=False,
        constraint=MINIMUM_SCORE,
        reason=f"its score {evaluation.score:.2f} is below {minimum:.2f}: {evaluation.reason}",
    )
    return evaluation.model_copy(update={"verdicts": (*evaluation.verdicts, low)})
