"""Execution: the one selected action, bracketed by intent and receipt."""

from __future__ import annotations

import asyncio
from typing import Any

from coag.schema import (
    ActionCall,
    ActionResult,
    Candidate,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    Intent,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Trust,
    Verdict,
)

from ._checking import check
from ._deps import AnyContext, Deps
from ._returns import return_percept

RESULT_TEXT = 4_000
CANCELLED = "It was cancelled while it ran. It may or may not have had its effect."


class ActionBrokenOff(BaseException):
    """The turn was cancelled, or ended by the process, while an action ran.

    The cycle commits what is known of it and raises what broke it off.
    """

    def __init__(self, outcome: ExecutionOutcome, by: BaseException) -> None:
        self.outcome = outcome
        self.by = by
        super().__init__(outcome.result)


async def execute(context: AnyContext, deps: Deps) -> ExecutionOutcome:
    """Runs what was selected, at most once; an impasse runs nothing and says so."""
    candidate = selected_candidate(context)
    if candidate is None:
        return _impasse(context, deps)
    specs = await deps.actions.specs()
    again = check(candidate, specs, context, deps)
    if again.died_of is not None or again.arguments is None:
        return _refused(candidate, again.died_of, context, deps)
    internal = specs[candidate.action].internal
    run = _run_internal if internal else _run_external
    return await run(candidate, again.arguments, context, deps)


def selected_candidate(context: AnyContext) -> Candidate | None:
    """The candidate that this cycle's Selection chose, or None."""
    cognitive = context.working_memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None:
        return None
    chosen = cognitive.selection.candidate_id
    return next((c for c in cognitive.proposal.candidates if c.id == chosen), None)


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
        queued=(_inner_percept(PerceptKind.IMPASSE, content, deps),),
    )


def _refused(
    candidate: Candidate, verdict: Verdict | None, context: AnyContext, deps: Deps
) -> ExecutionOutcome:
    """What passed Evaluation is forbidden now: it is not run, and the agent perceives why."""
    why = f"{verdict.constraint}: {verdict.reason}" if verdict else "its arguments are invalid"
    content = f"{candidate.action} was refused right before it was to run. {why}"
    return ExecutionOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        status=ExecutionStatus.REFUSED,
        candidate_id=candidate.id,
        action=candidate.action,
        result=content[:RESULT_TEXT],
        queued=(_inner_percept(PerceptKind.IMPASSE, content[:RESULT_TEXT], deps),),
    )


def _inner_percept(kind: PerceptKind, content: str, deps: Deps) -> Percept:
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=kind,
        source="cycle",
        trust=Trust.UNTRUSTED,
        content=content,
    )


async def _run_internal(
    candidate: Candidate, arguments: dict[str, Any], context: AnyContext, deps: Deps
) -> ExecutionOutcome:
    call = ActionCall(id=deps.ids("internal"), action=candidate.action, arguments=arguments)
    result = await deps.actions.execute(call)
    _tell_detector(call, result, context, deps)
    return _outcome(candidate, call, result, (), True, context, deps)


async def _run_external(
    candidate: Candidate, arguments: dict[str, Any], context: AnyContext, deps: Deps
) -> ExecutionOutcome:
    cycle = context.working_memory.cycle
    number = ".".join(part for part in (deps.run(), deps.ids("intent")) if part)
    call = ActionCall(id=number, action=candidate.action, arguments=arguments)
    deps.trace.write(
        Intent(
            id=call.id,
            at=deps.clock.now(),
            cycle=cycle,
            candidate_id=candidate.id,
            action=call.action,
            arguments=arguments,
        )
    )
    deps.trace.flush()
    started = deps.clock.monotonic()
    try:
        result = await deps.actions.execute(call)
    except BaseException as broken:  # cancelled, or the process is to end: what ran is not known
        cancelled = isinstance(broken, asyncio.CancelledError)
        status = ReceiptStatus.CANCELLED if cancelled else ReceiptStatus.UNKNOWN
        _write_receipt(call.id, status, None, started, context, deps)
        unknown = ActionResult(content=CANCELLED, is_error=True, outcome_unknown=True)
        queued = (return_percept(call, unknown, deps),)
        outcome = _outcome(candidate, call, unknown, queued, False, context, deps)
        raise ActionBrokenOff(outcome, broken) from broken
    _write_receipt(call.id, _status(result), result, started, context, deps)
    _tell_detector(call, result, context, deps)
    queued = (return_percept(call, result, deps), *result.percepts)
    return _outcome(candidate, call, result, queued, False, context, deps)


def _status(result: ActionResult) -> ReceiptStatus:
    if result.outcome_unknown:
        return ReceiptStatus.UNKNOWN
    return ReceiptStatus.FAILED if result.is_error else ReceiptStatus.DONE


def _write_receipt(
    intent_id: str,
    status: ReceiptStatus,
    result: ActionResult | None,
    started: float,
    context: AnyContext,
    deps: Deps,
) -> None:
    deps.trace.write(
        Receipt(
            intent_id=intent_id,
            at=deps.clock.now(),
            cycle=context.working_memory.cycle,
            status=status,
            content=result.content if result else "",
            failure=result.failure if result else None,
            seconds=round(deps.clock.monotonic() - started, 6),
        )
    )
    deps.trace.flush()


def _tell_detector(call: ActionCall, result: ActionResult, context: AnyContext, deps: Deps) -> None:
    failure = (result.failure or Failure.TRANSIENT) if result.is_error else None
    key = context.progress_key()
    deps.detector.note_result((call.action, call.arguments), key, failure, result.content)


def _outcome(
    candidate: Candidate,
    call: ActionCall,
    result: ActionResult,
    queued: tuple[Percept, ...],
    internal: bool,
    context: AnyContext,
    deps: Deps,
) -> ExecutionOutcome:
    return ExecutionOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        status=ExecutionStatus.FAILED if result.is_error else ExecutionStatus.DONE,
        candidate_id=candidate.id,
        action=call.action,
        arguments=call.arguments,
        internal=internal,
        intent_id=None if internal else call.id,
        result=result.content[:RESULT_TEXT],
        response=result.content if result.ends_turn else None,
        queued=queued,
    )
