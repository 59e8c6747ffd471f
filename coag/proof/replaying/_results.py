"""What the trace tells of what actions brought back."""

from __future__ import annotations

import asyncio

from coag.schema import (
    ActionCall,
    ActionResult,
    Executed,
    ExecutionStatus,
    Failure,
    Percept,
    PerceptKind,
    Receipt,
    ReceiptStatus,
    Snapshot,
    TurnEnd,
)

from ._stage import Stage

CANCELLED = "It was cancelled while it ran."
"""How the result of an action begins that was broken off."""
_BROKEN = "The turn broke off: "


async def answered(stage: Stage, call: ActionCall) -> ActionResult:
    """What a begun action brought back then; raises what broke it off."""
    receipt = _receipt(stage, call)
    if receipt is None:
        await stage.until(lambda head: not isinstance(head, Receipt), "a receipt")
        stage.sink.part("record", "no receipt", f"the receipt of {call.action} ({call.id})")
    await stage.until(lambda head: head is receipt, f"the receipt of {call.action}")
    _break_off(stage, call, receipt)
    queued = _queued(stage, call)
    returned = queued[0] if queued and queued[0].caused_by == call.id else None
    ended = stage.tape.execution()
    ends = ended is not None and ended.ended_by == call.action
    was = executed_as(stage, call)
    failed = was.status is ExecutionStatus.FAILED if was else receipt.failure is not None
    return ActionResult(
        content=receipt.content,
        data=returned.data if returned else None,
        is_error=returned.is_error if returned else failed,
        failure=receipt.failure,
        outcome_unknown=receipt.status is ReceiptStatus.UNKNOWN,
        percepts=tuple(queued[1:] if returned else queued),
        ends_turn=ends,
    )


def _receipt(stage: Stage, call: ActionCall) -> Receipt | None:
    found = (r for r in stage.tape.in_cycle() if isinstance(r, Receipt))
    return next((each for each in found if each.intent_id == call.id), None)


def _break_off(stage: Stage, call: ActionCall, receipt: Receipt) -> None:
    """Raises what broke an action off, where something did."""
    if receipt.status is ReceiptStatus.CANCELLED:
        raise asyncio.CancelledError
    was = executed_as(stage, call)
    if was is None or not was.result.startswith(CANCELLED):
        return
    end = next((r for r in stage.tape.in_turn() if isinstance(r, TurnEnd)), None)
    told = end.response.removeprefix(_BROKEN) if end is not None else "KeyboardInterrupt: "
    name, _, text = told.partition(": ")
    raise type(name if name.isidentifier() else "BrokenOff", (BaseException,), {})(text)


def executed_as(stage: Stage, call: ActionCall) -> Executed | None:
    """How the recorded execution tells of a call."""
    outcome = stage.tape.execution()
    done = outcome.executed if outcome is not None else ()
    by_id = [each for each in done if each.intent_id == call.id]
    alike = [e for e in done if e.action == call.action and e.arguments == call.arguments]
    return next(iter(by_id or alike), None)


def failure_of(stage: Stage, was: Executed) -> Failure:
    """Whether repeating a failed action could have helped: the next snapshot tells."""
    snapshots = (r for r in stage.tape.ahead() if isinstance(r, Snapshot))
    following = next(snapshots, None)
    failed = following.detector.values() if following is not None else ()
    told = (each["failure"] for each in failed if each["text"] == was.result[:200])
    return Failure(next(told, Failure.DETERMINISTIC))


def _queued(stage: Stage, call: ActionCall) -> list[Percept]:
    """The percepts that a call brought: its return, if that is one, and what came with it."""
    outcome = stage.tape.execution()
    if outcome is None:
        return []
    own: list[Percept] = []
    others = {each.intent_id for each in outcome.executed} - {call.id, None}
    mine = len(outcome.executed) == 1
    for percept in outcome.queued:
        if percept.caused_by == call.id and _is_return(percept):
            mine = True
        elif percept.caused_by in others or percept.kind is PerceptKind.IMPASSE:
            mine = False
        if mine:
            own.append(percept)
    return own


def _is_return(percept: Percept) -> bool:
    return percept.kind in (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME)
