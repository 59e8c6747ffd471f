"""The guard: judges selected actions once more, has them approved, runs and records them.

The one way in which anything acts, in a cycle and for plain agents alike.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True)
class _Brought:
    """What the actions that have run in this cycle brought, until the caller perceives it."""

    context: AnyContext
    percepts: list[Percept] = field(default_factory=list[Percept])

    def add(self, ran: Ran) -> Ran:
        """Takes in what an action brought, with the change of state that it makes."""
        with self.context.supposing(self.percepts):
            queued = self.context.read(ran.queued)
        self.percepts += queued
        return replace(ran, queued=queued)


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

    Right before an action runs, code judges it: existence, arguments, progress, projection and the
    pinned constraints; then whoever must approve is asked, after which code judges again. What
    passes runs between intent and receipt, all but repeatable internal actions.

    Actions of a batch run one after the other, external ones first, and each is judged by the
    state after the one before. Side by side run only those that are declared `read_only`, or all
    where neither a rule, a forward model nor an approver reads the state, and no people are kept
    apart by it. One that ends the turn is the last.

    What the actions brought back is not perceived yet: that is left to the caller, who must do it
    before anything else is judged by the state.

    Args:
        selected: One candidate, or the members of a batch.
        context: Whose state they are judged by.
        deps: What may be called.
        judged: Is told of every judgement, before anything runs.

    Raises:
        TraceError: An intent or a receipt cannot be written.
    """
    specs = await deps.actions.specs()
    brought = _Brought(context)
    ran: dict[str, Ran] = {}
    broken: BaseException | None = None
    ended_by: str | None = None
    for group in _groups(selected, specs, context, deps):
        if broken is not None or ended_by is not None:
            why = ended_by or "the cancellation"
            ran |= {one.id: _left_out(one, why, specs) for one in group}
            continue
        try:
            done = await _run_group(group, context, deps, judged, brought)
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit) as stop:
            if not ran:  # nothing has been done; while somebody was asked, say
                raise
            broken = stop
            ran |= {one.id: _left_out(one, "the cancellation", specs) for one in group}
            continue
        last = len(ran) + len(done) == len(selected)
        for one in done:
            ran[one.executed.candidate_id or ""] = one if last else brought.add(one)
            broken = broken or one.broken
            ended_by = one.executed.action if one.response is not None else ended_by
    return Ended(tuple(ran[candidate.id] for candidate in selected), ended_by, broken)


def _groups(
    selected: Sequence[Candidate],
    specs: Mapping[str, ActionSpec],
    context: AnyContext,
    deps: GuardDeps,
) -> list[list[Candidate]]:
    """The candidates in the order in which they run; those of one group run side by side."""
    read = context.has_forward_model or context.keeps_people_apart
    free = not deps.constraints.pinned and not read and deps.approvals is None
    groups: list[list[Candidate]] = []
    beside = False
    for candidate in selected:
        spec = specs.get(candidate.action)
        if spec is not None and spec.internal:
            continue
        together = free or (spec is not None and spec.read_only)
        if together and beside:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
        beside = together
    internal = [c for c in selected if (spec := specs.get(c.action)) and spec.internal]
    return [*groups, *([candidate] for candidate in internal)]


async def _run_group(
    group: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    judged: Judged,
    brought: _Brought,
) -> list[Ran]:
    """Judges a group by the state after what has run before, has it approved, and runs it."""
    checked = await _check(group, context, deps, judged, brought)
    entries = await _approved(checked, context, deps, judged, brought)
    if isinstance(entries[0], _Ready) and entries[0].spec.internal:
        entry = _in_time(entries[0], deps)
        return [entry if isinstance(entry, Ran) else await _internal(entry, context, deps)]
    return await _external(entries, context, deps)


async def _check(
    candidates: Sequence[Candidate],
    context: AnyContext,
    deps: GuardDeps,
    judged: Judged,
    brought: _Brought,
) -> list[_Ready | Ran]:
    """The candidates judged right before they are to run."""
    specs = await deps.actions.specs()
    entries: list[_Ready | Ran] = []
    for candidate in candidates:
        with context.supposing(brought.percepts):
            found = check(candidate, specs, context, deps)
        judged(candidate, found)
        if found.died_of is not None or found.arguments is None:
            entries.append(_refused(candidate, found.died_of or _invalid(), deps))
        else:
            judged_as = as_judged(candidate, found.arguments)
            entries.append(_Ready(judged_as, found.arguments, specs[candidate.action]))
    return entries


def as_judged(candidate: Candidate, arguments: Mapping[str, Any] | None) -> Candidate:
    """The candidate that asks for just what was judged, whenever it is judged again."""
    if arguments is None:
        return candidate
    written = json.dumps(arguments, ensure_ascii=False)
    return candidate.model_copy(update={"raw_arguments": written})


def _invalid() -> Verdict:
    return Verdict(allowed=False, constraint=ARGUMENTS, reason="its arguments are invalid")


async def _approved(
    entries: list[_Ready | Ran],
    context: AnyContext,
    deps: GuardDeps,
    judged: Judged,
    brought: _Brought,
) -> list[_Ready | Ran]:
    """The entries after whoever must approve was asked, and the rules once more after a wait."""
    waiting = [entry for entry in entries if isinstance(entry, _Ready)]
    wanted = [(entry.candidate, entry.arguments) for entry in waiting]
    decisions = await decided(wanted, context, deps, brought.percepts)
    if decisions is None:
        again: list[_Ready | Ran] = [
            replace(entry, lapse=unasked(one, deps))
            for entry, one in zip(waiting, wanted, strict=True)
        ]
    else:
        candidates = [entry.candidate for entry in waiting]
        again = await _check(candidates, context, deps, judged, brought)
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


async def _external(
    entries: Sequence[_Ready | Ran], context: AnyContext, deps: GuardDeps
) -> list[Ran]:
    """Runs what is ready side by side, each between its intent and its receipt."""
    ran: list[Ran | None] = []
    begun: dict[int, tuple[_Ready, ActionCall]] = {}
    for n, entry in enumerate(entries):
        now = _in_time(entry, deps)
        ran.append(now if isinstance(now, Ran) else None)
        if isinstance(now, _Ready):
            begun[n] = now, begin(now.candidate, now.arguments, context, deps)
    deps.announce([call for _, call in begun.values()])
    for n, done in zip(begun, await _together(list(begun.values()), context, deps), strict=True):
        ran[n] = done
    return [done for done in ran if done is not None]


async def _internal(entry: _Ready, context: AnyContext, deps: GuardDeps) -> Ran:
    """Runs an action of the agent's own; between intent and receipt unless it is repeatable."""
    candidate, arguments = entry.candidate, entry.arguments
    if entry.spec.repeatable:
        return await run_internal(candidate, arguments, context, deps)
    call = begin(candidate, arguments, context, deps, internal=True)
    return await finish(candidate, call, entry.spec, context, deps)


async def _together(
    begun: Sequence[tuple[_Ready, ActionCall]], context: AnyContext, deps: GuardDeps
) -> list[Ran]:
    """Runs the begun actions at the same time; each has its receipt, also if it broke off."""
    running = [finish(one.candidate, call, one.spec, context, deps) for one, call in begun]
    if len(running) == 1:
        return [await running[0]]
    tasks = [asyncio.create_task(one) for one in running]
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


def _left_out(candidate: Candidate, by: str, specs: Mapping[str, ActionSpec]) -> Ran:
    spec = specs.get(candidate.action)
    return Ran(
        Executed(
            candidate_id=candidate.id,
            action=candidate.action,
            status=ExecutionStatus.REFUSED,
            internal=spec is not None and spec.internal,
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
