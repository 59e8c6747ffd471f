"""The guard: judges selected actions once more, has them approved, runs and records them.

The one way in which anything acts, in a cycle and for plain agents alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coag.schema import (
    ActionCall,
    ActionSpec,
    Candidate,
    Evaluation,
    Executed,
    ExecutionStatus,
    Percept,
    PerceptKind,
    Trust,
    Verdict,
)

from ._approval_wishes import APPROVAL
from ._approving import decided, unasked
from ._arguments import ARGUMENTS
from ._checking import check
from ._guard_deps import AnyContext, GuardDeps
from ._running import RESULT_TEXT, Ran, begin, finish, run_internal

NOT_RUN = "Not run: {action} had ended the turn."

Judged = Callable[[Candidate, Evaluation], None]
"""Is told what was found out about a candidate."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of selected candidates."""

    ran: tuple[Ran, ...]
    """One per candidate, in their order."""
    ended_by: str | None = None
    """The action that ended the turn."""
    broken: BaseException | None = None
    """What broke an action off while it ran: a cancellation, or the process is to end."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A selected candidate that may run now, and how."""

    candidate: Candidate
    arguments: dict[str, Any]
    spec: ActionSpec
    lapse: Callable[[], str] = lambda: ""
    """Tells why its approval does not hold any more; empty as long as it does."""


def _nobody(candidate: Candidate, evaluation: Evaluation) -> None:
    """Is told nothing."""


async def run_selected(
    selected: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    *,
    judged: Judged = _nobody,
) -> Ended:
    """Runs what was selected under guard, each action at most once.

    First of all code judges each candidate: existence, arguments, progress, projection and the
    pinned constraints; then whoever must approve is asked, after which code judges again. What
    passes, and whose approval holds right before it begins, runs: external actions together, then
    internal ones in order, all but the repeatable ones between intent and receipt. One that ends
    the turn is the last.

    What the actions brought back is not perceived yet: that is left to the caller, who must do it
    before anything is judged by the state again.

    Args:
        selected: One candidate, or the members of a batch.
        context: Whose state they are judged by.
        deps: What may be called.
        judged: Is told of every judgement, before anything runs.

    Raises:
        TraceError: An intent or a receipt cannot be written.
    """
    checked = await _check(selected, context, deps, judged)
    entries = await _approved(checked, context, deps, judged)
    entries = await _run_external(entries, context, deps)
    broken = next((done.broken for done in entries if isinstance(done, Ran) and done.broken), None)
    ended_by: str | None = None
    for n, entry in enumerate(entries):
        if isinstance(entry, Ran):
            continue
        if broken is not None or ended_by is not None:
            entries[n] = _left_out(entry.candidate, ended_by or "the cancellation")
            continue
        try:
            entries[n] = done = await _internal(entry, context, deps, judged)
        except asyncio.CancelledError as cancelled:  # while somebody was asked; others have run
            broken, entries[n] = cancelled, _left_out(entry.candidate, "the cancellation")
            continue
        broken = done.broken
        ended_by = entry.candidate.action if done.response is not None else None
    return Ended(tuple(done for done in entries if isinstance(done, Ran)), ended_by, broken)


async def _check(
    candidates: Sequence[Candidate], context: AnyContext, deps: GuardDeps, judged: Judged
) -> list[_Ready | Ran]:
    """The candidates judged right before they are to run."""
    specs = await deps.actions.specs()
    entries: list[_Ready | Ran] = []
    for candidate in candidates:
        found = check(candidate, specs, context, deps)
        judged(candidate, found)
        if found.died_of is not None or found.arguments is None:
            entries.append(_refused(candidate, found.died_of or _invalid(), deps))
        else:
            entries.append(_Ready(candidate, found.arguments, specs[candidate.action]))
    return entries


def _invalid() -> Verdict:
    return Verdict(allowed=False, constraint=ARGUMENTS, reason="its arguments are invalid")


async def _approved(
    entries: list[_Ready | Ran], context: AnyContext, deps: GuardDeps, judged: Judged
) -> list[_Ready | Ran]:
    """The entries after whoever must approve was asked, and the rules once more after a wait."""
    waiting = [entry for entry in entries if isinstance(entry, _Ready)]
    wanted = [(entry.candidate, entry.arguments) for entry in waiting]
    decisions = await decided(wanted, context, deps)
    if decisions is None:
        again: list[_Ready | Ran] = [
            replace(entry, lapse=unasked(one, deps))
            for entry, one in zip(waiting, wanted, strict=True)
        ]
    else:
        again = await _check([entry.candidate for entry in waiting], context, deps, judged)
        for n, (entry, decision) in enumerate(zip(again, decisions, strict=True)):
            if not decision.verdict.allowed:
                again[n] = _refused(waiting[n].candidate, decision.verdict, deps)
            elif isinstance(entry, _Ready):
                again[n] = replace(entry, lapse=decision.lapse)
    checked = iter(again)
    return [next(checked) if isinstance(entry, _Ready) else entry for entry in entries]


def _in_time(entry: _Ready | Ran, deps: GuardDeps) -> _Ready | Ran:
    """The entry, refused if its approval does not hold at this moment."""
    if isinstance(entry, Ran) or not (lapse := entry.lapse()):
        return entry
    late = Verdict(allowed=False, constraint=APPROVAL, reason=lapse)
    return _refused(entry.candidate, late, deps)


async def _run_external(
    entries: Sequence[_Ready | Ran], context: AnyContext, deps: GuardDeps
) -> list[_Ready | Ran]:
    """The entries after the external ones among them have run, together."""
    ran: list[_Ready | Ran] = []
    begun: dict[int, tuple[Candidate, ActionCall]] = {}
    for n, entry in enumerate(entries):
        internal = isinstance(entry, _Ready) and entry.spec.internal
        now = entry if internal else _in_time(entry, deps)
        ran.append(now)
        if isinstance(now, _Ready) and not internal:
            begun[n] = now.candidate, begin(now.candidate, now.arguments, context, deps)
    deps.announce([call for _, call in begun.values()])
    for n, done in zip(begun, await _together(list(begun.values()), context, deps), strict=True):
        ran[n] = done
    return ran


async def _internal(entry: _Ready, context: AnyContext, deps: GuardDeps, judged: Judged) -> Ran:
    """Runs an action of the agent's own; between intent and receipt unless it is repeatable.

    Others have run meanwhile: if its approval does not hold any more, it is asked for again.
    """
    if entry.lapse():
        (asked,) = await _approved([entry], context, deps, judged)
        now = _in_time(asked, deps)
        if isinstance(now, Ran):
            return now
        entry = now
    candidate, arguments = entry.candidate, entry.arguments
    if entry.spec.repeatable:
        return await run_internal(candidate, arguments, context, deps)
    call = begin(candidate, arguments, context, deps, internal=True)
    return await finish(candidate, call, context, deps, internal=True)


async def _together(
    begun: Sequence[tuple[Candidate, ActionCall]], context: AnyContext, deps: GuardDeps
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


def _refused(candidate: Candidate, verdict: Verdict, deps: GuardDeps) -> Ran:
    """What is forbidden now is not run, and the agent perceives why."""
    why = f"{verdict.constraint}: {verdict.reason}"
    content = f"{candidate.action} was refused right before it was to run. {why}"[:RESULT_TEXT]
    return Ran(
        Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            result=content,
        ),
        refused_by=verdict,
        queued=(inner_percept(content, deps),),
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


def inner_percept(content: str, deps: GuardDeps) -> Percept:
    """That something was not done, as the agent perceives it."""
    return Percept(
        id=deps.ids("percept"),
        at=deps.clock.now(),
        kind=PerceptKind.IMPASSE,
        source="cycle",
        trust=Trust.UNTRUSTED,
        content=content,
    )
