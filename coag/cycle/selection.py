"""Selection: one of the survivors, or an impasse."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coag.schema import DecidedBy, Evaluation, Phase, SelectionOutcome, TokenUsage, numbered

from .asking import ask_phase
from .checks import batched
from .deps import AnyContext, Deps
from .depth import depth_now, is_close
from .output_schema import BriefSelectionAnswer, SelectionAnswer

_Choice = tuple[Evaluation, DecidedBy, str]


async def select(context: AnyContext, deps: Deps) -> SelectionOutcome:
    """Chooses among the survivors: nobody where one is left, the ranking, or the model.

    Where candidates have scores the ranking decides, and the model is asked only about equals,
    unless the settings say otherwise.
    After one call the ranking does, unless Evaluation asked the model again and left them close.
    """
    memory = context.working_memory
    evaluation, proposal = memory.cognitive_state.evaluation, memory.cognitive_state.proposal
    judged = evaluation.evaluations if evaluation else ()
    survivors = [one for one in judged if one.survived]
    escalated = evaluation is not None and bool(evaluation.escalated)
    batch: tuple[str, ...] = ()
    usage, chosen, decided_by = TokenUsage(), None, None
    reason = "No candidate survived." if judged else "There was no candidate."
    if len(survivors) == 1:
        chosen, decided_by = survivors[0], DecidedBy.ONLY_SURVIVOR
        reason = "It is the only candidate that survived."
    elif survivors and batched(proposal.candidates if proposal else (), deps):
        chosen, decided_by = survivors[0], DecidedBy.MODEL
        reason = f"The {len(survivors)} calls of one answer survived, and are run together."
        batch = tuple(one.candidate_id for one in survivors)
    elif len(asked := _left_to_model(survivors, context, deps, escalated=escalated)) > 1:
        (chosen, decided_by, reason), usage = await _ask(asked, context, deps)
    elif survivors:
        chosen, decided_by, reason = _by_rank(survivors)
    return SelectionOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        usage=usage,
        candidate_id=chosen.candidate_id if chosen else None,
        batch=batch,
        decided_by=decided_by,
        reason=reason,
    )


def _left_to_model(
    survivors: Sequence[Evaluation], context: AnyContext, deps: Deps, *, escalated: bool
) -> Sequence[Evaluation]:
    """The survivors among which the model chooses; at most one where the ranking decides."""
    how = deps.settings.selection
    if how == "rank" or not survivors:
        return ()
    if escalated:
        return survivors if is_close(survivors, deps) else ()
    if depth_now(context, deps) != "full":
        return ()
    if how == "model":
        return survivors
    best = max(one.rank() for one in survivors)
    return [one for one in survivors if math.isclose(one.rank(), best, abs_tol=1e-6)]


def _by_rank(survivors: Sequence[Evaluation]) -> _Choice:
    """The highest score and predicted gain together; among equals the one proposed first."""
    chosen = max(survivors, key=Evaluation.rank)
    gain = chosen.gain or 0.0
    reason = "No scores: the first survivor."
    if chosen.score is not None and gain:
        reason = f"Its score and gain are the highest, {chosen.score:.2f} {gain:+.2f}."
    elif chosen.score is not None:
        reason = f"It has the highest score, {chosen.score:.2f}."
    elif gain:
        reason = f"No scores: the highest gain, {gain:+.2f}."
    return chosen, DecidedBy.RANK, reason


async def _ask(
    survivors: Sequence[Evaluation], context: AnyContext, deps: Deps
) -> tuple[_Choice, TokenUsage]:
    """The model's choice among the survivors; it is shown them by rank, the best first."""
    options = tuple(survivors)
    if "evaluation" in deps.settings.ablations:
        options = tuple(each.model_copy(update={"projection": None}) for each in options)
    answer = BriefSelectionAnswer if deps.settings.answers == "brief" else SelectionAnswer
    reply = await ask_phase(Phase.SELECTION, answer, context, deps, evaluations=options)
    problem = reply.problem
    if reply.value is not None:
        if 1 <= reply.value.choice <= len(survivors):
            chosen = numbered(survivors)[reply.value.choice - 1]
            return (chosen, DecidedBy.MODEL, reply.value.reason), reply.usage
        problem = f"It chose number {reply.value.choice} of {len(survivors)} candidates."
    text = f"The model's selection was unusable: the ranking decides. {problem}"
    deps.note(context, "fallback", text, phase="selection")
    return _by_rank(survivors), reply.usage
