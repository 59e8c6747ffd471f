"""Execution: what was selected, one action or one batch, bracketed by intents and receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coag.schema import (
    ActionCall,
    Candidate,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Percept,
    PerceptKind,
    Trust,
    Verdict,
)

from ._approving import denials
from ._checking import check
from ._deps import AnyContext, Deps
from ._running import RESULT_TEXT, Ran, begin, finish, run_internal

NOT_RUN = "Not run: {action} had ended the turn."


class ActionBrokenOff(BaseException):
    """The turn was cancelled, or ended by the process, while an action ran.

    The cycle commits what is known of it and raises what broke it off.
    """

    def __init__(self, outcome: ExecutionOutcome, by: BaseException) -> None:
        self.outcome = outcome
        self.by = by
        super().__init__(outcome.result)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A selected candidate that may run now, and how."""

    candidate: Candidate
    arguments: dict[str, Any]
    internal: bool


async def execute(context: AnyContext, deps: Deps) -> ExecutionOutcome:
    """Runs what was selected, each action at most once; an impasse runs nothing and says so.

    In a batch, external actions run together first, then internal ones in order. One that ends
    the turn is the last.
    """
    selected = selected_candidates(context)
    if not selected:
        return _impasse(context, deps)
    ready = await _approved(await _check_again(selected, context, deps), context, deps)
    ran: list[Ran | None] = [entry if isinstance(entry, Ran) else None for entry in ready]
    external = [n for n, e in enumerate(ready) if isinstance(e, _Ready) and not e.internal]
    begun = [_begin(ready[n], context, deps) for n in external]
    deps.announce([call for _, call in begun])
    for n, done in zip(external, await _together(begun, context, deps), strict=True):
        ran[n] = done
    broken = next((done.broken for done in ran if done and done.broken), None)
    ended_by: str | None = None
    for n, entry in enumerate(ready):
        if not isinstance(entry, _Ready) or not entry.internal:
            continue
        if broken is not None or ended_by is not None:
            ran[n] = _left_out(entry.candidate, ended_by or "the cancellation")
            continue
        ran[n] = done = await run_internal(entry.candidate, entry.arguments, context, deps)
        broken = done.broken
        ended_by = entry.candidate.action if done.response is not None else None
    outcome = _outcome([done for done in ran if done], ended_by, context, deps)
    if broken is not None:
        raise ActionBrokenOff(outcome, broken)
    return outcome


def selected_candidates(context: AnyContext) -> tuple[Candidate, ...]:
    """The candidates that this cycle's Selection chose, in order."""
    cognitive = context.working_memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None:
        return ()
    by_id = {candidate.id: candidate for candidate in cognitive.proposal.candidates}
    return tuple(by_id[chosen] for chosen in cognitive.selection.chosen if chosen in by_id)


async def _check_again(
    candidates: Sequence[Candidate], context: AnyContext, deps: Deps
) -> list[_Ready | Ran]:
    """The candidates checked once more, right before they are to run."""
    specs = await deps.actions.specs()
    entries: list[_Ready | Ran] = []
    for candidate in candidates:
        again = check(candidate, specs, context, deps)
        if again.died_of is not None or again.arguments is None:
            entries.append(_refused(candidate, again.died_of, deps))
        else:
            internal = specs[candidate.action].internal
            entries.append(_Ready(candidate, again.arguments, internal))
    return entries


async def _approved(
    entries: list[_Ready | Ran], context: AnyContext, deps: Deps
) -> list[_Ready | Ran]:
    """The entries after whoever must approve was asked, and the rules once more after a wait."""
    waiting = [entry for entry in entries if isinstance(entry, _Ready)]
    denied = await denials([(e.candidate, e.arguments) for e in waiting], context, deps)
    if denied is None:
        return entries
    again = await _check_again([entry.candidate for entry in waiting], context, deps)
    for n, entry in enumerate(waiting):
        if entry.candidate.id in denied:
            again[n] = _refused(entry.candidate, denied[entry.candidate.id], deps)
    checked = iter(again)
    return [next(checked) if isinstance(entry, _Ready) else entry for entry in entries]


def _begin(entry: _Ready | Ran, context: AnyContext, deps: Deps) -> tuple[Candidate, ActionCall]:
    if isinstance(entry, Ran):
        raise AssertionError("What was refused is not begun.")
    return entry.candidate, begin(entry.candidate, entry.arguments, context, deps)


async def _together(
    begun: Sequence[tuple[Candidate, ActionCall]], context: AnyContext, deps: Deps
) -> list[Ran]:
    """Runs the begun actions at the same time; each has its receipt, also if it broke off."""
    if len(begun) == 1:
        return [await finish(*begun[0], context, deps)]
    tasks = [asyncio.create_task(finish(*one, context, deps)) for one in begun]
    if tasks:
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    return [task.result() for task in tasks]


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
        queued=(_inner_percept(content, deps),),
    )


def _refused(candidate: Candidate, verdict: Verdict | None, deps: Deps) -> Ran:
    """What passed Evaluation is forbidden now: it is not run, and the agent perceives why."""
    why = f"{verdict.constraint}: {verdict.reason}" if verdict else "its arguments are invalid"
    content = f"{candidate.action} was refused right before it was to run. {why}"[:RESULT_TEXT]
    return Ran(
        Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            result=content,
        ),
        queued=(_inner_percept(content, deps),),
    )


def _left_out(candidate: Candidate, by: str) -> Ran:
    return Ran(
        Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            internal=True,
            result=NOT_RUN.format(action=by),
        )
    )


def _inner_percept(content: str, deps: Deps) -> Percept:
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=PerceptKind.IMPASSE,
        source="cycle",
        trust=Trust.UNTRUSTED,
        content=content,
    )


def _outcome(
    ran: Sequence[Ran], ended_by: str | None, context: AnyContext, deps: Deps
) -> ExecutionOutcome:
    first = ran[0].executed
    return ExecutionOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        status=_overall([done.executed.status for done in ran]),
        candidate_id=first.candidate_id,
        action=first.action,
        arguments=first.arguments,
        internal=first.internal,
        intent_id=first.intent_id,
        result=first.result,
        batch=tuple(done.executed for done in ran) if len(ran) > 1 else (),
        response=next((done.response for done in ran if done.response is not None), None),
        ended_by=ended_by,
        queued=tuple(percept for done in ran for percept in done.queued),
    )


def _overall(statuses: Sequence[ExecutionStatus]) -> ExecutionStatus:
    """Failed if anything failed, done if anything was done, else refused."""
    for status in (ExecutionStatus.FAILED, ExecutionStatus.DONE):
        if status in statuses:
            return status
    return ExecutionStatus.REFUSED
