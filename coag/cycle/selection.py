"""Selection: one of the survivors, or an impasse."""

from __future__ import annotations

from collections.abc import Sequence

from coag.schema import DecidedBy, Evaluation, Phase, SelectionOutcome, TokenUsage, numbered

from .checks import batched
from .deps import AnyContext, Deps
from .output_schema import ask_phase, selection_form

_FIRST = "No scores: the first survivor."
UNSCORED = 0.5
"""Rank of a survivor that got no score: between a bad one and a good one."""


async def select(context: AnyContext, deps: Deps) -> SelectionOutcome:
    """Chooses among the survivors: nobody where one is left, the ranking, or the model."""
    memory = context.working_memory
    evaluation = memory.cognitive_state.evaluation
    judged = evaluation.evaluations if evaluation else ()
    survivors = [e for e in judged if e.survived]
    proposal = memory.cognitive_state.proposal
    together = batched(proposal.candidates if proposal else (), deps)
    usage, chosen, decided_by = TokenUsage(), None, None
    reason = "No candidate survived." if judged else "There was no candidate."
    if len(survivors) == 1:
        chosen, decided_by = survivors[0], DecidedBy.ONLY_SURVIVOR
        reason = "It is the only candidate that survived."
    elif survivors and together:
        chosen, decided_by = survivors[0], DecidedBy.MODEL
        reason = f"The {len(survivors)} calls of one answer survived, and are run together."
    elif survivors and (deps.settings.selection == "rank" or deps.settings.depth == "compact"):
        chosen, decided_by = best(survivors), DecidedBy.RANK
        reason = _ranked(chosen)
    elif survivors:
        chosen, decided_by, reason, usage = await _ask(survivors, context, deps)
    return SelectionOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        usage=usage,
        candidate_id=chosen.candidate_id if chosen else None,
        batch=tuple(e.candidate_id for e in survivors) if together and survivors[1:] else (),
        decided_by=decided_by,
        reason=reason,
    )


def best(survivors: Sequence[Evaluation]) -> Evaluation:
    """The highest score and predicted gain together; among equals the one proposed first."""
    return max(survivors, key=lambda survivor: survivor.rank(UNSCORED))


def _ranked(chosen: Evaluation) -> str:
    gain = chosen.gain or 0.0
    if chosen.score is None:
        return f"No scores: the highest gain, {gain:+.2f}." if gain else _FIRST
    if gain:
        return f"Its score and gain are the highest, {chosen.score:.2f} {gain:+.2f}."
    return f"It has the highest score, {chosen.score:.2f}."


async def _ask(
    survivors: Sequence[Evaluation], context: AnyContext, deps: Deps
) -> tuple[Evaluation, DecidedBy, str, TokenUsage]:
    """The model's choice among the survivors; it is shown them by rank, the best first."""
    shown = tuple(survivors)
    if "evaluation" in deps.settings.ablations:
        shown = tuple(each.model_copy(update={"projection": None}) for each in shown)
    answer = selection_form(deps)
    reply = await ask_phase(
        Phase.SELECTION,
        answer,
        context,
        deps,
        evaluations=shown,
    )
    if reply.value is not None and 1 <= reply.value.choice <= len(survivors):
        chosen = numbered(survivors)[reply.value.choice - 1]
        return chosen, DecidedBy.MODEL, reply.value.reason, reply.usage
    problem = reply.problem
    if reply.value is not None:
        problem = f"It chose number {reply.value.choice} of {len(survivors)} candidates."
    text = f"The model's selection was unusable: the ranking decides. {problem}"
    deps.note(context, "fallback", text, phase="selection")
    chosen = best(survivors)
    return chosen, DecidedBy.RANK, _ranked(chosen), reply.usage
