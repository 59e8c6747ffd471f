"""A turn of a replay, and where the original turn was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

from coag.cycle import TurnResult
from coag.schema import (
    ExecutionOutcome,
    ExecutionStatus,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Receipt,
    ReceiptStatus,
    TraceRecord,
    TurnEnd,
)

from ._results import CANCELLED
from ._sink import CheckingSink


class Cancellation:
    """Cancels a turn of the replay where the original one was cancelled.

    What was broken off by it, a model call or an action, cancels itself.

    Args:
        sink: Compares what is written.
    """

    def __init__(self, sink: CheckingSink) -> None:
        self._sink = sink
        self._at: int | None = None
        self._task: asyncio.Task[None] | None = None

    async def run(self, turn: AsyncGenerator[Outcome | TurnResult]) -> None:
        """Runs a turn to its end, or to where it was cancelled."""
        tape = self._sink.tape
        before = cancelled_before(tuple(tape.in_turn()))
        self._at = None if before is None else tape.position + before
        self._task = asyncio.create_task(self._read(turn))
        self.note()
        try:
            await self._task
        finally:
            self._at = self._task = None

    def note(self) -> None:
        """A record was found alike: cancels if it was the last one before the cancellation."""
        if self._is_due():
            asyncio.get_running_loop().call_soon(self._cancel)

    def _is_due(self) -> bool:
        return self._at is not None and self._sink.tape.position >= self._at

    def _cancel(self) -> None:
        if self._is_due() and self._task is not None:
            self._at = None
            self._task.cancel()

    async def _read(self, turn: AsyncGenerator[Outcome | TurnResult]) -> None:
        async with aclosing(turn):
            async for _ in turn:
                if self._is_due():
                    self._at = None
                    return


def cancelled_before(records: Sequence[TraceRecord]) -> int | None:
    """Which of the records of a turn is the first after it was cancelled; None if it was not.

    Also None where the cancellation broke off a model call or an action, which tell of it.
    """
    if not records or not isinstance(end := records[-1], TurnEnd) or end.reason != "cancelled":
        return None
    first = len(records) - 1
    while first and _closes(records[first - 1], end.response):
        first -= 1
    if first and any(map(_broke_off, records[max(0, first - 1) : first])):
        return None
    execution = next((r for r in records[first:] if isinstance(r, ExecutionOutcome)), None)
    if execution is not None and any(e.result.startswith(CANCELLED) for e in execution.executed):
        return None
    return first


def _closes(record: TraceRecord, reason: str) -> bool:
    """Whether a record may come after the cancellation."""
    match record:
        case Percept():
            return True
        case Note():
            return record.about in ("module", "hook") or record.details.get("what") == "withdrawn"
        case ExecutionOutcome():
            idle = record.status is ExecutionStatus.NONE and record.result == reason
            return idle or any(e.result.startswith(CANCELLED) for e in record.executed)
        case _:
            return record.record == "outcome" and _is_empty(record, reason)


def _is_empty(outcome: Outcome, reason: str) -> bool:
    match outcome.phase.value:
        case "reasoning":
            return getattr(outcome, "situation", None) == reason
        case "selection":
            return getattr(outcome, "reason", None) == reason
        case "proposal":
            return getattr(outcome, "proposed_by", None) == "nobody"
        case "evaluation":
            return not getattr(outcome, "evaluations", None)
        case _:
            return not getattr(outcome, "query", None)


def _broke_off(record: TraceRecord) -> bool:
    """Whether a record tells of something that the cancellation broke off."""
    if isinstance(record, ModelCall):
        return record.error == "cancelled"
    return isinstance(record, Receipt) and record.status is ReceiptStatus.CANCELLED


def queued_ids(percepts: Iterable[Percept]) -> set[str]:
    """Ids of percepts."""
    return {percept.id for percept in percepts}
