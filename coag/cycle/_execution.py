"""Execution: what was selected, one action or one batch, bracketed by intents and receipts."""

from __future__ import annotations

from coag.schema import Candidate, ExecutionOutcome, ExecutionStatus

from ._deps import AnyContext, Deps
from ._guard import Ended, as_judged, inner_percept, run_selected
from ._running import RESULT_TEXT


class ActionBrokenOff(BaseException):
    """The turn was cancelled, or ended by the process, while an action ran.

    The cycle commits what is known of it and raises what broke it off.
    """

    def __init__(self, outcome: ExecutionOutcome, by: BaseException) -> None:
        self.outcome = outcome
        self.by = by
        super().__init__(outcome.result)


async def execute(context: AnyContext, deps: Deps) -> ExecutionOutcome:
    """Runs what was selected under guard; an impasse runs nothing and says so."""
    selected = selected_candidates(context)
    if not selected:
        return _impasse(context, deps)
    ended = await run_selected(selected, context, deps)
    outcome = _outcome(ended, context, deps)
    if ended.broken is not None:
        raise ActionBrokenOff(outcome, ended.broken)
    return outcome


def selected_candidates(context: AnyContext) -> tuple[Candidate, ...]:
    """The candidates that this cycle's Selection chose, in order."""
    cognitive = context.working_memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None:
        return ()
    by_id = {candidate.id: candidate for candidate in cognitive.proposal.candidates}
    evaluations = cognitive.evaluation.evaluations if cognitive.evaluation else ()
    judged = {one.candidate_id: one.arguments for one in evaluations}
    chosen = (one for one in cognitive.selection.chosen if one in by_id)
    return tuple(as_judged(by_id[one], judged.get(one)) for one in chosen)


def _impasse(context: AnyContext, deps: Deps) -> ExecutionOutcome:
    memory = context.working_memory
    evaluation = memory.cognitive_state.evaluation
    reasons = "; ".join(
        f"{e.died_of.constraint}: {e.died_of.reason}"
        for e in (evaluation.evaluations if evaluation else ())
        if e.died_of is not None
    )
    content = f"No candidate survived. {reasons}".strip()[:RESULT_TEXT]
    return ExecutionOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        status=ExecutionStatus.NONE,
        result="impasse",
        queued=(inner_percept(content, deps),),
    )


def _outcome(ended: Ended, context: AnyContext, deps: Deps) -> ExecutionOutcome:
    ran = ended.ran
    return ExecutionOutcome.of(
        [done.executed for done in ran],
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        response=next((done.response for done in ran if done.response is not None), None),
        ended_by=ended.ended_by,
        queued=tuple(percept for done in ran for percept in done.queued),
    )
