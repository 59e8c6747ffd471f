"""Running one action: intent, effect, receipt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from coag.context import shortened
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Executed,
    ExecutionStatus,
    Failure,
    Intent,
    Percept,
    Receipt,
    ReceiptStatus,
    Verdict,
)

from ._guard_deps import AnyContext, GuardDeps, decided_at
from ._returns import return_percept

RESULT_TEXT = 200_000
"""Characters of a result that are kept; tools' own outputs are cut to the window before."""
CANCELLED = "It was cancelled while it ran. It may or may not have had its effect."


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one selected action."""

    executed: Executed
    returned: ActionResult | None = None
    """What it brought back; None if it was not run."""
    refused_by: Verdict | None = None
    """What forbade it, if it was not run for that."""
    response: str | None = None
    """The answer, if the action ended the turn."""
    queued: tuple[Percept, ...] = ()
    broken: BaseException | None = None
    """What broke it off while it ran: a cancellation, or the process is to end."""


async def run_internal(
    candidate: Candidate, arguments: dict[str, Any], context: AnyContext, deps: GuardDeps
) -> Ran:
    """Runs a repeatable action on the agent's own memory or flow, which needs no intent."""
    call = ActionCall(id=deps.ids("internal"), action=candidate.action, arguments=arguments)
    try:
        result = await deps.actions.execute(call)
    except BaseException as broken:  # raised again once what else ran in this cycle is committed
        unknown = ActionResult(content=CANCELLED, is_error=True, outcome_unknown=True)
        executed = _executed(candidate, call, unknown, internal=True)
        return Ran(executed, unknown, broken=broken)
    _tell_detector(call, result, context, deps)
    executed = _executed(candidate, call, result, internal=True)
    return Ran(executed, result, response=result.content if result.ends_turn else None)


def begin(
    candidate: Candidate,
    arguments: dict[str, Any],
    context: AnyContext,
    deps: GuardDeps,
    *,
    internal: bool = False,
) -> ActionCall:
    """Writes down and flushes that the action is about to run."""
    number = ".".join(part for part in (deps.run(), deps.ids("intent")) if part)
    call = ActionCall(
        id=number, action=candidate.action, arguments=arguments, call_id=candidate.call_id
    )
    deps.trace.write(
        Intent(
            id=call.id,
            at=deps.clock.now(),
            cycle=context.working_memory.cycle,
            candidate_id=candidate.id,
            action=call.action,
            arguments=arguments,
            internal=internal,
        )
    )
    deps.trace.flush()
    return call


async def finish(
    candidate: Candidate,
    call: ActionCall,
    spec: ActionSpec,
    context: AnyContext,
    deps: GuardDeps,
) -> Ran:
    """Runs a begun action and writes its receipt, whatever happens meanwhile.

    What an internal one returns is no percept; that its outcome is not known, is one.
    """
    internal = spec.internal
    started = deps.clock.monotonic()
    try:
        result = await deps.actions.execute(call)
    except BaseException as broken:  # cancelled, or the process is to end: what ran is not known
        cancelled = isinstance(broken, asyncio.CancelledError)
        status = ReceiptStatus.CANCELLED if cancelled else ReceiptStatus.UNKNOWN
        _write_receipt(call.id, status, None, started, context, deps)
        unknown = ActionResult(content=CANCELLED, is_error=True, outcome_unknown=True)
        executed = _executed(candidate, call, unknown, internal=internal)
        queued = (return_percept(call, unknown, deps),)
        return Ran(executed, unknown, queued=queued, broken=broken)
    if result.outcome_unknown and spec.read_only:  # whether it ran or not, nothing is changed
        update = {"outcome_unknown": False, "failure": result.failure or Failure.TRANSIENT}
        result = result.model_copy(update=update)
    _write_receipt(call.id, _status(result), result, started, context, deps)
    _tell_detector(call, result, context, deps)
    executed = _executed(candidate, call, result, internal=internal)
    queued = result.percepts
    if not internal or result.outcome_unknown:
        queued = (return_percept(call, result, deps), *queued)
    response = result.content if internal and result.ends_turn else None
    return Ran(executed, result, response=response, queued=queued)


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
    deps: GuardDeps,
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


def _tell_detector(
    call: ActionCall, result: ActionResult, context: AnyContext, deps: GuardDeps
) -> None:
    failure = (result.failure or Failure.TRANSIENT) if result.is_error else None
    key = context.progress_key()
    at = decided_at(context, deps)
    deps.detector.note_result((call.action, call.arguments), key, failure, result.content, at)


def _executed(
    candidate: Candidate, call: ActionCall, result: ActionResult, *, internal: bool
) -> Executed:
    return Executed(
        candidate_id=candidate.id,
        action=call.action,
        arguments=call.arguments,
        status=ExecutionStatus.FAILED if result.is_error else ExecutionStatus.DONE,
        internal=internal,
        intent_id=None if internal else call.id,
        result=shortened(result.content, RESULT_TEXT),
    )
